// Which buffers of one rank are alive, and which of their pieces were ever written.
#pragma once

#include <string>
#include <vector>

#include "ranks/listing.h"

namespace placet::ranks {

/// Follows one rank through its instructions. A buffer comes to life by `alloc`, with contents
/// that mean nothing until they are written, and dies by `free`.
class BufferStates {
 public:
  BufferStates(const Program& program, const Listing& listing);

  /// The buffer is there when the step begins, and holds something.
  void begin_with(const ListedRef& ref);
  /// What the instruction needs and makes of buffers. Returns why it cannot run; empty: it can.
  /// `gives`: of a broadcast, whether this rank is the one that sends.
  std::string run(const ListedInstruction& instruction, bool gives);
  /// Why the buffer's contents cannot be read; empty: they can.
  std::string reads(const ListedRef& ref) const;

 private:
  std::string writes(const ListedRef& ref);
  std::string start_or_end(const ListedRef& ref, bool ends);
  std::string name_of(const ListedRef& ref) const;
  template <class Visit>
  void for_each_piece(const ListedRef& ref, Visit visit) const;

  const Program& program_;
  const Listing& listing_;
  std::vector<std::size_t> first_;  // by slot: its first piece in `written_`
  std::vector<char> alive_;         // by slot
  std::vector<char> written_;       // by piece
};

}  // namespace placet::ranks
