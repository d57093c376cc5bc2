# In place of cmake/dependencies.cmake: libraries of headers from the system, the others stood in for.
# The system's other headers must not be seen, so that those wanted are linked into a folder alone.
set(PLACET_WEB_HEADERS "${CMAKE_BINARY_DIR}/headers")
file(MAKE_DIRECTORY "${PLACET_WEB_HEADERS}")
foreach(wanted nlohmann rapidjson fmt toml toml.hpp)
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
foreach(name nlohmann_json::nlohmann_json RapidJSON::RapidJSON toml11::toml11 CLI11::CLI11 fmt::fmt Threads::Threads
    TBB::tbb LibCsv::LibCsv)
  placet_stand_in(${name})
endforeach()

# libyaml's reader of events, from the sources that a package of PyPI brings (they are what PyPI has
# of it; LIBYAML names their folder: `./dev web` fetches the version that is known to work).
set(LIBYAML "$ENV{LIBYAML}" CACHE PATH "The folder of libyaml's sources")
if(NOT EXISTS "${LIBYAML}/scanner.c")
  message(FATAL_ERROR "LIBYAML names no folder with libyaml's sources: ./dev web sets it")
endif()
enable_language(C)
add_library(placet_yaml STATIC
    "${LIBYAML}/api.c" "${LIBYAML}/reader.c" "${LIBYAML}/scanner.c" "${LIBYAML}/parser.c")
target_include_directories(placet_yaml PRIVATE "${LIBYAML}")
target_compile_options(placet_yaml PRIVATE -w)
set_target_properties(placet_yaml PROPERTIES UNITY_BUILD OFF)
file(CREATE_LINK "${LIBYAML}/yaml.h" "${PLACET_WEB_HEADERS}/yaml.h" SYMBOLIC)
add_library(LibYaml::LibYaml INTERFACE IMPORTED GLOBAL)
target_include_directories(LibYaml::LibYaml INTERFACE "${PLACET_WEB_HEADERS}")
target_link_libraries(LibYaml::LibYaml INTERFACE placet_yaml)
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
set(PLACET_HEADER_ONLY
    nlohmann_json::nlohmann_json RapidJSON::RapidJSON toml11::toml11 CLI11::CLI11)
