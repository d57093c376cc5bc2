# Two ways to read headers less often; together they more than halve the time of a build.
#
# The presets compile files of a folder sixteen at a time (CMAKE_UNITY_BUILD; all of them saved no
# time), so names in unnamed namespaces must differ within a folder. Folders that are being worked on build
# quicker file by file: cmake --preset dev -DPLACET_APART="interop;cli".
#
# Standard headers that most files of ours include are compiled once. (Others are none for all: some
# define what depends on flags, or bring in names that ours meet.) Files include what they use all
# the same: the presets lint and release read them without this (g++ 12 also warns wrongly of headers
# that were compiled before, at -O2).

set(PLACET_COMMON_HEADERS
    <algorithm> <array> <charconv> <cmath> <cstdint> <functional> <map> <memory> <numeric> <optional>
    <set> <span> <string> <string_view> <tuple> <utility> <variant> <vector>)

# placet_precompile(TARGET OWNER HEADER...): the first target of a kind that calls it, OWNER, holds the
# compiled headers of all; the others need the same compile settings.
function(placet_precompile target owner)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${PLACET_COMMON_HEADERS} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
