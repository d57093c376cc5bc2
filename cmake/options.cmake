# What a build may switch, and the compile settings that every target of ours shares.
# Everything is a property of our own targets; nothing leaks into those who link us.

option(PLACET_TESTS "Build the tests (needs GoogleTest)" ${PROJECT_IS_TOP_LEVEL})
option(PLACET_BENCHMARKS "Build the benchmarks (needs Google Benchmark; skipped without it)" OFF)
option(PLACET_PYTHON "Build the Python module (needs nanobind; pip does this)" OFF)
option(PLACET_PACKAGE "Let cpack make a Debian package (needs help2man)" OFF)
option(PLACET_FUZZ "Build the fuzz targets with libFuzzer (needs clang)" OFF)
option(PLACET_LINT "Only configure, for clang-tidy (preset lint)" OFF)
option(PLACET_WERROR "Treat warnings in our own targets as errors" ${PROJECT_IS_TOP_LEVEL})
option(PLACET_CCACHE "Compile through ccache where it is installed" ${PROJECT_IS_TOP_LEVEL})
set(PLACET_APART "" CACHE STRING
    "Folders compiled file by file although CMAKE_UNITY_BUILD is on: those that are being worked on")
set(PLACET_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, such as address,undefined")
set(PLACET_ALL_TEST_LABELS unit golden property mpi slow)
set(PLACET_TEST_LABELS ${PLACET_ALL_TEST_LABELS} CACHE STRING "The labels whose tests are built")
foreach(label IN LISTS PLACET_TEST_LABELS)
  if(NOT label IN_LIST PLACET_ALL_TEST_LABELS)
    message(FATAL_ERROR
        "PLACET_TEST_LABELS: no label '${label}'; expected of ${PLACET_ALL_TEST_LABELS}")
  endif()
endforeach()
set(PLACET_DATA_DIR "${PROJECT_SOURCE_DIR}/data" CACHE PATH
    "Where the catalogue lies when neither PLACET_DATA nor <prefix>/share/placet/data gives it")

if(PLACET_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(PLACET_CCACHE_PROGRAM ccache)
  mark_as_advanced(PLACET_CCACHE_PROGRAM)
  if(PLACET_CCACHE_PROGRAM)
    # The two settings without which ccache leaves alone what uses precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
        "CCACHE_SLOPPINESS=pch_defines,time_macros" "${PLACET_CCACHE_PROGRAM}")
  endif()
endif()

# Two warnings of -Wall/-Wextra stay off:
# -Wmissing-field-initializers refuses designated initializers that leave fields at their defaults,
#   which is how this project writes its data;
# -Wrestrict reports std::string concatenation wrongly in g++ 12 (GCC bug 105651).
set(PLACET_WARNINGS
    -Wall -Wextra -Wpedantic
    -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wcast-qual -Wcast-align
    -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi -Wundef -Wredundant-decls
    -Wimplicit-fallthrough -Wswitch-enum -Wunused
    -Wno-missing-field-initializers
    $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond>
    $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-branches>
    $<$<CXX_COMPILER_ID:GNU>:-Wlogical-op>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    # g++ 12 takes moved variants of vectors for uninitialized ones where it inlines them.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)

# placet_settings(TARGET): language level, warnings and sanitizers of one target of ours.
# The macro prefix map keeps the place of the checkout out of messages, so that a build in any
# folder prints the same bytes.
function(placet_settings target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  # Code that may be part of a module (-fPIC) calls what others could put theirs in place of through
  # a table, and inlines none of it; nobody does that to hidden names.
  set_target_properties(${target} PROPERTIES
      CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE
      ${PLACET_WARNINGS}
      $<$<BOOL:${PLACET_WERROR}>:-Werror>
      # A tenth of g++'s time went to collecting garbage within 700 MB; a file now takes up to 1 GB.
      "$<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-expand=400>"
      "$<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1048576>"
      "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
  if(PLACET_SANITIZE)
    target_compile_options(${target} PRIVATE
        -fsanitize=${PLACET_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
        # Checks before every access, which take as long to compile as all others together: a null
        # pointer ends the run under AddressSanitizer anyway, and processors read unaligned data.
        -fno-sanitize=null,alignment
        # g++ 12 takes the sanitizers' own accesses in library code for uninitialized reads.
        $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_link_options(${target} PUBLIC -fsanitize=${PLACET_SANITIZE})
  endif()
endfunction()
