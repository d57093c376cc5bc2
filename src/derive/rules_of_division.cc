// Rules about what compute cuts divide: dimensions of tensors, tokens, samples, blocks. Compute
// cuts need whole parts; the sharding of states never does (it pads, or is uneven).
#include <algorithm>
#include <span>

#include "derive/rule_parts.h"
#include "placement/strategy.h"
#include "profile/conditions.h"
#include "units/shares.h"

namespace placet {
namespace {

/// a * b, and INT64_MAX where that is beyond range: nothing divides by it.
std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return saturating_product(largest_share(n, multiple), multiple);
}

// --- dimensions

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

bool fits(Index index, std::int64_t length, std::int64_t parts) {
  if (length % parts == 0) return true;
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

/// The degree nearest to `degree` at which all lengths divide, the other axes as they are.
std::int64_t nearest_degree(const std::vector<Constraint>& all, std::int64_t degree) {
  constexpr std::int64_t kFarthest = 1 << 16;
  const auto mends = [&](std::int64_t d) {
    return std::ranges::all_of(all, [d](const Constraint& one) {
      return fits(one.index, one.length, saturating_product(one.others, d));
    });
  };
  for (std::int64_t step = 0; step < kFarthest; ++step) {
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
      if (!fits(cut.dim->index, cut.length, cut.parts)) report(cut);
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
      cut.parts = saturating_product(cut.parts, cutter.parts);
      cut.last = &cutter;
    }
    cut.length = dim.index == Index::vocab ? padded(dim.parts) : dim.parts;
    return cut;
  }

  std::int64_t padded(std::int64_t vocabulary) const {
    std::int64_t multiple = std::max<std::int64_t>(1, job_.profile.vocabulary_multiple);
    if (job_.profile.vocabulary_multiple_times_tensor_degree) {
      for (const AxisPlacement& axis : job_.placement.axes) {
        if (axis.how.cut == Cut::tensor) multiple = saturating_product(multiple, axis.degree);
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
    if (wanted > 0 && nearest_degree(all, wanted) == wanted) return wanted;
    return nearest_degree(all, cutter.parts);
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
    findings_.push_back({.rule = "divisibility",
                         .where = place_of(*last.axis),
                         .message = message + " (" + cut.parameter->name + ")",
                         .cure = std::move(cure)});
  }

  const Job& job_;
  Findings& findings_;
  std::vector<Cutter> cutters_;
};

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

void judge_total(const Job& job, const Total& total, Findings& findings) {
  if (total.divides()) return;
  std::vector<const AxisPlacement*> axes;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut == total.cut && axis.degree > 1) axes.push_back(&axis);
  }
  const std::int64_t above = round_up(total.amount, total.parts);
  const std::int64_t below = total.amount - total.amount % total.parts;
  std::string cure = std::string(total.flag) + " " + std::to_string(above);
  if (below > 0) cure += " or " + std::to_string(below);
  const std::string where = axes.size() == 1 ? "axis " : axes.empty() ? "batch" : "axes ";
  findings.push_back({.rule = "divisibility",
                      .where = where + names_of_axes(axes),
                      .message = std::to_string(total.amount) + " " + total.noun +
                                 " do not divide by " + std::to_string(total.parts),
                      .cure = std::move(cure)});
}

// --- blocks

std::string spelled_shares(const AxisPlacement& axis, const std::vector<std::int64_t>& shares) {
  std::string text = with_degree(axis, axis.degree);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    text += (i == 0 ? "[" : ",") + std::to_string(shares[i]);
  }
  return text + "]";
}

/// What mends a pipeline: even shares where each stage gets a block, else fewer stages.
std::string mended(const AxisPlacement& axis, std::int64_t blocks, std::int64_t stages) {
  if (blocks < stages) return "at most " + std::to_string(blocks) + " stages";
  return spelled_shares(axis, even_blocks(blocks, stages));
}

struct Pipeline {
  const AxisPlacement* axis = nullptr;  // the outermost layer axis
  std::int64_t stages = 1;              // virtual
  std::int64_t blocks = 0;
};

std::string stages_and_blocks(const Pipeline& pipeline) {
  return std::to_string(pipeline.blocks) + " blocks and " + std::to_string(pipeline.stages) +
         " stages";
}

void judge_block_shares(const Pipeline& pipeline, Findings& findings) {
  const std::vector<std::int64_t>& shares = pipeline.axis->shares;
  std::int64_t sum = 0;
  for (std::int64_t share : shares) sum += share;
  const bool counted = static_cast<std::int64_t>(shares.size()) == pipeline.stages;
  if (counted && sum == pipeline.blocks) return;
  findings.push_back({.rule = "shares",
                      .where = place_of(*pipeline.axis),
                      .message = std::to_string(shares.size()) + " shares place " +
                                 std::to_string(sum) + " blocks; there are " +
                                 stages_and_blocks(pipeline),
                      .cure = mended(*pipeline.axis, pipeline.blocks, pipeline.stages)});
}

/// Parameters without shapes in one unit: there is nothing to put on stages.
void judge_bare_stages(const Job& job, const Pipeline& pipeline, Findings& findings) {
  const std::int64_t count = count_parameters(job.model).total;
  findings.push_back(
      {.rule = "meaning",
       .where = place_of(*pipeline.axis),
       .message = "a bare count of parameters is one unit, which stages cannot divide",
       .cure = "params=" + std::to_string(count) + ",units=" + std::to_string(pipeline.stages) +
               " or more units, or a model with shapes"});
}

void judge_even_blocks(const Job& job, const Pipeline& pipeline, Findings& findings) {
  const bool engine_cuts = job.profile.stage_cut != StageCut::even;
  const bool enough = pipeline.blocks >= pipeline.stages;
  if (enough && (engine_cuts || pipeline.blocks % pipeline.stages == 0)) return;
  findings.push_back({.rule = "divisibility",
                      .where = place_of(*pipeline.axis),
                      .message = enough ? std::to_string(pipeline.blocks) +
                                              " blocks do not divide by " +
                                              std::to_string(pipeline.stages) + " stages"
                                        : "there are only " + stages_and_blocks(pipeline),
                      .cure = mended(*pipeline.axis, pipeline.blocks, pipeline.stages)});
}

/// Whether the model is a count of parameters without shapes.
bool is_bare(const Model& model) {
  return std::ranges::all_of(model.kinds, [](const UnitKind& kind) {
    return kind.operators.empty() && std::ranges::all_of(kind.parameters, [](const Parameter& p) {
             return p.dims.size() == 1 && p.dims.front().index == Index::other;
           });
  });
}

/// Whether the axis divides a dim of some tensor.
bool cuts_something(const Model& model, const Cutter& cutter) {
  return std::ranges::any_of(model.kinds, [&](const UnitKind& kind) {
    return std::ranges::any_of(kind.parameters, [&](const Parameter& p) {
      return std::ranges::any_of(p.dims, [&](const Dim& dim) {
        return divides(cutter, dim.index, p.classes, std::nullopt);
      });
    });
  });
}

/// Rows of the first dimension that the compute cuts leave a device.
std::int64_t rows_left(const std::vector<Cutter>& cutters, const Parameter& parameter) {
  const Dim& first = parameter.dims.front();
  std::int64_t parts = 1;
  for (const Cutter& cutter : cutters) {
    if (divides(cutter, first.index, parameter.classes, std::nullopt)) {
      parts = saturating_product(parts, cutter.parts);
    }
  }
  return largest_share(first.size, parts);
}

/// The largest matrix that the cuts leave fewer rows than there are shards; none: nullptr.
const Parameter* largest_with_fewer_rows(const Model& model, const std::vector<Cutter>& cutters,
                                         std::int64_t shards) {
  const Parameter* largest = nullptr;
  for (const UnitKind& kind : model.kinds) {
    for (const Parameter& parameter : kind.parameters) {
      if (parameter.dims.size() < 2 || rows_left(cutters, parameter) >= shards) continue;
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

void judge_tokens(const Job& job, Findings& findings) {
  std::int64_t chunks = 1;
  std::int64_t coordinates = 1;
  std::int64_t residual = 1;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    if (axis.degree == 1) continue;
    if (axis.how.cut == Cut::sequence) {
      const std::int64_t each = a < job.attention.size() ? job.attention[a].sequence_chunks : 1;
      coordinates = saturating_product(coordinates, parts_of(axis));
      chunks = saturating_product(chunks, saturating_product(parts_of(axis), each));
    }
    if (axis.how.cut == Cut::tensor && axis.how.modes.activations == Mode::sharded_gather) {
      residual = saturating_product(residual, parts_of(axis));
    }
  }
  const std::int64_t tokens = job.batch.sequence;
  Total total{.amount = tokens,
              .parts = chunks,
              .cut = Cut::sequence,
              .noun = "tokens of a sample",
              .flag = "--seq"};
  judge_total(job, total, findings);
  const std::int64_t together = saturating_product(coordinates, residual);
  if (residual == 1 || (chunks > 1 && tokens % chunks != 0)) return;
  total.parts = together;
  total.cut = Cut::tensor;
  judge_total(job, total, findings);
}

// A table of learned positions has a row per token of a sample; rotated or added positions have
// none. Rows that are for padding are not the model's to use.
void judge_positions(const Job& job, Findings& findings) {
  std::int64_t rows = 0;
  for (const UnitKind& kind : job.model.kinds) {
    for (const Parameter& parameter : kind.parameters) {
      for (const Dim& dim : parameter.dims) {
        if (dim.index == Index::position) rows = dim.size;
      }
    }
  }
  if (rows == 0) return;
  if (job.model.figures.max_sequence > 0) rows = std::min(rows, job.model.figures.max_sequence);
  if (job.batch.sequence <= rows) return;
  findings.push_back({.rule = "positions",
                      .where = "model",
                      .message = "samples of " + std::to_string(job.batch.sequence) +
                                 " tokens, and learned positions for " + std::to_string(rows),
                      .cure = "--seq " + std::to_string(rows)});
}

void judge_samples(const Job& job, Findings& findings) {
  std::int64_t together = job.batch.micro;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut != Cut::batch && axis.how.cut != Cut::expert) continue;
    together = saturating_product(together, parts_of(axis));
  }
  Total total{.amount = job.batch.global, .parts = together, .flag = "--global-batch"};
  if (total.divides()) return;
  total.noun = "samples of a step, micro-batches of " + std::to_string(job.batch.micro) + ",";
  judge_total(job, total, findings);
}

void judge_blocks(const Job& job, Findings& findings) {
  const std::int64_t degree = pipeline_degree(job.placement);
  if (degree == 1) return;
  Pipeline pipeline;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut != Cut::layer || axis.degree == 1) continue;
    if (pipeline.axis == nullptr || !axis.shares.empty()) pipeline.axis = &axis;
  }
  pipeline.stages = virtual_stages(job.schedule, degree);
  pipeline.blocks = blocks_of(job.model);
  if (pipeline.blocks == 0) return;
  if (pipeline.blocks == 1 && is_bare(job.model)) {
    return judge_bare_stages(job, pipeline, findings);
  }
  if (pipeline.axis->shares.empty()) return judge_even_blocks(job, pipeline, findings);
  judge_block_shares(pipeline, findings);
}

void judge_shares(const Job& job, Findings& findings) {
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.shares.empty() || axis.how.cut == Cut::layer) continue;
    const bool counted = static_cast<std::int64_t>(axis.shares.size()) == axis.degree;
    const bool busy =
        std::ranges::all_of(axis.shares, [](std::int64_t share) { return share > 0; });
    if (counted && busy) continue;
    findings.push_back({.rule = "shares",
                        .where = place_of(axis),
                        .message = counted ? "a share of 0 leaves devices without work"
                                           : std::to_string(axis.shares.size()) +
                                                 " shares for a degree of " +
                                                 std::to_string(axis.degree),
                        .cure = counted ? "shares above 0" : "one share per coordinate"});
  }
}

// Shards of whole rows leave devices empty where compute cuts left fewer rows than shards.
void judge_storage(const Job& job, Findings& findings) {
  if (job.profile.grain != ShardGrain::row) return;
  std::int64_t shards = 1;
  const AxisPlacement* axis_of_shards = nullptr;
  for (const AxisPlacement& axis : job.placement.axes) {
    const bool data = axis.how.cut == Cut::batch || axis.how.cut == Cut::sequence;
    if (!data || axis.how.modes.parameters != Mode::sharded_gather) continue;
    shards = saturating_product(shards, axis.degree);
    axis_of_shards = &axis;
  }
  const std::vector<Cutter> cutters = cutters_of(job);
  const Parameter* largest = largest_with_fewer_rows(job.model, cutters, shards);
  if (largest == nullptr) return;
  findings.push_back({.rule = "compute-before-storage",
                      .severity = Severity::advice,
                      .where = largest->name,
                      .message = std::to_string(rows_left(cutters, *largest)) + " rows for " +
                                 std::to_string(shards) + " shards: the other devices hold padding",
                      .cure = "fewer shards along " + std::string(axis_of_shards->axis.text())});
}

}  // namespace placet
