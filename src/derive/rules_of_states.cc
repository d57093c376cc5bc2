// Rules about modes, options and the optimizer: but for blocks of an optimizer, nothing here looks
// at sizes.
#include <algorithm>

#include "derive/rule_parts.h"
#include "placement/grammar.h"
#include "placement/strategy.h"
#include "profile/conditions.h"

namespace placet {
namespace {

/// Calls visit(how, selector or null) for the axis's own How and every override of it.
template <class Visit>
void for_each_how(const AxisPlacement& axis, Visit visit) {
  visit(axis.how, nullptr);
  for (const Override& one : axis.overrides) visit(one.how, &one.selector);
}

std::string place_of(const AxisPlacement& axis, const Selector* selector) {
  return selector == nullptr ? place_of(axis) : place_of(axis, *selector);
}

bool is_checkpoints(const Selector* selector) {
  return selector != nullptr && std::holds_alternative<Checkpoints>(*selector);
}

bool is_experts(const Selector* selector) {
  const auto* tensor_class = selector ? std::get_if<TensorClass>(selector) : nullptr;
  return tensor_class != nullptr && *tensor_class == TensorClass::experts;
}

/// How a term of the grammar places it: "tp=8:tensor(S,S,S,R)" or, of a class,
/// "experts:expert(S,S,S,R)".
std::string term_for(const AxisPlacement& axis, const Selector* selector, const How& how,
                     const Modes& modes) {
  const std::string term = print_cut(how.cut, modes, how.tensor_indices);
  if (selector != nullptr) return spell(*selector) + ":" + term;
  return with_degree(axis, axis.degree) + ":" + term;
}

// --- meaning

bool is_data_cut(Cut cut) { return cut == Cut::batch || cut == Cut::sequence; }

void judge_modes(const AxisPlacement& axis, const Selector* selector, const How& how,
                 Findings& findings) {
  Modes nearest = how.modes;
  const State* wrong = nullptr;
  for (const State& state : kStates) {
    if (is_checkpoints(selector) && state != State::activations) continue;
    const bool rebuilt = is_checkpoints(selector) && how.modes.activations == Mode::materialized;
    if (is_meaningful(how.cut, state, how.modes[state]) && !rebuilt) continue;
    wrong = &state;
    break;
  }
  if (wrong == nullptr) return;
  nearest = nearest_meaningful(how.cut, how.modes);
  std::string reason = " cannot be " + std::string(symbol_of(how.modes[*wrong])) + " along a " +
                       std::string(name_of(how.cut)) + " cut";
  if (is_checkpoints(selector) && how.modes.activations == Mode::materialized) {
    nearest.activations = default_modes(how.cut).activations;
    reason = " are the inputs that recomputation starts from and cannot be M";
  }
  findings.push_back({.rule = "meaning",
                      .where = place_of(axis, selector),
                      .message = std::string(name_of(*wrong)) + reason,
                      .cure = term_for(axis, selector, how, nearest)});
}

void judge_expert_cut(const AxisPlacement& axis, const Selector* selector, const How& how,
                      Findings& findings) {
  if (how.cut != Cut::expert || is_experts(selector)) return;
  Modes batch = nearest_meaningful(Cut::batch, how.modes);
  if (batch.parameters == Mode::sharded_gather) batch.parameters = Mode::replicated;
  const std::string rest =
      selector != nullptr ? spell(*selector) + ":" + print_cut(Cut::batch, batch)
                          : with_degree(axis, axis.degree) + ":" + print_cut(Cut::batch, batch) +
                                ";experts:" + print_cut(how.cut, how.modes);
  findings.push_back({.rule = "meaning",
                      .where = place_of(axis, selector),
                      .message = "an expert cut divides experts only; other tensors have none",
                      .cure = rest});
}

/// What a class is to do along the axis that the axis's own cut leaves no room for.
std::string clash_of(Cut own, Cut other) {
  if (is_data_cut(own) && is_data_cut(other)) {
    return own == Cut::batch ? "devices of a batch cut work on different samples"
                             : "devices of a sequence cut work on parts of the same samples";
  }
  if (own == Cut::layer) return "devices of a layer cut hold different blocks";
  if (other == Cut::layer) return "a class of tensors has no stages of its own";
  return own == Cut::tensor
             ? "devices of a tensor cut work on the same samples"
             : "devices of a " + std::string(name_of(own)) + " cut work on different tokens";
}

/// Dense work goes from tensor to tensor on one division of the tokens, so that its classes share a
/// cut; routed tokens find their experts anyway, but they are the axis's own.
void judge_class_cut(const AxisPlacement& axis, const Override& one, Findings& findings) {
  const Cut own = axis.how.cut;
  const Cut other = one.how.cut;
  const bool alike = own == other;
  const bool among_tokens = is_data_cut(own) && is_data_cut(other);
  const bool routed =
      is_experts(&one.selector) && own != Cut::layer && other != Cut::layer && !among_tokens;
  const bool told = other == Cut::expert && !is_experts(&one.selector);  // by judge_expert_cut
  if (alike || routed || told || own == Cut::expert || axis.degree == 1) return;
  if (is_checkpoints(&one.selector)) return;
  std::string cure =
      spell(one.selector) + ":" + print_cut(own, nearest_meaningful(own, one.how.modes));
  if (own == Cut::tensor) {
    cure = "the class as tensor, with only the indices that are to be cut";
  } else if (other == Cut::tensor || other == Cut::expert) {
    cure = "an axis of its own for the " + std::string(name_of(other)) + " cut";
  }
  findings.push_back({.rule = "meaning",
                      .where = place_of(axis, one.selector),
                      .message = clash_of(own, other) + "; a " + std::string(name_of(other)) +
                                 " cut of one class does not go with it",
                      .cure = std::move(cure)});
}

/// The residual stream runs through all dense tensors: an axis divides its columns for all of them,
/// or for none.
void judge_stream_columns(const AxisPlacement& axis, const Override& one, Findings& findings) {
  const bool both = axis.how.cut == Cut::tensor && one.how.cut == Cut::tensor && axis.degree > 1;
  if (!both || is_experts(&one.selector) || is_checkpoints(&one.selector)) return;
  const IndexSet hidden = bit_of(Index::hidden);
  const IndexSet own = axis.how.tensor_indices & hidden;
  if (own == (one.how.tensor_indices & hidden)) return;
  How cure = one.how;
  cure.tensor_indices = own | (cure.tensor_indices & ~hidden);
  findings.push_back(
      {.rule = "meaning",
       .where = place_of(axis, one.selector),
       .message = "the residual stream is one: its columns are cut for all tensors or for none",
       .cure = cure.tensor_indices == 0 ? "the class as the axis has it"
                                        : term_for(axis, &one.selector, cure, cure.modes)});
}

/// A divided stream comes together for cut work in the blocks; without any there is nothing for it.
void judge_divided_stream(const AxisPlacement& axis, Findings& findings) {
  const IndexSet in_blocks = kTensorIndices & ~bit_of(Index::vocab);
  const bool divided = axis.how.cut == Cut::tensor &&
                       axis.how.modes.activations == Mode::sharded_gather && axis.degree > 1;
  const bool cuts_columns = contains(axis.how.tensor_indices, Index::hidden);
  const bool cuts_blocks = (axis.how.tensor_indices & in_blocks) != 0;
  if (!divided || (cuts_blocks && !cuts_columns)) return;
  Modes whole = axis.how.modes;
  whole.activations = Mode::replicated;
  findings.push_back({.rule = "meaning",
                      .where = place_of(axis),
                      .message = cuts_columns
                                     ? "activations cannot be S* along a cut of the residual "
                                       "stream's columns, which divides them already"
                                     : "activations cannot be S* along a cut that leaves blocks "
                                       "whole",
                      .cure = term_for(axis, nullptr, axis.how, whole)});
}

// --- update

void judge_one_update(const AxisPlacement& axis, const Selector* selector, const How& how,
                      Findings& findings) {
  if (!is_data_cut(how.cut) || is_checkpoints(selector) || axis.degree == 1) return;
  if (how.modes.optimizer != Mode::replicated) return;
  const Mode parameters = how.modes.parameters;
  const Mode gradients = how.modes.gradients;
  const bool owned = parameters == Mode::sharded_gather || parameters == Mode::offloaded;
  const bool scattered = gradients == Mode::sharded || gradients == Mode::offloaded;
  if (!owned && !scattered) return;
  Modes cure = how.modes;
  cure.optimizer = Mode::sharded;
  findings.push_back(
      {.rule = "update-where-owned",
       .severity = Severity::warning,
       .where = place_of(axis, selector),
       .message = owned ? "every device updates all parameters and keeps 1/" +
                              std::to_string(axis.degree) + " of them"
                        : "gradients are scattered to owners, then gathered for an update that has "
                          "none",
       .cure = term_for(axis, selector, how, cure)});
}

// --- effects

bool gathers(Mode mode) {
  switch (mode) {
    case Mode::sharded_gather:
    case Mode::materialized:
    case Mode::offloaded:
      return true;
    case Mode::replicated:
    case Mode::sharded:
      return false;
  }
  return false;
}

void judge_options(const AxisPlacement& axis, const Selector* selector, const How& how,
                   Findings& findings) {
  if (gathers(how.modes.parameters) || (how.keep == Keep::none && !how.prefetch)) return;
  const std::string option = how.keep == Keep::none   ? "prefetch"
                             : how.keep == Keep::step ? "keep-step"
                                                      : "keep";
  findings.push_back({.rule = "no-effect",
                      .severity = Severity::warning,
                      .where = place_of(axis, selector),
                      .message = option + " has nothing to act on: no parameters are gathered",
                      .cure = term_for(axis, selector, how, how.modes) + ", without it"});
}

/// Whether activations are made again is said by the axis: a class of tensors has none of its own.
void judge_class_recompute(const AxisPlacement& axis, const Selector* selector, const How& how,
                           Findings& findings) {
  const bool again = how.modes.activations == Mode::materialized;
  if (selector == nullptr || is_checkpoints(selector) || !again) return;
  if (axis.how.modes.activations == Mode::materialized) return;
  findings.push_back({.rule = "no-effect",
                      .severity = Severity::warning,
                      .where = place_of(axis, selector),
                      .message = "activations are made again as the axis says: M changes nothing "
                                 "of a class",
                      .cure = "M on the axis, or --recompute every=N or first=N"});
}

bool has_class(const Model& model, TensorClass wanted) {
  return std::ranges::any_of(model.kinds, [&](const UnitKind& kind) {
    return std::ranges::any_of(kind.parameters,
                               [&](const Parameter& p) { return contains(p.classes, wanted); });
  });
}

/// Whether the model has tensors that the selector speaks of. Prediction modules count: their class
/// may be placed before they are switched on.
bool names_something(const Job& job, const Selector& selector) {
  if (const auto* tensor_class = std::get_if<TensorClass>(&selector)) {
    return has_class(job.model, *tensor_class);
  }
  if (const auto* range = std::get_if<BlockRange>(&selector)) {
    return range->last < blocks_of(job.model);
  }
  return true;
}

void judge_classes(const Job& job, const AxisPlacement& axis, Findings& findings) {
  for (const Override& one : axis.overrides) {
    if (names_something(job, one.selector)) continue;
    const bool blocks = std::holds_alternative<BlockRange>(one.selector);
    const std::string last = std::to_string(blocks_of(job.model) - 1);
    findings.push_back({.rule = "no-effect",
                        .severity = Severity::warning,
                        .where = place_of(axis, one.selector),
                        .message = blocks ? "the last block of the model is " + last
                                          : "the model has no tensors of this class",
                        .cure = blocks ? "a range up to " + last : "the axis without this class"});
  }
}

// --- regions

std::string region_name(UpdateRegion region) {
  switch (region) {
    case UpdateRegion::element:
      return "elements";
    case UpdateRegion::block:
      return "blocks";
    case UpdateRegion::row_and_column:
      return "rows and columns";
    case UpdateRegion::matrix:
      return "matrices";
  }
  return "";
}

/// Whether the mode of the optimizer state leaves a device a part of a tensor along the axis.
bool tears(const How& how, ShardGrain grain) {
  const Mode mode = how.modes.optimizer;
  if (mode != Mode::sharded && mode != Mode::offloaded) return false;
  switch (how.cut) {
    case Cut::tensor:
      return true;
    case Cut::batch:
    case Cut::sequence:
      // Flat shards over many tensors tear at most those on a border.
      return grain == ShardGrain::element || grain == ShardGrain::row;
    case Cut::layer:
    case Cut::expert:
      return false;
  }
  return false;
}

/// Whether holds(parameter, block) is true of some tensor that looks at the axis this way; `block`:
/// the first of those that the selector speaks of.
template <class Holds>
bool some_tensor(const Job& job, const AxisPlacement& axis, const Selector* selector,
                 const How& how, Holds holds) {
  const auto* range = selector == nullptr ? nullptr : std::get_if<BlockRange>(selector);
  const auto block = range == nullptr ? std::nullopt : std::optional(range->first);
  return std::ranges::any_of(job.model.kinds, [&](const UnitKind& kind) {
    return std::ranges::any_of(kind.parameters, [&](const Parameter& p) {
      return &how_of(axis, p.classes, block) == &how && holds(p, block);
    });
  });
}

/// Into how many shards of optimizer state the axes divide a tensor, cuts included.
std::int64_t pieces_of(const Job& job, const Parameter& p, std::optional<std::int64_t> block) {
  std::int64_t shards = 1;
  for (const AxisPlacement& axis : job.placement.axes) {
    const How& how = how_of(axis, p.classes, block);
    const bool owned =
        how.modes.optimizer == Mode::sharded || how.modes.optimizer == Mode::offloaded;
    const bool cuts = std::ranges::any_of(p.dims, [&](const Dim& dim) {
      return how.cut == Cut::tensor ? contains(how.tensor_indices, dim.index)
                                    : how.cut == Cut::expert && dim.index == Index::expert;
    });
    if (cuts || (is_data_cut(how.cut) && owned)) {
      shards = saturating_multiply(shards, parts_of(axis));
    }
  }
  return shards;
}

/// Whether some tensor that looks at the axis this way has shards that begin inside a block. Case:
/// 4096 elements over 8 devices, blocks of 256: none.
bool tears_blocks(const Job& job, const AxisPlacement& axis, const Selector* selector,
                  const How& how) {
  const std::int64_t block = std::max<std::int64_t>(1, job.optimizer.block);
  return some_tensor(job, axis, selector, how, [&](const Parameter& p, const auto& number) {
    return p.trainable && region_of(job.optimizer, p) == UpdateRegion::block &&
           elements_of(p.dims) % saturating_multiply(pieces_of(job, p, number), block) != 0;
  });
}

/// Whether the optimizer sees regions of some tensor that looks at the axis this way: it may update
/// vectors, embedding and head element by element.
bool sees_regions(const Job& job, const AxisPlacement& axis, const Selector* selector,
                  const How& how) {
  return some_tensor(job, axis, selector, how, [&](const Parameter& p, const auto&) {
    return p.trainable && p.dims.size() > 1 && region_of(job.optimizer, p) != UpdateRegion::element;
  });
}

void judge_region(const Job& job, const AxisPlacement& axis, const Selector* selector,
                  const How& how, Findings& findings) {
  const UpdateRegion region = job.optimizer.region;
  if (is_checkpoints(selector) || !tears(how, job.profile.grain)) return;
  if (region == UpdateRegion::block &&
      (how.cut == Cut::tensor || !tears_blocks(job, axis, selector, how))) {
    return;
  }
  if (region == UpdateRegion::matrix && !sees_regions(job, axis, selector, how)) return;
  Modes cure = how.modes;
  cure.optimizer = Mode::sharded_gather;
  std::string message = job.optimizer.name + " updates whole " + region_name(region) +
                        "; along this axis a device owns parts of them";
  if (region == UpdateRegion::row_and_column) message += ", so partial sums must be reduced";
  findings.push_back(
      {.rule = "whole-regions",
       .severity = region == UpdateRegion::matrix ? Severity::error : Severity::warning,
       .where = place_of(axis, selector),
       .message = std::move(message),
       .cure = term_for(axis, selector, how, cure)});
}

// --- materialized

/// Gradients used up inside backward: what the step asks of them that needs them later.
void judge_consumed_gradients(const Job& job, const AxisPlacement& axis, const Selector* selector,
                              const How& how, Findings& findings) {
  if (how.modes.gradients != Mode::materialized) return;
  Modes whole = how.modes;
  whole.gradients = default_modes(how.cut).gradients;
  const auto add = [&](const char* reason) {
    findings.push_back(
        {.rule = "materialized-gradients",
         .where = place_of(axis, selector),
         .message = std::string("gradients are used up inside backward, but ") + reason,
         .cure = term_for(axis, selector, how, whole)});
  };
  if (micro_batches_per_step(job) > 1) add("the step adds up several micro-batches");
  if (job.clips_by_global_norm) add("clipping needs their norm over all units");
  if (job.scales_loss_dynamically) add("loss scaling may have to drop the step");
}

/// Parameters rebuilt at each use: from what?
void judge_rebuilt_parameters(const Job& job, const AxisPlacement& axis, const Selector* selector,
                              const How& how, Findings& findings) {
  const bool has_master = job.precision.master.has_value() && job.optimizer.keeps_master &&
                          job.precision.parameters != Dtype::fp32;
  if (how.modes.parameters != Mode::materialized) return;
  const bool frozen =
      has_master && some_tensor(job, axis, selector, how,
                                [](const Parameter& p, const auto&) { return !p.trainable; });
  if (has_master && !frozen) return;
  Modes resting = how.modes;
  resting.parameters = default_modes(how.cut).parameters;
  findings.push_back(
      {.rule = "materialized-parameters-source",
       .where = place_of(axis, selector),
       .message = frozen ? "parameters are rebuilt from the master copy, and frozen ones have none"
                         : "parameters are rebuilt from the master copy, and none rests in the "
                           "optimizer state",
       .cure = term_for(axis, selector, how, resting)});
}

}  // namespace

void judge_meaning(const Job& job, Findings& findings) {
  for (const AxisPlacement& axis : job.placement.axes) {
    for_each_how(axis, [&](const How& how, const Selector* selector) {
      judge_modes(axis, selector, how, findings);
      judge_expert_cut(axis, selector, how, findings);
    });
    for (const Override& one : axis.overrides) {
      judge_class_cut(axis, one, findings);
      judge_stream_columns(axis, one, findings);
    }
    judge_divided_stream(axis, findings);
  }
}

void judge_update(const Job& job, Findings& findings) {
  for (const AxisPlacement& axis : job.placement.axes) {
    for_each_how(axis, [&](const How& how, const Selector* selector) {
      judge_one_update(axis, selector, how, findings);
    });
  }
}

// Matrices (and, for statistics by rows and columns, the sums over them) must be seen whole; blocks
// only ask that shards begin at their borders, which padding gives.
void judge_regions(const Job& job, Findings& findings) {
  const UpdateRegion region = job.optimizer.region;
  const bool padded =
      job.profile.pad_elements % std::max<std::int64_t>(1, job.optimizer.block) == 0;
  if (region == UpdateRegion::element || (region == UpdateRegion::block && padded)) return;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.degree == 1) continue;
    for_each_how(axis, [&](const How& how, const Selector* selector) {
      judge_region(job, axis, selector, how, findings);
    });
  }
}

void judge_materialized(const Job& job, Findings& findings) {
  for (const AxisPlacement& axis : job.placement.axes) {
    for_each_how(axis, [&](const How& how, const Selector* selector) {
      if (is_checkpoints(selector)) return;
      judge_consumed_gradients(job, axis, selector, how, findings);
      judge_rebuilt_parameters(job, axis, selector, how, findings);
    });
  }
}

void judge_recompute(const Job& job, Findings& findings) {
  const Recompute::Kind kind = job.recompute.kind;
  if (kind == Recompute::Kind::none || kind == Recompute::Kind::full) return;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.modes.activations != Mode::materialized) continue;
    findings.push_back({.rule = "recompute",
                        .where = place_of(axis),
                        .message = "activations are M, which recomputes every block, and the "
                                   "recomputation choice says otherwise",
                        .cure = "--recompute full"});
  }
}

void judge_effects(const Job& job, Findings& findings) {
  for (const AxisPlacement& axis : job.placement.axes) {
    for_each_how(axis, [&](const How& how, const Selector* selector) {
      judge_options(axis, selector, how, findings);
      judge_class_recompute(axis, selector, how, findings);
    });
    judge_classes(job, axis, findings);
  }
}

}  // namespace placet
