// The boundary behind which ranks exchange messages (docs/theory.md §6.11).
//
// A rank knows its own listing and its own memory. All else that it learns comes through here, be
// the others in the same process, in processes of this machine or on other machines. There are
// implementations for virtual ranks (virtual_ranks.cc), processes (process_ranks.cc) and MPI
// (mpi_ranks.cc); one for a library of collectives on devices would stand beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "execute/kept_blocks.h"
#include "execute/ledger.h"

namespace placet::execute {

using Bytes = Kept<std::byte>;

/// Which message it is of those between two ranks. Both ends count alike, each from its listing, so
/// that messages of different queues may overtake each other.
struct Label {
  std::uint64_t group = 0;    // a number for the ranks that meet
  std::uint64_t meeting = 0;  // of that group, counted from 0
  std::uint64_t part = 0;     // of what is sent there

  friend auto operator<=>(const Label&, const Label&) = default;
};

class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  /// Never waits for the receiver to ask for it. What is sent is counted here.
  void send(int to, const Label& label, Bytes bytes, const Cargo& cargo) {
    ledger.add(cargo);
    transmit(to, label, std::move(bytes));
  }
  /// None: it has not come yet.
  virtual std::optional<Bytes> receive(int from, const Label& label) = 0;
  /// Until something may have come. Throws InputError if a rank is lost, with which and why.
  virtual void wait() = 0;

  Ledger ledger;

 protected:
  virtual void transmit(int to, const Label& label, Bytes bytes) = 0;
};

}  // namespace placet::execute
