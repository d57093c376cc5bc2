// Rules about what compute cuts divide of a step: tokens of a sample and samples. Learned positions
// bound the former.
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "derive/rule_parts.h"

namespace placet {
namespace {

std::string names_of_axes(std::span<const AxisPlacement* const> axes) {
  std::string names;
  for (const AxisPlacement* axis : axes) {
    names += (names.empty() ? "" : " x ") + std::string(axis->axis.text());
  }
  return names;
}

/// Something per sample or step that the axes with a cut together must divide.
struct Total {
  std::int64_t amount = 0;
  std::int64_t parts = 1;
  Cut cut = Cut::batch;
  std::string noun;
  const char* flag = "";  // that sets it

  bool divides() const { return amount <= 0 || parts <= 1 || amount % parts == 0; }
};

/// A multiple of `round` near the amount: the one above, and the one below if there is one.
std::string multiples_near(const char* flag, std::int64_t amount, std::int64_t round) {
  const std::int64_t below = amount - amount % round;
  std::string cure = std::string(flag) + " " + std::to_string(round_up(amount, round));
  if (below > 0) cure += " or " + std::to_string(below);
  return cure;
}

void judge_total(const Job& job, const Total& total, Findings& findings) {
  if (total.divides()) return;
  std::vector<const AxisPlacement*> axes;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut == total.cut && axis.degree > 1) axes.push_back(&axis);
  }
  const std::string where = axes.size() == 1 ? "axis " : axes.empty() ? "batch" : "axes ";
  findings.push_back({.rule = "divisibility",
                      .where = where + names_of_axes(axes),
                      .message = std::to_string(total.amount) + " " + total.noun +
                                 " do not divide by " + std::to_string(total.parts),
                      .cure = multiples_near(total.flag, total.amount, total.parts)});
}
/// Rows of the model's table of learned positions; 0: it has none, positions are rotated or added.
std::int64_t learned_positions(const UnitKind& kind) {
  for (const Parameter& parameter : kind.parameters) {
    const auto dim = std::ranges::find(parameter.dims, Index::position, &Dim::index);
    if (dim != parameter.dims.end()) return dim->size;
  }
  return 0;
}

}  // namespace

void judge_tokens(const Job& job, Findings& findings) {
  std::int64_t chunks = 1;
  std::int64_t coordinates = 1;
  std::int64_t residual = 1;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    if (axis.degree == 1) continue;
    if (axis.how.cut == Cut::sequence) {
      const std::int64_t each = a < job.attention.size() ? job.attention[a].sequence_chunks : 1;
      coordinates = saturating_multiply(coordinates, parts_of(axis));
      chunks = saturating_multiply(chunks, saturating_multiply(parts_of(axis), each));
    }
    if (axis.how.cut == Cut::tensor && axis.how.modes.activations == Mode::sharded_gather) {
      residual = saturating_multiply(residual, parts_of(axis));
    }
  }
  const std::int64_t tokens = job.batch.sequence;
  Total total{.amount = tokens,
              .parts = chunks,
              .cut = Cut::sequence,
              .noun = "tokens of a sample",
              .flag = "--seq"};
  judge_total(job, total, findings);
  const std::int64_t together = saturating_multiply(coordinates, residual);
  if (residual == 1 || (chunks > 1 && tokens % chunks != 0)) return;
  total.parts = together;
  total.cut = Cut::tensor;
  judge_total(job, total, findings);
}

// Scans and convolutions read the tokens before their own.
void judge_recurrences(const Job& job, Findings& findings) {
  const auto runs_along_tokens = [](const Operator& op) {
    return op.kind == OpKind::scan || op.kind == OpKind::convolution;
  };
  const auto kind = std::ranges::find_if(job.model.kinds, [&](const UnitKind& one) {
    return std::ranges::any_of(one.operators, runs_along_tokens);
  });
  if (kind == job.model.kinds.end()) return;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut != Cut::sequence || axis.degree == 1) continue;
    findings.push_back({.rule = "recurrence",
                        .where = place_of(axis),
                        .message = "what devices exchange for the recurrences of " + kind->name +
                                   " along a cut sequence is not derived: the figures lack it",
                        .cure = with_degree(axis, axis.degree) + " with a batch or tensor cut"});
  }
}

// Routed tokens reach their experts whole (docs/theory.md §4.5).
void judge_expert_columns(const Job& job, Findings& findings) {
  if (job.model.figures.experts == 0) return;
  for (const AxisPlacement& axis : job.placement.axes) {
    const IndexSet others = axis.how.tensor_indices & ~bit_of(Index::hidden);
    const bool both = contains(axis.how.tensor_indices, Index::hidden) && others != 0;
    if (axis.how.cut != Cut::tensor || axis.degree == 1 || !both) continue;
    findings.push_back({.rule = "expert-columns",
                        .where = place_of(axis),
                        .message = "what devices exchange for experts whose matrices are cut on "
                                   "both sides is not derived: the figures lack it",
                        .cure = with_degree(axis, axis.degree) +
                                " with a tensor cut that leaves the stream's columns whole"});
  }
}

// A table of learned positions has a row per token of a sample. Rows that are for padding are not
// the model's to use.
void judge_positions(const Job& job, Findings& findings) {
  std::int64_t rows = 0;
  for (const UnitKind& kind : job.model.kinds) rows = std::max(rows, learned_positions(kind));
  if (rows == 0) return;
  if (job.model.figures.max_sequence > 0) rows = std::min(rows, job.model.figures.max_sequence);
  if (job.batch.sequence <= rows) return;
  findings.push_back({.rule = "positions",
                      .where = "model",
                      .message = "samples of " + std::to_string(job.batch.sequence) +
                                 " tokens, and learned positions for " + std::to_string(rows),
                      .cure = "--seq " + std::to_string(rows)});
}

namespace {

/// Samples of a round that shares do not divide: micro-batches that they do, and a step of whole
/// rounds of these.
void judge_round(const Job& job, std::int64_t together, std::int64_t parts, Findings& findings) {
  const std::int64_t times = parts / std::gcd(together, parts);
  const std::int64_t round = saturating_multiply(together, times);
  std::string cure = "--micro-batch " + std::to_string(saturating_multiply(job.batch.micro, times));
  if (job.batch.global > 0 && job.batch.global % round != 0) {
    cure += " with " + multiples_near("--global-batch", job.batch.global, round);
  }
  findings.push_back({.rule = "divisibility",
                      .where = "placement",
                      .message = std::to_string(together) +
                                 " samples of a round do not divide by shares of " +
                                 std::to_string(parts),
                      .cure = std::move(cure)});
}

}  // namespace

// Devices take `--micro-batch` samples each at once, on average: a step is a whole number of such
// rounds, and shares divide the samples of each round.
void judge_samples(const Job& job, Findings& findings) {
  std::int64_t together = job.batch.micro;
  std::int64_t parts = 1;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut != Cut::batch && axis.how.cut != Cut::expert) continue;
    together = saturating_multiply(together, axis.degree);
    // Another number of shares than devices is a finding of its own.
    const bool counted = std::cmp_equal(axis.shares.size(), axis.degree);
    parts = saturating_multiply(parts, counted ? parts_of(axis) : axis.degree);
  }
  if (together % parts != 0) {
    judge_round(job, together, parts, findings);
    return;
  }
  Total total{.amount = job.batch.global, .parts = together, .flag = "--global-batch"};
  if (total.divides()) return;
  total.noun = "samples of a step, micro-batches of " + std::to_string(job.batch.micro) + ",";
  judge_total(job, total, findings);
}

}  // namespace placet
