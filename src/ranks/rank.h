// One rank of a program: where its buffers stand in the memory of all, and which parts of the
// reference's tensors they hold.
#pragma once

#include <string>
#include <vector>

#include "ranks/buffer_states.h"
#include "ranks/exchange.h"
#include "ranks/reference_run.h"

namespace placet::ranks {

/// A part of a tensor of the reference that a buffer of a rank holds.
struct Region {
  int rank = 0;
  StateRef::Kind kind = StateRef::Kind::zero;
  const ReferenceTensor* tensor = nullptr;  // null: zeros
  ListedRef buffer;
  std::vector<Run> runs;  // from the reference's memory to the program's; zeros: `to` only
};

/// A buffer of a rank in the memory of all.
struct BufferPlace {
  int rank = 0;
  int slot = 0;    // of the rank's listing
  int family = 0;  // of the program
  std::int64_t address = 0;
  std::int64_t elements = 0;
};

class RankImage {
 public:
  /// Lays out the rank's buffers behind all others of `memory`.
  RankImage(const Program& program, const Listing& listing, const ProgramCoordinates& at,
            OperationList& memory);

  /// All buffers by slot.
  std::vector<BufferPlace> buffers(int rank) const;
  BufferView view(const ListedRef& ref) const;
  /// The address of the buffer itself; views have offsets from there.
  std::int64_t address(const ListedRef& ref) const;
  /// The logical dims of the tensor that it is; null: several or part of one.
  const PieceType* piece(const ListedRef& ref) const;

  /// The regions of a buffer, piece by piece. Returns why they are not parts of those tensors;
  /// empty: they are.
  std::string add_regions(const ReferenceRun& reference, const ListedRef& buffer,
                          const std::vector<StateRef>& pieces, std::vector<Region>& regions) const;

 private:
  const LocalShape& shape(const ListedRef& ref) const;
  static std::string take_part(const PieceType& type, const LocalPiece& local, Region& region);

  const Program& program_;
  const Listing& listing_;
  std::vector<LocalShape> shapes_;       // by form
  std::vector<std::int64_t> addresses_;  // by slot
  std::vector<std::int64_t> elements_;   // likewise
};

}  // namespace placet::ranks
