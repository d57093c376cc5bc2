#include <algorithm>

#include "derive/unit_kernels.h"
#include "units/at.h"

namespace placet {
namespace {

// Flash kernels work on squares of so many queries and keys; a window's edges cut some of them.
constexpr double kAttentionBlock = 128;

}  // namespace

struct UnitKernels::Scores {
  std::int64_t heads = 0;
  std::int64_t head_size = 1;   // of queries and keys
  std::int64_t value_size = 1;  // of values and of what comes out
  double pairs = 0;  // of a query and a key, of all heads and samples, causality not counted
  double seen = 1;   // part of the pairs that a causal, windowed kernel computes
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t length = 0;  // keys that a query sees at most at once
  double open = 0;          // part of the seen pairs in blocks of their own without a mask
};

/// A ring computes attention block by block, each of a device's chunks with each of another's: nc
/// chunks for n devices with c each, 1 where attention is computed at once. Of the triangle of all
/// pairs 1 / nc lies in blocks on the diagonal; all others have no mask. Case: four devices of two
/// chunks: 8, of which 7/8 without a mask.
std::int64_t UnitKernels::ring_chunks() const {
  std::int64_t chunks = 1;
  for (std::size_t a = 0; a < job.placement.axes.size() && a < job.attention.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    const AttentionExchange& exchange = job.attention[a];
    const bool in_blocks = !exchange.whole_keys_live && !exchange.cuts_heads;
    if (axis.how.cut != Cut::sequence || axis.degree == 1 || !in_blocks) continue;
    chunks *= axis.degree * exchange.sequence_chunks;
  }
  return chunks;
}

std::int64_t UnitKernels::part_size(int v) const {
  const Dim& heads = kind.values[at(v)].dims.back();
  return std::max<std::int64_t>(1, heads.size / std::max<std::int64_t>(1, heads.parts));
}

std::int64_t UnitKernels::head_size(const Operator& op) const {
  return part_size(op.inputs.front());
}

UnitKernels::Scores UnitKernels::scores_of(const Operator& op) const {
  Scores s;
  s.head_size = head_size(op);
  s.value_size = part_size(op.outputs.front());
  s.queries = layout.tokens;
  s.keys = job.batch.sequence;
  const std::int64_t per_head = layout.micro_batch * s.queries * s.head_size;
  s.heads = std::max<std::int64_t>(1, unit.local.values[at(op.inputs.front())] / per_head);
  s.pairs = static_cast<double>(layout.micro_batch * s.heads) * static_cast<double>(s.queries) *
            static_cast<double>(s.keys);
  s.seen = 0.5;
  s.length = s.keys;
  if (op.window > 0 && op.window < s.keys) {
    s.length = op.window;
    const double keys = static_cast<double>(s.keys);
    const double part = std::min(1.0, (static_cast<double>(op.window) + kAttentionBlock) / keys);
    s.seen = part - part * part / 2;
  }
  if (op.window == 0) {
    const std::int64_t chunks = ring_chunks();
    s.length = std::max<std::int64_t>(1, s.keys / chunks);
    s.open = 1 - 1 / static_cast<double>(chunks);
  }
  return s;
}

/// Forward the products of queries and keys and of probabilities and values; backward the first
/// once more, the gradients of queries and of keys, and on the side of values those of the
/// probabilities and of the values (Dao 2023, arXiv 2307.08691, algorithm 2).
KernelWork UnitKernels::fused_attention(const Operator& op, bool backward) const {
  const Scores s = scores_of(op);
  const auto q = static_cast<double>(s.head_size);
  const auto v = static_cast<double>(s.value_size);
  const double widths = backward ? 3 * q + 2 * v : q + v;
  return {.kind = KernelWork::Kind::attention,
          .what = op.name,
          .format = matmul_format_of(job.precision.compute),
          .bytes = (inputs(op) + outputs(op)) * (backward ? 2 : 1),
          .flops = 2 * s.pairs * s.seen * widths,
          .seen = s.seen,
          .open = s.open,
          .head_size = s.head_size,
          .length = s.length,
          .backward = backward,
          .launches = backward ? 2 : 1};
}

void UnitKernels::plain_attention(const Operator& op, bool backward,
                                  std::vector<KernelWork>& out) const {
  const Scores s = scores_of(op);
  const std::int64_t batch = layout.micro_batch * s.heads;
  const ProductShape scores{.batch = batch, .m = s.queries, .n = s.keys, .k = s.head_size};
  const ProductShape context{.batch = batch, .m = s.queries, .n = s.value_size, .k = s.keys};
  const int rounds = backward ? 2 : 1;
  for (int i = 0; i < rounds; ++i) {
    out.push_back(product(op, scores));
    out.push_back(product(op, context));
  }
  const double softmax = backward ? timing.score_bytes_backward : timing.score_bytes_forward;
  const bool drops = op.internals.size() > static_cast<std::size_t>(internal::kAttentionMask);
  const double each = softmax + (drops ? timing.dropped_score_bytes : 0.0);
  out.push_back(stream(op, each * s.pairs, drops ? 3 : 2));
}

/// Keys and values repeated for all heads where the kernel does not share them, which keeps them
/// unless the unit is recomputed: written forward; backward their gradients are read and added up.
void UnitKernels::write_expanded(const Operator& op, std::vector<KernelWork>& out) const {
  for (const int slot : {internal::kKeysExpanded, internal::kValuesExpanded}) {
    if (at(slot) >= op.internals.size()) continue;
    const int v = op.internals[at(slot)];
    if (unit.prepared.plain.is_kept[at(v)]) out.push_back(stream(op, bytes_of_value(v), 1));
  }
}

void UnitKernels::write_attention(const Operator& op, bool backward,
                                  std::vector<KernelWork>& out) const {
  if (timing.attention_kernel.empty()) {
    plain_attention(op, backward, out);
  } else {
    write_expanded(op, out);
    out.push_back(fused_attention(op, backward));
  }
}

}  // namespace placet
