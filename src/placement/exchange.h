// How attention reaches the keys and values of other devices along a sequence cut: the realisations
// ring, gather and heads, as data (docs/theory.md §4.3).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace placet {

/// Which of the attention core's tensors a step of the exchange moves.
enum class AttentionTensor : std::uint8_t {
  query,
  keys,
  values,
  output,
  query_gradient,
  keys_gradient,
  values_gradient,
  output_gradient
};

/// One movement around the attention core, of whole tensors as they stand on the device.
struct ExchangeStep {
  /// gather: S(token) -> R by one all-gather. pieces: the same round a ring, n-1 send/receives of
  /// the device's part. scatter_sum: P -> S(token) by one reduce-scatter; pieces_sum: round a ring.
  /// heads: S(token) -> S(head) by one all-to-all; tokens: back.
  enum class Movement : std::uint8_t { gather, pieces, scatter_sum, pieces_sum, heads, tokens };
  Movement movement = Movement::gather;
  std::vector<AttentionTensor> tensors;  // moved in one message if `together`, else one each
  bool together = false;
  bool in_backward = false;

  friend bool operator==(const ExchangeStep&, const ExchangeStep&) = default;
};

struct AttentionExchange {
  std::string name;  // for reports only
  std::vector<ExchangeStep> steps;
  bool whole_keys_live = false;      // the device holds all keys and values at once
  bool cuts_heads = false;           // the core computes a part of the heads for all tokens
  std::int64_t sequence_chunks = 1;  // the sequence must divide by this times the degree

  friend bool operator==(const AttentionExchange&, const AttentionExchange&) = default;
};

}  // namespace placet
