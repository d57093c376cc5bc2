# Tests mirror src/: tests/<folder>/<file>_test.cc, declared in tests/<folder>/CMakeLists.txt.

# placet_add_tests(): adds every folder under tests/ that has a CMakeLists.txt.
function(placet_add_tests)
  include(GoogleTest)
  add_custom_target(placet_tests)  # what the tests need, and nothing else
  add_library(placet_test_headers OBJECT "${PROJECT_SOURCE_DIR}/tests/headers.cc")
  placet_test_settings(placet_test_headers)
  target_link_libraries(placet_test_headers PRIVATE GTest::gtest)
  file(GLOB lists CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*/CMakeLists.txt")
  foreach(list IN LISTS lists)
    cmake_path(GET list PARENT_PATH dir)
    cmake_path(GET dir FILENAME folder)
    add_subdirectory("${dir}" "tests/${folder}")
  endforeach()
endfunction()

# placet_test_settings(TARGET): what every executable of tests is compiled with.
function(placet_test_settings target)
  placet_settings(${target})
  target_include_directories(${target} PRIVATE
      "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(${target} PRIVATE "PLACET_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
  placet_precompile(${target} placet_test_headers <gtest/gtest.h>)
endfunction()

# placet_test(derive
#     SOURCES memory_test.cc communication_test.cc
#     USES catalog             # folders and libraries beside src/derive itself
#     LABEL property           # unit (the default), golden, property, mpi or slow
#     TIMEOUT 120              # seconds for one test case; 60 by default
# )
# declares one executable of GoogleTest cases and registers each case with ctest. A second call for
# the same folder needs another LABEL and makes another executable (derive_property_test).
# A folder that is skipped because src/<folder> does not exist yet says so.
# Tests find the repository's own files below the string PLACET_SOURCE_DIR.
function(placet_test folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;TIMEOUT" "SOURCES;USES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "placet_test(${folder}): needs SOURCES, unexpected '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_LABEL IN_LIST PLACET_ALL_TEST_LABELS)
    message(FATAL_ERROR "placet_test(${folder}): no label '${arg_LABEL}'")
  endif()
  if(NOT arg_LABEL IN_LIST PLACET_TEST_LABELS)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(PLACET_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 5")
  endif()
  if(arg_LABEL STREQUAL "unit")
    set(target ${folder}_test)
  else()
    set(target ${folder}_${arg_LABEL}_test)
  endif()
  if(EXISTS "${PROJECT_SOURCE_DIR}/src/${folder}" AND NOT TARGET placet_${folder})
    message(STATUS "${target} is skipped: src/${folder} has no CMakeLists.txt")
    return()
  endif()

  add_executable(${target} ${arg_SOURCES})
  add_dependencies(placet_tests ${target})
  placet_test_settings(${target})
  if(folder IN_LIST PLACET_APART)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
  if(TARGET placet_${folder})
    placet_link(${target} PRIVATE ${folder})
  endif()
  placet_link(${target} PRIVATE ${arg_USES} GTest::gtest_main)
  gtest_discover_tests(${target}
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      DISCOVERY_TIMEOUT 60
      PROPERTIES
        LABELS "${arg_LABEL};${folder}"
        TIMEOUT ${arg_TIMEOUT}
        ENVIRONMENT_MODIFICATION "PLACET_DATA=unset:")
endfunction()
