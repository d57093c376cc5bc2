// In place of mpi_ranks.cc in a program that is linked without MPI.
#include "execute/mpi_ranks.h"
#include "execute/team.h"
#include "units/error.h"

namespace placet::execute {
namespace {

[[noreturn]] void refuse_mpi() {
  throw InputError({.where = "--ranks",
                    .value = "mpi",
                    .problem = "is not in this program: placet-net is not beside it, or was built "
                               "without MPI (Debian: libopenmpi-dev)",
                    .allowed = "virtual or process, or both programs in one folder"});
}

}  // namespace

MpiSession::MpiSession() { refuse_mpi(); }
MpiSession::~MpiSession() = default;
bool MpiSession::is_first() const { return true; }
bool MpiSession::tells_failure() const { return true; }

template <class Numbers>
std::unique_ptr<Team<Numbers>> mpi_team(TeamWork<Numbers>) {
  refuse_mpi();
}

template std::unique_ptr<Team<CanonicalNumbers>> mpi_team(TeamWork<CanonicalNumbers>);
template std::unique_ptr<Team<PlainNumbers<float>>> mpi_team(TeamWork<PlainNumbers<float>>);
template std::unique_ptr<Team<PlainNumbers<double>>> mpi_team(TeamWork<PlainNumbers<double>>);

}  // namespace placet::execute
