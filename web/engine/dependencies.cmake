# In place of cmake/dependencies.cmake: libraries of headers from the system, the others stood in for.
# The system's other headers must not be seen, so that those wanted are linked into a folder alone.
set(PLACET_WEB_HEADERS "${CMAKE_BINARY_DIR}/headers")
file(MAKE_DIRECTORY "${PLACET_WEB_HEADERS}")
foreach(wanted nlohmann fmt toml toml.hpp)
  if(NOT EXISTS "/usr/include/${wanted}")
    message(FATAL_ERROR "there is no /usr/include/${wanted}")
  endif()
  file(CREATE_LINK "/usr/include/${wanted}" "${PLACET_WEB_HEADERS}/${wanted}" SYMBOLIC)
endforeach()

function(placet_stand_in name)
  add_library(${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${name} INTERFACE
      "${PLACET_WEB_HEADERS}" "${PROJECT_SOURCE_DIR}/web/engine/stand_in")
endfunction()
foreach(name nlohmann_json::nlohmann_json toml11::toml11 CLI11::CLI11 fmt::fmt Threads::Threads
    TBB::tbb LibCsv::LibCsv LibYaml::LibYaml)
  placet_stand_in(${name})
endforeach()
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
set(PLACET_HEADER_ONLY nlohmann_json::nlohmann_json toml11::toml11 CLI11::CLI11)
