// Parameters that are gathered for use, over the units of a chunk: what of them is alive while one
// of the units runs (docs/theory.md §3.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "derive/unit_memory.h"

namespace placet {

/// One unit of a chunk, in order of use.
struct GatheredUnit {
  std::int64_t whole = 0;       // bytes of its parameters that are gathered for use
  Keep keep = Keep::none;       // how long they stay
  std::int64_t parts = 0;       // bytes of parts kept from forward to backward
  std::int64_t parts_step = 0;  // bytes of parts kept over the step

  friend bool operator==(const GatheredUnit&, const GatheredUnit&) = default;
};

/// Bytes alive, by name.
struct GatheredBytes {
  std::int64_t whole = 0;  // gathered for use: the units near the one that runs, and those kept
  std::int64_t parts = 0;  // kept gathered along some of the axes only

  std::int64_t total() const { return whole + parts; }
};

/// The units of the chunk that runs, as runs of equal ones with running sums.
class GatheredChunk {
 public:
  /// `prefetch`: units gathered ahead of the one that runs. `in_flight`: whether several
  /// micro-batches have gone forward and not yet back, so that what is kept to backward is there
  /// for all units.
  GatheredChunk(std::int64_t prefetch, bool in_flight);

  /// Adds `count` equal units after the others.
  void add(const GatheredUnit& unit, std::int64_t count = 1);

  /// Alive while the unit at `position` runs forward (its loss included) or backward. Case: three
  /// units of 10 bytes, kept from forward to backward, nothing gathered ahead: in forward of the
  /// third 30, in backward of the first 10.
  GatheredBytes in_forward(std::size_t position) const;
  GatheredBytes in_backward(std::size_t position) const;

 private:
  struct Sums {
    std::int64_t whole = 0;
    std::int64_t kept = 0;       // of these: that stay until backward, or longer
    std::int64_t kept_step = 0;  // of these: over the step
    std::int64_t parts = 0;
  };
  struct Run {
    std::size_t begin = 0;
    Sums before;
    Sums each;
  };

  Sums before(std::size_t position) const;
  GatheredBytes alive(std::size_t begin, std::size_t end, std::size_t position) const;

  std::size_t ahead_ = 0;
  bool in_flight_ = false;
  std::int64_t parts_step_ = 0;
  std::size_t units_ = 0;
  std::vector<Run> runs_;
};

/// What stays gathered of a unit while another chunk runs. `in_flight`: whether some micro-batch
/// has gone forward through it and not yet back.
GatheredBytes kept_of(const GatheredUnit& unit, bool in_flight);

}  // namespace placet
