// MPI, where this program was built with it (package libopenmpi-dev; else no_mpi.cc).
#pragma once

namespace placet::execute {

/// MPI from its construction on; ends with it.
class MpiSession {
 public:
  /// Throws InputError in a build without MPI, with the package that it lacked.
  MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  ~MpiSession();
  /// Whether this is the process that prints.
  bool is_first() const;
};

}  // namespace placet::execute
