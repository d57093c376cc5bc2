# Installation: the program, the libraries with a CMake package, the headers, the catalogue.
#
#   find_package(placet REQUIRED)
#   target_link_libraries(mine PRIVATE placet::placet)     # then: #include "derive/memory.h"

include(CMakePackageConfigHelpers)

# placet_install(): call once, after every folder is declared.
function(placet_install)
  get_property(folders GLOBAL PROPERTY PLACET_FOLDERS)

  add_library(placet_all INTERFACE)
  add_library(placet::placet ALIAS placet_all)
  set_target_properties(placet_all PROPERTIES EXPORT_NAME placet)
  foreach(folder IN LISTS folders)
    target_link_libraries(placet_all INTERFACE placet_${folder})
    install(TARGETS placet_${folder} EXPORT placet-targets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}/placet")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/${folder}"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/placet" FILES_MATCHING PATTERN "*.h")
  endforeach()
  install(TARGETS placet_all EXPORT placet-targets)

  set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/placet")
  install(EXPORT placet-targets NAMESPACE placet:: DESTINATION "${package_dir}")
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/placet-config.cmake.in"
      "${PROJECT_BINARY_DIR}/placet-config.cmake"
      INSTALL_DESTINATION "${package_dir}" PATH_VARS CMAKE_INSTALL_DATADIR)
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/placet-config-version.cmake"
      COMPATIBILITY SameMinorVersion)
  install(FILES
      "${PROJECT_BINARY_DIR}/placet-config.cmake"
      "${PROJECT_BINARY_DIR}/placet-config-version.cmake"
      "${PROJECT_SOURCE_DIR}/cmake/FindLibCsv.cmake"
      "${PROJECT_SOURCE_DIR}/cmake/FindLibYaml.cmake"
      DESTINATION "${package_dir}")

  if(EXISTS "${PROJECT_SOURCE_DIR}/data")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/data/" COMPONENT program
        DESTINATION "${CMAKE_INSTALL_DATADIR}/placet/data")
  endif()
endfunction()
