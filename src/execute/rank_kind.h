// Where the ranks of a run live.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace placet {

/// virtual: all in this process. process: each in one of its own on this machine. mpi: each is one
/// of the processes that mpirun started.
enum class RankKind : std::uint8_t { in_one_process, in_processes, over_mpi };
std::string_view name_of(RankKind kind);
/// Throws InputError for other words.
RankKind rank_kind_from(const std::string& word);

}  // namespace placet
