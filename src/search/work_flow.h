// The order of work of a pipeline, laid out once to be gone through many times with other lengths
// (docs/theory.md §9.3): what derive/pipeline_time.h gives.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "derive/pipeline_time.h"

namespace placet {

/// Seconds of the pieces of one chunk, by Work::Kind.
using PieceLengths = std::array<double, 4>;

/// From one stage to the next, and back.
struct FlowMessages {
  double time = 0;            // seconds until one is there
  bool sender_waits = false;  // as long, before it goes on
};

/// Keeps its sums between calls: one per thread.
class WorkFlow {
 public:
  /// REQUIRES: fewer than 2^30 pieces, and than 2^16 devices.
  explicit WorkFlow(const PipelineForm& form);

  /// Seconds until the last device is through, with what each has to do after all its work.
  /// Lengths by device and chunk, one after the other; `after` by device, empty: nothing.
  /// Case: degree 2, one chunk of 1 s forward and 2 s backward each, four micro-batches in turns:
  /// 4 x 3 + 3 = 15 s.
  double seconds(const std::vector<PieceLengths>& chunks, const FlowMessages& messages = {},
                 const std::vector<double>& after = {});

 private:
  /// Its input, its output and its length by their places in the lists below.
  struct Piece {
    std::uint32_t input = 0;
    std::uint32_t output = 0;
    std::uint32_t length = 0;
    std::uint16_t device = 0;
    std::uint8_t receives = 0;  // 1: its input comes from the stage before or behind
    std::uint8_t sends = 0;     // 1: its output goes there
  };

  std::vector<Piece> pieces_;   // each behind what it needs
  std::vector<double> done_;    // seconds by output; the first is what is there from the beginning
  std::vector<double> clocks_;  // by device
};

}  // namespace placet
