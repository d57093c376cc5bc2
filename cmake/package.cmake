# The Debian package (./dev package): the program, the catalogue, man pages, completions and, where
# it has been built, the page that `placet serve` shows.
if(NOT PLACET_PACKAGE)
  return()
endif()
find_program(PLACET_HELP2MAN help2man REQUIRED)

# What the program says of itself: a man page for each subcommand, and completions for shells
# that look for them in a folder; zsh's is sourced (placet completion zsh).
set(said "${PROJECT_BINARY_DIR}/said")
add_custom_command(OUTPUT "${said}/done"
    COMMAND sh "${PROJECT_SOURCE_DIR}/tools/said.sh"
        "$<TARGET_FILE:placet_program_placet>" "${PLACET_HELP2MAN}" "${said}"
    DEPENDS placet_program_placet "${PROJECT_SOURCE_DIR}/tools/said.sh"
    COMMENT "Writing man pages and completions" VERBATIM)
add_custom_target(placet_said ALL DEPENDS "${said}/done")

install(DIRECTORY "${said}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT program)
install(FILES "${said}/bash" RENAME placet COMPONENT program
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
install(FILES "${said}/fish" RENAME placet.fish COMPONENT program
    DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" RENAME copyright COMPONENT program
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/placet")
install(FILES "${PROJECT_SOURCE_DIR}/web/dist/index.html" COMPONENT program OPTIONAL
    DESTINATION "${CMAKE_INSTALL_DATADIR}/placet/web")

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_NAME placet)
set(CPACK_PACKAGE_VENDOR placet)
set(CPACK_PACKAGE_CONTACT "The authors of Placet <placet@localhost>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
include(CPack)
