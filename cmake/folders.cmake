# One static library per folder under src/, its sources listed by hand in src/<folder>/CMakeLists.txt.

# placet_add_folders(units model ...): adds each folder that has a CMakeLists.txt, in this order.
function(placet_add_folders)
  foreach(folder IN LISTS ARGN)
    if(EXISTS "${PROJECT_SOURCE_DIR}/src/${folder}/CMakeLists.txt")
      add_subdirectory("${PROJECT_SOURCE_DIR}/src/${folder}" "src/${folder}")
    endif()
  endforeach()
endfunction()

# placet_link(TARGET SCOPE name...): links folders by their short name (units), other libraries by
# the name of their imported target (fmt::fmt). A folder that does not exist yet, or comes later in
# the order, is an error.
function(placet_link target scope)
  foreach(name IN LISTS ARGN)
    if(name IN_LIST PLACET_HEADER_ONLY)
      target_link_libraries(${target} ${scope} $<BUILD_INTERFACE:${name}>)
    elseif(name MATCHES "::")
      target_link_libraries(${target} ${scope} ${name})
    elseif(TARGET placet_${name})
      target_link_libraries(${target} ${scope} placet_${name})
    else()
      message(FATAL_ERROR "${target}: no folder '${name}' before it in the order of folders")
    endif()
  endforeach()
endfunction()

# placet_folder(derive
#     SOURCES memory.cc communication.cc
#     DEPENDS model cluster        # folders and libraries that the folder's headers show
#     USES fmt::fmt                # those that only its .cc files include
#     PRECOMPILED <CLI/CLI.hpp>    # slow headers that most of its files include
# )
# declares library placet_derive (alias placet::derive). Headers are found from the src/ root.
# Libraries that hold nothing but headers (JSON, TOML, flags) belong in USES.
function(placet_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS;USES;PRECOMPILED")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "placet_folder(${name}): needs SOURCES, unexpected '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  set(target placet_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(placet::${name} ALIAS ${target})
  placet_settings(${target})
  if(name IN_LIST PLACET_APART)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
  if(arg_PRECOMPILED)
    placet_precompile(${target} ${target} ${arg_PRECOMPILED})
  else()
    placet_precompile(${target} placet_units)
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  if(NOT PLACET_WEB)  # a module of a page stands where it is put, and is smaller for knowing it
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  target_include_directories(${target} PUBLIC
      "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>"
      "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/placet>")
  placet_link(${target} PUBLIC ${arg_DEPENDS})
  placet_link(${target} PRIVATE ${arg_USES})
  set_property(GLOBAL APPEND PROPERTY PLACET_FOLDERS ${name})
endfunction()

# placet_program(placet SOURCES main.cc USES cli): an executable, put at the top of the build folder
# so that it is found as build/<preset>/placet, and installed to bin/.
function(placet_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "placet_program(${name}): needs SOURCES, unexpected '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  set(target placet_program_${name})
  add_executable(${target} ${arg_SOURCES})
  placet_settings(${target})
  set_target_properties(${target} PROPERTIES
      OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  placet_link(${target} PRIVATE ${arg_USES})
  install(TARGETS ${target} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
endfunction()

# placet_net_part(serve STUB no_server.cc SOURCES server.cc USES call Httplib::Httplib): what a folder
# does with a library that takes longer to load than most calls take. It is linked by placet-net alone
# (cli/net_program.h), in place of the folder's stub.
function(placet_net_part folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "STUB" "SOURCES;USES")
  set(target placet_${folder}_net)
  set_source_files_properties(${arg_STUB} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${arg_SOURCES})
  placet_settings(${target})
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:placet_${folder},COMPILE_OPTIONS>)
  placet_link(${target} PRIVATE ${folder} ${arg_USES})
  set_property(GLOBAL APPEND PROPERTY PLACET_NET_PARTS ${target})
endfunction()

# placet_net_program(placet-net SOURCES main.cc USES cli): a program with all those parts, if there are
# any.
function(placet_net_program name)
  get_property(parts GLOBAL PROPERTY PLACET_NET_PARTS)
  if(NOT parts)
    return()
  endif()
  placet_program(${name} ${ARGN})
  target_link_libraries(placet_program_${name} PRIVATE ${parts})
endfunction()

# placet_allocator(TARGET): programs allocate small nodes all the time, in several threads. They get
# mimalloc where it is installed, else the allocator of TBB; under sanitizers theirs. mimalloc's own
# operator new, which is C, ends the process where there is no memory left. That of libstdc++ throws,
# and gets its memory from mimalloc too, if its library is looked through first.
function(placet_allocator target)
  if(PLACET_SANITIZE)
    return()
  endif()
  if(PLACET_MIMALLOC)
    target_link_libraries(${target} PRIVATE
        "-Wl,--push-state,--no-as-needed" stdc++ "${PLACET_MIMALLOC}" "-Wl,--pop-state")
  elseif(TARGET TBB::tbbmalloc_proxy)
    target_link_libraries(${target} PRIVATE TBB::tbbmalloc_proxy)
  endif()
endfunction()

# placet_source_defines(SOURCE DEFINITION): for one source file of the calling folder. The lint preset
# gives it to all of them, so that they are read together.
function(placet_source_defines source definition)
  if(PLACET_LINT)
    add_compile_definitions("${definition}")
  else()
    set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_DEFINITIONS "${definition}")
  endif()
endfunction()

# placet_knows_data_dir(SOURCE): gives one source file of the calling folder the last place in which
# to look for the catalogue, as the string PLACET_DATA_DIR. The order is: the environment variable
# PLACET_DATA, ../share/placet/data beside the executable's folder, PLACET_DATA_DIR.
function(placet_knows_data_dir source)
  placet_source_defines("${source}" "PLACET_DATA_DIR=\"${PLACET_DATA_DIR}\"")
endfunction()
