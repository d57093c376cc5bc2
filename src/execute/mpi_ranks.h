// MPI, in a program that is linked with it (placet-net, package libopenmpi-dev; else no_mpi.cc).
#pragma once

namespace placet::execute {

/// MPI from its construction on; ends with it.
class MpiSession {
 public:
  /// Throws InputError in a build without MPI, with the package that it lacked.
  MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  // NOLINTNEXTLINE(performance-trivially-destructible): it is not, where there is MPI
  ~MpiSession();
  /// Whether this is the process that prints.
  bool is_first() const;
  /// To be asked by a process that cannot go on, before the session ends: whether it is the one
  /// that says why. Of all that could not begin that is the first.
  bool tells_failure() const;
};

}  // namespace placet::execute
