// Rules about dimensions of tensors: compute cuts need whole parts of them. The sharding of states
// never does (it pads, or is uneven), but shards of whole rows may find fewer rows than devices.
#include <algorithm>
#include <limits>

#include "derive/rule_parts.h"
#include "placement/strategy.h"
#include "units/shares.h"

namespace placet {
namespace {

/// Axes that may divide a dimension: few, so that the rest of the work is short.
struct Cutter {
  const AxisPlacement* axis = nullptr;
  std::int64_t parts = 1;
  bool exchanges_heads = false;  // a sequence cut that attention carries out over heads
};

std::vector<Cutter> cutters_of(const Job& job) {
  std::vector<Cutter> cutters;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    if (axis.degree == 1) continue;
    const auto cuts = [](const How& how) {
      return how.cut == Cut::tensor || how.cut == Cut::expert;
    };
    const bool heads =
        axis.how.cut == Cut::sequence && a < job.attention.size() && job.attention[a].cuts_heads;
    const bool classes =
        std::ranges::any_of(axis.overrides, [&](const Override& one) { return cuts(one.how); });
    if (heads || cuts(axis.how) || classes) cutters.push_back({&axis, parts_of(axis), heads});
  }
  return cutters;
}

bool divides(const Cutter& cutter, Index index, ClassSet classes,
             std::optional<std::int64_t> block) {
  if (cutter.exchanges_heads && (index == Index::head || index == Index::kv_head)) return true;
  const How& how = how_of(*cutter.axis, classes, block);
  if (how.cut == Cut::tensor) return contains(how.tensor_indices, index);
  return how.cut == Cut::expert && index == Index::expert;
}

/// A vocabulary may be cut unevenly, the first parts one token longer, while each part has some
/// (docs/theory.md §5, Vocabulary).
bool fits(const Profile& profile, Index index, std::int64_t length, std::int64_t parts) {
  if (length % parts == 0) return true;
  if (index == Index::vocab) return !profile.vocabulary_divides && length >= parts;
  return index == Index::kv_head && parts % length == 0;  // each head on several devices
}

std::string noun_for(Index index) {
  switch (index) {
    case Index::head:
      return "heads";
    case Index::kv_head:
      return "kv heads";
    case Index::vocab:
      return "tokens of the vocabulary";
    case Index::expert:
      return "experts";
    case Index::ffn:
      return "columns of the MLP";
    case Index::hidden:
      return "columns of the residual stream";
    case Index::state:
      return "state-space heads";
    case Index::sample:
    case Index::token:
    case Index::key_token:
    case Index::choice:
    case Index::head_size:
    case Index::latent:
    case Index::adapter:
    case Index::position:
    case Index::other:
      break;
  }
  return std::string(name_of(index));
}

/// A length that the product of an axis's parts and those of others must divide.
struct Constraint {
  Index index = Index::other;
  std::int64_t length = 1;
  std::int64_t others = 1;

  friend bool operator==(const Constraint&, const Constraint&) = default;
};

/// Above it no degree mends them all: there are more parts than of some length's elements.
std::int64_t largest_mending(const std::vector<Constraint>& all) {
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const Constraint& one : all) {
    const bool may_repeat = one.index == Index::kv_head;  // each head on several devices
    if (!may_repeat && one.length > 0) most = std::min(most, one.length / one.others);
  }
  return most;
}

/// The degree nearest to `degree` at which all lengths divide, the other axes as they are.
std::int64_t nearest_degree(const Profile& profile, const std::vector<Constraint>& all,
                            std::int64_t degree) {
  constexpr std::int64_t kFarthest = 1 << 16;
  const auto mends = [&](std::int64_t d) {
    return std::ranges::all_of(all, [&](const Constraint& one) {
      return fits(profile, one.index, one.length, saturating_multiply(one.others, d));
    });
  };
  const std::int64_t most = largest_mending(all);
  for (std::int64_t step = 0; step < kFarthest; ++step) {
    if (step >= degree && degree + step > most) break;
    if (degree > step && mends(degree - step)) return degree - step;
    if (mends(degree + step)) return degree + step;
  }
  return 1;
}

class DimensionJudge {
 public:
  DimensionJudge(const Job& job, Findings& findings)
      : job_(job), findings_(findings), cutters_(cutters_of(job)) {}

  void judge() {
    if (cutters_.empty()) return;
    for_each_cut([&](const CutDim& cut) {
      if (!fits(job_.profile, cut.dim->index, cut.length, cut.parts)) {
        report(cut);
      } else if (cut.dim->index == Index::vocab && cut.length % cut.parts != 0) {
        advise(cut);
      }
    });
  }

 private:
  /// A dim of a parameter that some axes cut; `last` is the innermost of them.
  struct CutDim {
    const Parameter* parameter = nullptr;
    const Dim* dim = nullptr;
    std::int64_t length = 1;
    std::int64_t parts = 1;
    const Cutter* last = nullptr;
  };

  /// Calls visit(cut) for every dim that is cut. Where blocks are placed apart, for those of each.
  template <class Visit>
  void for_each_cut(Visit visit) const {
    const bool ranged = std::ranges::any_of(cutters_, [](const Cutter& cutter) {
      return std::ranges::any_of(cutter.axis->overrides, [](const Override& one) {
        return std::holds_alternative<BlockRange>(one.selector);
      });
    });
    if (ranged) {
      for (const Unit& unit : job_.model.units) visit_unit(unit, visit);
      return;
    }
    const int kinds = static_cast<int>(job_.model.kinds.size());
    for (int k = 0; k < kinds; ++k) visit_unit({k, 0}, visit);
  }

  template <class Visit>
  void visit_unit(const Unit& unit, Visit visit) const {
    const UnitKind& kind = job_.model.kinds[static_cast<std::size_t>(unit.kind)];
    const std::optional<std::int64_t> block =
        kind.role == UnitRole::block ? std::optional(unit.number) : std::nullopt;
    for (const Parameter& parameter : kind.parameters) {
      for (const Dim& dim : parameter.dims) {
        const CutDim cut = cut_of(parameter, dim, block);
        if (cut.parts > 1) visit(cut);
      }
    }
  }

  CutDim cut_of(const Parameter& parameter, const Dim& dim,
                std::optional<std::int64_t> block) const {
    CutDim cut{.parameter = &parameter, .dim = &dim};
    for (const Cutter& cutter : cutters_) {
      if (!divides(cutter, dim.index, parameter.classes, block)) continue;
      cut.parts = saturating_multiply(cut.parts, cutter.parts);
      cut.last = &cutter;
    }
    cut.length = dim.index == Index::vocab ? padded(dim.parts) : dim.parts;
    return cut;
  }

  std::int64_t padded(std::int64_t vocabulary) const {
    std::int64_t multiple = std::max<std::int64_t>(1, job_.profile.vocabulary_multiple);
    if (job_.profile.vocabulary_multiple_times_tensor_degree) {
      for (const AxisPlacement& axis : job_.placement.axes) {
        if (axis.how.cut == Cut::tensor) multiple = saturating_multiply(multiple, axis.degree);
      }
    }
    return round_up(vocabulary, multiple);
  }

  /// What the parts of an axis must divide, where it is the innermost to cut. A vocabulary that is
  /// padded to the degrees divides by any.
  std::vector<Constraint> constraints_of(const Cutter& cutter) const {
    std::vector<Constraint> all;
    for_each_cut([&](const CutDim& cut) {
      const bool follows =
          cut.dim->index == Index::vocab && job_.profile.vocabulary_multiple_times_tensor_degree;
      if (cut.last != &cutter || follows) return;
      const Constraint one{.index = cut.dim->index,
                           .length = std::max<std::int64_t>(1, cut.length),
                           .others = cut.parts / cutter.parts};
      if (std::ranges::find(all, one) == all.end()) all.push_back(one);
    });
    return all;
  }

  /// The one degree that mends all that the axis does not divide; the one that the product of the
  /// degrees asks for, if that does.
  std::int64_t degree_for(const Cutter& cutter) const {
    const std::vector<Constraint> all = constraints_of(cutter);
    const std::int64_t wanted = degree_by_product(job_, *cutter.axis);
    if (wanted > 0 && nearest_degree(job_.profile, all, wanted) == wanted) return wanted;
    return nearest_degree(job_.profile, all, cutter.parts);
  }

  /// One finding for all tensors that share index, length and parts.
  void report(const CutDim& cut) {
    const Cutter& last = *cut.last;
    const std::string message = std::to_string(cut.length) + " " + noun_for(cut.dim->index) +
                                " do not divide by " + std::to_string(cut.parts);
    const auto said = [&](const Finding& finding) { return finding.message.starts_with(message); };
    if (std::ranges::any_of(findings_, said)) return;
    std::string cure = with_degree(*last.axis, degree_for(last));
    if (!last.axis->shares.empty())
      cure = "shares of " + cure.substr(0, cure.find('=')) + " that fit";
    if (cut.dim->index == Index::vocab && job_.profile.vocabulary_multiple > 1) {
      cure += ", or a vocabulary padded to " + std::to_string(round_up(cut.length, cut.parts));
    }
    findings_.push_back({.rule = "divisibility",
                         .where = place_of(*last.axis),
                         .message = message + " (" + cut.parameter->name + ")",
                         .cure = std::move(cure)});
  }

  /// What an uneven cut of the vocabulary costs: every step waits for the fullest device.
  void advise(const CutDim& cut) {
    const std::int64_t largest = largest_share(cut.length, cut.parts);
    const std::int64_t padded = checked_multiply(largest, cut.parts, "padded vocabulary");
    std::string message =
        std::to_string(cut.length) + " " + noun_for(cut.dim->index) + " do not divide by " +
        std::to_string(cut.parts) + " and are cut unevenly: the fullest device has " +
        std::to_string(largest) + ", as many as if there were " + std::to_string(padded);
    const auto said = [&](const Finding& finding) { return finding.message == message; };
    if (std::ranges::any_of(findings_, said)) return;
    findings_.push_back({.rule = "divisibility",
                         .severity = Severity::advice,
                         .where = place_of(*cut.last->axis),
                         .message = std::move(message),
                         .cure = "a vocabulary padded to " + std::to_string(padded)});
  }

  const Job& job_;
  Findings& findings_;
  std::vector<Cutter> cutters_;
};

/// Whether the axis divides a dim of some tensor.
bool cuts_something(const UnitKind& kind, const Cutter& cutter) {
  return std::ranges::any_of(kind.parameters, [&](const Parameter& p) {
    return std::ranges::any_of(p.dims, [&](const Dim& dim) {
      return divides(cutter, dim.index, p.classes, std::nullopt);
    });
  });
}

bool cuts_something(const Model& model, const Cutter& cutter) {
  return std::ranges::any_of(model.kinds,
                             [&](const UnitKind& kind) { return cuts_something(kind, cutter); });
}

/// Rows of the first dimension that the compute cuts leave a device.
std::int64_t rows_left(const std::vector<Cutter>& cutters, const Parameter& parameter) {
  const Dim& first = parameter.dims.front();
  std::int64_t parts = 1;
  for (const Cutter& cutter : cutters) {
    if (divides(cutter, first.index, parameter.classes, std::nullopt)) {
      parts = saturating_multiply(parts, cutter.parts);
    }
  }
  return largest_share(first.size, parts);
}

/// Shards of a parameter that is gathered for use, along axes that cut samples or tokens; `axis`:
/// the last of them.
std::int64_t shards_of(const Job& job, const Parameter& parameter, const AxisPlacement*& axis) {
  std::int64_t shards = 1;
  for (const AxisPlacement& one : job.placement.axes) {
    const How& how = how_of(one, parameter.classes, std::nullopt);
    const bool data = how.cut == Cut::batch || how.cut == Cut::sequence;
    if (!data || how.modes.parameters != Mode::sharded_gather) continue;
    shards = saturating_multiply(shards, one.degree);
    axis = &one;
  }
  return shards;
}

/// Whether the cuts leave a matrix fewer rows than there are shards.
bool has_fewer_rows(const Job& job, const std::vector<Cutter>& cutters,
                    const Parameter& parameter) {
  if (parameter.dims.size() < 2) return false;
  const bool stacked = parameter.dims.front().index == Index::expert;
  if (stacked && job.profile.cuts_inside_few_experts) return false;
  const AxisPlacement* axis = nullptr;
  return rows_left(cutters, parameter) < shards_of(job, parameter, axis);
}

/// The largest matrix that the cuts leave fewer rows than there are shards; none: nullptr.
const Parameter* largest_with_fewer_rows(const Job& job, const std::vector<Cutter>& cutters) {
  const Parameter* largest = nullptr;
  for (const UnitKind& kind : job.model.kinds) {
    for (const Parameter& parameter : kind.parameters) {
      if (!has_fewer_rows(job, cutters, parameter)) continue;
      const bool larger =
          largest == nullptr || elements_of(parameter.dims) > elements_of(largest->dims);
      largest = larger ? &parameter : largest;
    }
  }
  return largest;
}

}  // namespace

void judge_dimensions(const Job& job, Findings& findings) { DimensionJudge(job, findings).judge(); }

// A tensor cut of a model in which it finds nothing to cut: all devices hold and compute the same.
void judge_idle_cuts(const Job& job, Findings& findings) {
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut != Cut::tensor || axis.degree == 1) continue;
    const Cutter cutter{.axis = &axis};
    if (cuts_something(job.model, cutter)) continue;
    findings.push_back({.rule = "no-effect",
                        .where = place_of(axis),
                        .message = "no tensor of the model has what this axis cuts: every device "
                                   "holds and computes all of it",
                        .cure = is_bare(job.model)
                                    ? "a model with shapes, or " + with_degree(axis, axis.degree) +
                                          " with a batch cut"
                                    : "another cut, or other indices"});
  }
}

// Shards of whole rows leave devices empty where compute cuts left fewer rows than shards.
void judge_storage(const Job& job, Findings& findings) {
  if (job.profile.grain != ShardGrain::row) return;
  const std::vector<Cutter> cutters = cutters_of(job);
  const Parameter* largest = largest_with_fewer_rows(job, cutters);
  if (largest == nullptr) return;
  const AxisPlacement* axis = nullptr;
  const std::int64_t shards = shards_of(job, *largest, axis);
  findings.push_back({.rule = "compute-before-storage",
                      .severity = Severity::advice,
                      .where = largest->name,
                      .message = std::to_string(rows_left(cutters, *largest)) + " rows for " +
                                 std::to_string(shards) + " shards: the other devices hold padding",
                      .cure = "fewer shards along " + std::string(axis->axis.text())});
}

}  // namespace placet
