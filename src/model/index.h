// Logical indices: the names of the dimensions that operators run over (docs/theory.md §1).
//
// Everything the theory says about cuts is said about these indices, never about an engine's words:
// a cut divides an index of the work, and a gradient is partial along an axis exactly if the axis
// cuts an index that the gradient's contraction sums over and that the parameter does not have.
#pragma once

#include <cstdint>
#include <string_view>

namespace placet {

enum class Index : std::uint8_t {
  sample,     // sequences of the (micro-)batch; cut by a batch axis
  token,      // positions of one sequence; cut by a sequence axis, and, outside the parallel
              // regions, by a tensor axis whose activations are S*
  key_token,  // positions a query looks at: never cut by itself
  choice,     // the k experts that a token is sent to
  hidden,     // the residual stream
  head,       // query heads (size = heads x head size, parts = heads); cut by a tensor axis
  kv_head,    // key/value heads; cut by a tensor axis, replicated where the degree exceeds them
  head_size,  // inside one head: never cut
  ffn,        // inner width of an MLP; cut by a tensor axis
  vocab,      // vocabulary; cut by a tensor axis
  expert,     // experts; cut by an expert axis
  latent,     // low-rank latents of attention: never cut
  adapter,    // LoRA rank: never cut
  state,      // recurrent (state-space) channels or heads; cut by a tensor axis
  position,   // learned positions: never cut
  other       // anything else: never cut
};

inline constexpr int kIndexCount = 16;

/// Set of indices as bits.
using IndexSet = std::uint32_t;
constexpr IndexSet bit_of(Index index) { return IndexSet{1} << static_cast<unsigned>(index); }
constexpr bool contains(IndexSet set, Index index) { return (set & bit_of(index)) != 0; }

/// Indices that a tensor cut divides unless the placement names others (hidden for 2D cuts).
inline constexpr IndexSet kTensorIndices = bit_of(Index::head) | bit_of(Index::kv_head) |
                                           bit_of(Index::ffn) | bit_of(Index::vocab) |
                                           bit_of(Index::state);

/// Spelling used in messages and reports: "kv_head".
std::string_view name_of(Index index);

/// One dimension of a tensor.
/// `size` counts elements. `parts` counts the pieces that may not be torn apart (heads of a
/// head dimension); size is a multiple of parts; for most dims parts == size.
/// sample and token dims of activations have size 0: their extent is the job's.
struct Dim {
  Index index = Index::other;
  std::int64_t size = 1;
  std::int64_t parts = 1;

  friend bool operator==(const Dim&, const Dim&) = default;
};

}  // namespace placet
