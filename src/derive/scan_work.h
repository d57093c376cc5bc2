// The work of a state-space recurrence computed in chunks of tokens: inside a chunk products of
// matrices as of attention, between chunks a state per head that is handed on (Dao, Gu 2024,
// arXiv:2405.21060, section 6; its kernels: state-spaces/mamba, ops/triton/ssd_combined.py).
#pragma once

#include <cstdint>

namespace placet {

struct ScanShape {
  std::int64_t tokens = 0;  // of all samples
  std::int64_t heads = 0;
  std::int64_t groups = 1;     // heads of a group share input and output vectors
  std::int64_t head_size = 0;  // channels of a head
  std::int64_t state = 0;      // numbers per channel that are handed on
  std::int64_t chunk = 1;      // tokens

  double channels() const { return static_cast<double>(tokens * heads * head_size); }
};

/// Forward per token and head of p channels and n numbers each: what the chunk adds to the state
/// and what the state adds to the result, 2pn each, and the pairs of tokens below the diagonal of a
/// chunk of q, qp; per token and group their scores, 2qn. Backward states and scores are made
/// again; there are gradients of states (2pn), channels (2pn + qp), input and output vectors (2pn
/// each), scores (qp, and 4qn per group) and decays (qp).
/// Case: p = 64, n = q = 128, a group per head: 73,728 forward, 204,800 backward.
double scan_flops(const ScanShape& shape, bool backward);

/// Bytes through device memory. Forward states are written in fp32, handed on and written in half
/// precision, and read: 12 per number of a chunk's state; channels are read twice and the result
/// written. Backward 34: made and handed on again in fp32 (12), their gradients written in fp32
/// (4), both read, handed on and written in half precision (12), and read by the gradients of
/// channels, input and output vectors (2 each); channels and gradients of results are read five
/// times each and gradients of channels written.
/// Case: 128 tokens in one chunk, one head, p = 64, n = 128: 12 x 8,192 + 6 x 8,192 forward.
double scan_bytes(const ScanShape& shape, bool backward);

/// Kernels of the host's, each way: cumulated decays, states, their passing, scores, results;
/// backward these again and those of the gradients.
inline constexpr std::int64_t kScanLaunches = 5;
inline constexpr std::int64_t kScanLaunchesBackward = 20;

}  // namespace placet
