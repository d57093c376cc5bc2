// In place of process_ranks.cc where no process can be made.
#include "execute/team.h"
#include "units/error.h"

namespace placet::execute {

template <class Numbers>
std::unique_ptr<Team<Numbers>> process_team(TeamWork<Numbers>) {
  throw InputError({.where = "--ranks",
                    .value = "process",
                    .problem = "cannot be had here: there are no processes",
                    .allowed = "virtual"});
}

template std::unique_ptr<Team<CanonicalNumbers>> process_team(TeamWork<CanonicalNumbers>);
template std::unique_ptr<Team<PlainNumbers<float>>> process_team(TeamWork<PlainNumbers<float>>);
template std::unique_ptr<Team<PlainNumbers<double>>> process_team(TeamWork<PlainNumbers<double>>);

}  // namespace placet::execute
