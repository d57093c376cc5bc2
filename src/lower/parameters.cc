#include "lower/parameters.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lower/stages.h"
#include "lower/unit_passes.h"
#include "model/gradients.h"
#include "program/sizes.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

/// How long gathers stay, by axis: of axes that divide Θ at rest, and of those where it is M.
struct Keeps {
  std::vector<Keep> gathered;
  std::vector<Keep> made;
};

/// Whether a tensor's state is moved, where a fraction of its unit's is: whole tensors in their
/// order, as long as half of the next or more belongs to the fraction.
bool is_moved(const UnitKind& kind, const Parameter& parameter, Rational fraction) {
  std::int64_t before = 0;
  std::int64_t all = 0;
  for (const Parameter& other : kind.parameters) {
    if (&other < &parameter) before += elements_of(other.dims);
    all += elements_of(other.dims);
  }
  return Rational(2 * before + elements_of(parameter.dims)) <= fraction * Rational(2 * all);
}

/// The mesh's axes that one of the placement consists of, but those of one device.
AxisList parts_of_axis(const Lowering& in, std::size_t a) {
  AxisList parts;
  for (int part : in.mesh.parts[a]) {
    if (in.mesh.axes[at(part)].degree > 1) parts.push_back(part);
  }
  return parts;
}

/// Reads which of the parameter's states are in host memory.
void read_medium(const UnitKind& kind, const How& how, ParameterPlan& plan) {
  for (const State state : {State::parameters, State::optimizer, State::gradients}) {
    const auto s = static_cast<std::size_t>(state);
    const bool moved = how.offload[s] && is_moved(kind, *plan.source, how.offload[s]->fraction);
    if (how.modes[state] == Mode::offloaded || moved) plan.on_host[s] = true;
  }
}

/// Reads what one axis says of the parameter's states.
void read_axis(Lowering& in, const UnitKind& kind, std::size_t a, ParameterPlan& plan,
               Keeps& keeps_of_plan) {
  auto& [keeps, keeps_made] = keeps_of_plan;
  const AxisPlacement& axis = in.job.placement.axes[a];
  const How& how = how_of(axis, plan.source->classes, std::nullopt);
  const AxisList parts = parts_of_axis(in, a);
  read_medium(kind, how, plan);
  if (how.cut != Cut::batch && how.cut != Cut::sequence) return;
  switch (how.modes.parameters) {
    case Mode::sharded_gather:
    case Mode::offloaded:
      plan.rests = united(plan.rests, parts);
      if (!parts.empty()) keeps.push_back(how.keep);
      break;
    case Mode::materialized:
      plan.materialized = true;
      keeps_made.push_back(how.keep);
      break;
    case Mode::replicated:
    case Mode::sharded:
      break;
  }
  switch (how.modes.optimizer) {
    case Mode::sharded:
    case Mode::offloaded:
      plan.owned = united(plan.owned, parts);
      break;
    case Mode::sharded_gather:
      plan.regathered = united(plan.regathered, parts);
      break;
    case Mode::replicated:
    case Mode::materialized:
      break;
  }
  const bool scatters =
      how.modes.gradients == Mode::sharded || how.modes.gradients == Mode::offloaded;
  if (scatters) plan.scattered = united(plan.scattered, parts);
}

/// Whether the tensor is of key and value heads.
bool is_of_shared_heads(const Parameter& parameter) {
  const auto has_heads = [](const std::vector<Dim>& dims) {
    return std::ranges::find(dims, Index::kv_head, &Dim::index) != dims.end();
  };
  return has_heads(parameter.dims) || has_heads(parameter.segments);
}

/// Pieces of the parameter with their divisions.
void read_pieces(Lowering& in, int k, const std::vector<int>& pieces, ParameterPlan& plan) {
  const ReferenceKind& kind = in.model.reference.kinds[at(k)];
  plan.pieces = pieces;
  for (int piece : plan.pieces) {
    Spread spread;
    spread.tensor = kind.values[at(kind.parameters[at(piece)].value)].dims;
    spread.by = in.layouts.parameter_divisions(spread.tensor, plan.source->classes);
    for (const Division& division : spread.by) plan.cut = united(plan.cut, axes_of(division));
    plan.spread.push_back(std::move(spread));
  }
  if (!is_of_shared_heads(*plan.source)) return;
  const AxisList cutting = in.layouts.axes_where([&](std::size_t a) {
    return how_of(in.layouts.axis(a), plan.source->classes, std::nullopt).cut == Cut::tensor;
  });
  plan.shared = minus(cutting, plan.cut);
}

/// Axes in the order in which they divide the row: what Θ keeps divided before what is gathered
/// after the update, scatters of the micro-batch before those of the step, and what is put together
/// first at the end, so that each is a beginning of what divides it further. Of several that come
/// at once, those with shares divide first, as in the closed form.
void order_axes(const Mesh& mesh, ParameterPlan& plan) {
  AxisList order;
  for (const AxisList& list :
       {common(plan.rests, plan.owned), plan.rests, common(plan.scattered, plan.owned), plan.owned,
        plan.scattered, plan.deferred, plan.regathered}) {
    AxisList more = minus(list, order);
    std::ranges::stable_partition(more, [&](int a) { return !mesh.axes[at(a)].shares.empty(); });
    order.insert(order.end(), more.begin(), more.end());
  }
  for (AxisList* list :
       {&plan.rests, &plan.owned, &plan.scattered, &plan.deferred, &plan.regathered}) {
    *list = common(order, *list);
  }
}

/// What a micro-batch scatters must begin the owners' order: a later scatter divides it further.
void require_order(const ParameterPlan& plan) {
  const AxisList early = common(plan.scattered, plan.owned);
  if (std::equal(early.begin(), early.end(), plan.owned.begin())) return;
  refuse("--placement", plan.name,
         "rests in parts along an axis that reduces its gradient at the end of the step, while "
         "another axis scatters it in each micro-batch: no step program yet",
         "gradients S along the axes where parameters are S*");
}

/// All axes of a gather stay as long: what is kept along some of them only has no form yet. To
/// backward: where there is one.
void read_keep(bool backward, const Keeps& keeps, ParameterPlan& plan) {
  const std::vector<Keep>& all = plan.materialized ? keeps.made : keeps.gathered;
  if (all.empty()) return;
  plan.keep = all.front();
  for (Keep keep : all) {
    if (keep == plan.keep) continue;
    refuse("--placement", plan.name, "stays gathered along some axes only: no step program yet",
           "the same keep on all axes that gather it");
  }
  if (plan.keep == Keep::backward && !backward) plan.keep = Keep::none;
}

/// Elements of the whole tensor that a device computes with.
std::int64_t local_elements(Lowering& in, int k, std::size_t p) {
  ParameterPlan all{.source = &in.job.model.kinds[at(k)].parameters[p]};
  read_pieces(in, k, in.model.kinds[at(k)].pieces[p], all);
  const ProgramCoordinates first(in.program.axes.size(), 0);
  std::int64_t sum = 0;
  for (const PieceType& piece : parameter_type(all, {}, Dtype::fp32).pieces) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : local_extents(in.program, piece, first)) elements *= extent;
    sum += elements;
  }
  return sum;
}

bool is_shared_in_flight(const Lowering& in, Keep keep) {
  return keep == Keep::backward && layer_axis(in.job.placement) >= 0 && in.mesh.micro_batches > 1;
}

/// What the plan of the step makes of gathers.
void change_gathers(const GatherTerms& gathers, UnitRole role, bool small, bool backward,
                    ParameterPlan& plan) {
  if (small) plan.rests.clear();
  const bool gathered = !plan.rests.empty() || plan.materialized;
  if (!gathered) plan.keep = Keep::none;
  if (backward) plan.keep = std::max(plan.keep, gathers.all);
  if (role == UnitRole::head && backward) plan.keep = std::max(plan.keep, gathers.head);
  if (gathers.once_a_step && gathered) plan.keep = Keep::step;
}

/// And of reductions.
void change_reductions(const ReductionTerms& reductions, Dtype gradients, ParameterPlan& plan) {
  plan.sums_in = gradients;
  plan.sums_each = reductions.replicas_each;
  if (!reductions.once_a_step || plan.scattered.empty()) return;
  plan.deferred = std::exchange(plan.scattered, {});
  plan.sums_in = reductions.waits_in;
}

/// Axes that cut the tensor itself say nothing about how the rest of it is divided.
void forget_cut_axes(ParameterPlan& plan) {
  for (AxisList* list :
       {&plan.rests, &plan.owned, &plan.scattered, &plan.deferred, &plan.regathered}) {
    *list = minus(*list, plan.cut);
  }
}

/// State that is put together for the update is so on the device, and whole: rows that two groups
/// of axes divide, one of them for good, do not come out even.
void require_whole_state(const ParameterPlan& plan) {
  if (plan.regathered.empty()) return;
  const std::string allowed = "optimizer state S* along all axes that divide it, on the device";
  if (plan.on_host[1]) {
    refuse(
        "--placement", plan.name,
        "has its optimizer state in host memory and gathered for the update: no step program yet",
        allowed);
  }
  if (!plan.owned.empty() || !minus(plan.scattered, plan.regathered).empty()) {
    refuse("--placement", plan.name,
           "has its optimizer state gathered for the update along some axes only: no step program "
           "yet",
           allowed);
  }
}

void make_families(Lowering& in, ParameterPlan& plan) {
  const Precision& precision = in.job.precision;
  const Dtype rest = plan.source->dtype.value_or(precision.parameters);
  const AxisList& state = plan.regathered.empty() ? plan.owned : plan.regathered;
  Writer& w = in.writer;
  if (plan.materialized) {
    plan.gathered = state;
  } else {
    plan.rest = w.family("w." + plan.name, parameter_type(plan, plan.rests, rest), Indexing::unit,
                         plan.on_host[0]);
    plan.gathered = plan.rests;
  }
  const bool apart = !plan.gathered.empty() || plan.materialized || plan.on_host[0];
  plan.whole =
      apart ? w.family("use." + plan.name, parameter_type(plan, {}, gathered_in(plan, precision)),
                       Indexing::unit)
            : plan.rest;
  const bool low = bits_of(rest) < 32;
  plan.has_master =
      plan.trainable && low && in.job.optimizer.keeps_master && precision.master.has_value();
  if (plan.materialized && !plan.has_master) {
    refuse("--placement", plan.name, "is rebuilt from a master copy, which it does not have",
           "parameters R, S, S* or O");
  }
  if (!plan.trainable) return;
  plan.gradient = w.family("g." + plan.name, parameter_type(plan, plan.scattered, plan.sums_in),
                           Indexing::unit, plan.on_host[2]);
  if (plan.has_master) {
    plan.master = w.family("master." + plan.name, parameter_type(plan, state, *precision.master),
                           Indexing::unit, plan.on_host[1]);
  }
  for (const OptimizerState& s : states_of(in.job.optimizer, *plan.source)) {
    std::string word = s.what;
    std::ranges::replace(word, ' ', '-');
    plan.states.push_back(w.family(word + "." + plan.name, parameter_type(plan, state, s.dtype),
                                   Indexing::unit, plan.on_host[1]));
  }
}

/// The families of the unit that owns a shared tensor.
void share_families(Lowering& in, const std::vector<UnitParameters>& before, ParameterPlan& plan) {
  const Parameter::Tie& tie = *plan.source->tied;
  const UnitParameters& owner = before.at(at(tie.kind));
  const auto unit = std::ranges::find(in.job.model.units, tie.kind, &Unit::kind);
  for (const ParameterPlan& other : owner.plans) {
    if (other.source != &in.job.model.kinds[at(tie.kind)].parameters[at(tie.parameter)]) continue;
    const ParameterPlan own = plan;
    plan = other;
    plan.source = own.source;
    plan.pieces = own.pieces;
    plan.owner = static_cast<int>(unit - in.job.model.units.begin());
    const bool stays = std::max(in.step.gathers.all, in.step.gathers.head) != Keep::none;
    if (stays) plan.keep = std::max(plan.keep, own.keep);
    plan.shared_in_flight = is_shared_in_flight(in, plan.keep);
    if (plan.whole != plan.rest && plan.keep != Keep::step) {
      // Gathered for this use, while the owner may still keep its own copy.
      plan.whole = in.writer.family("use.shared." + plan.name,
                                    parameter_type(plan, {}, gathered_in(plan, in.job.precision)),
                                    Indexing::unit);
    }
    return;
  }
  fail_internally("the owner of a shared tensor has a plan");
}

/// What is left of a checkpoint's name without the block's number, as a word of the text form.
std::string plain_name(const std::string& kind, const std::string& name) {
  const std::size_t number = name.find("{}.");
  std::string text = kind + "." + (number == std::string::npos ? name : name.substr(number + 3));
  for (char& c : text) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_';
    if (!fine) c = '-';
  }
  while (text.find("..") != std::string::npos) text.erase(text.find(".."), 1);
  while (text.find(".-") != std::string::npos) text.erase(text.find(".-") + 1, 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

Dtype gathered_in(const ParameterPlan& plan, const Precision& precision) {
  return plan.source->dtype.value_or(precision.gather);
}

BufferType parameter_type(const ParameterPlan& plan, const AxisList& flat, Dtype dtype) {
  BufferType type{.dtype = dtype, .pieces = {}, .flat = flat};
  for (const Spread& spread : plan.spread) {
    type.pieces.push_back(type_of(spread, dtype).pieces.front());
  }
  return type;
}

UnitParameters kept_to_backward(const Lowering& in, const UnitParameters& unit) {
  UnitParameters out = unit;
  out.mark = ".kept";
  if (!gradients_of(in.job.model)[at(unit.kind)].backward) return out;
  for (ParameterPlan& plan : out.plans) {
    plan.keep = std::max(plan.keep, Keep::backward);
    plan.shared_in_flight = is_shared_in_flight(in, plan.keep);
  }
  return out;
}

AxisList summed_each(const ParameterPlan& plan, const AxisList& partial) {
  if (!plan.sums_each || plan.scattered.empty()) return {};
  return minus(minus(minus(partial, plan.scattered), plan.owned), plan.shared);
}

AxisList common_partial(const std::vector<AxisList>& pieces) {
  if (pieces.empty()) return {};
  AxisList all = pieces.front();
  for (const AxisList& axes : pieces) all = common(all, axes);
  return all;
}

void note_pieces(const BufferRef& gradient, const std::vector<AxisList>& partial, PieceSums& sums) {
  const AxisList all = common_partial(partial);
  for (std::size_t i = 0; i < partial.size(); ++i) {
    BufferRef piece = gradient;
    piece.piece = static_cast<int>(i);
    if (const AxisList more = minus(partial[i], all); !more.empty()) sums[more].push_back(piece);
  }
}

void reduce_pieces(Writer& writer, const PieceSums& sums) {
  for (const auto& [axes, pieces] : sums) {
    writer.reduce(pieces, axes, Combine::sum, "gradients-of-shared-heads");
  }
}

BufferRef buffer_of(const ParameterPlan& plan, int family, int piece) {
  BufferRef ref{.family = family, .unit = {}, .micro_batch = {}, .piece = piece};
  if (plan.owner < 0) {
    ref.unit.variable = IndexTerm::Variable::unit;
  } else {
    ref.unit.offset = plan.owner;
  }
  if (plan.pieces.size() == 1) ref.piece = -1;
  return ref;
}

namespace {

/// Pieces of a parameter that the axes cut alike: rows of heads that several devices share are a
/// tensor of their own, whose gradient and norm count once.
std::vector<std::vector<int>> alike(Lowering& in, int k, int p) {
  ParameterPlan whole{.source = &in.job.model.kinds[at(k)].parameters[at(p)]};
  read_pieces(in, k, in.model.kinds[at(k)].pieces[at(p)], whole);
  std::map<AxisList, std::vector<int>> groups;
  for (std::size_t i = 0; i < whole.pieces.size(); ++i) {
    AxisList cut;
    for (const Division& by : whole.spread[i].by) cut = united(cut, axes_of(by));
    groups[cut].push_back(whole.pieces[i]);
  }
  std::vector<std::vector<int>> out;
  out.reserve(groups.size());
  for (auto& [cut, pieces] : groups) out.push_back(std::move(pieces));
  std::ranges::sort(out);
  return out;
}

/// The plan of pieces of a parameter that are divided alike, but for its families.
ParameterPlan plan_of(Lowering& in, int k, std::size_t p, const std::vector<int>& pieces,
                      std::string name) {
  const UnitKind& source = in.job.model.kinds[at(k)];
  ParameterPlan plan{.source = &source.parameters[p]};
  plan.name = std::move(name);
  plan.trainable = plan.source->trainable;
  for (const int piece : pieces) {
    plan.rules.push_back(in.model.reference.kinds[at(k)].parameters[at(piece)].rule);
  }
  read_pieces(in, k, pieces, plan);
  Keeps keeps;
  for (std::size_t a = 0; a < in.job.placement.axes.size(); ++a) {
    read_axis(in, source, a, plan, keeps);
  }
  const bool backward = gradients_of(in.job.model)[at(k)].backward;
  if (!in.step.gathers.once_a_step) read_keep(backward, keeps, plan);
  forget_cut_axes(plan);
  const std::int64_t small = in.step.gathers.whole_below;
  change_gathers(in.step.gathers, source.role, small > 0 && local_elements(in, k, p) < small,
                 backward, plan);
  change_reductions(in.step.reductions, in.job.precision.gradients, plan);
  plan.shared_in_flight = is_shared_in_flight(in, plan.keep);
  require_whole_state(plan);
  order_axes(in.mesh, plan);
  require_order(plan);
  return plan;
}

void add_plan(ParameterPlan&& plan, const std::vector<int>& pieces, UnitParameters& unit) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    unit.plan_of[at(pieces[i])] = {static_cast<int>(unit.plans.size()), static_cast<int>(i)};
  }
  unit.plans.push_back(std::move(plan));
}

}  // namespace

UnitParameters plan_parameters(Lowering& in, int k, const std::vector<UnitParameters>& before) {
  const UnitKind& source = in.job.model.kinds[at(k)];
  UnitParameters unit{.kind = k, .mark = {}, .plans = {}, .plan_of = {}};
  unit.plan_of.resize(in.model.reference.kinds[at(k)].parameters.size());
  for (std::size_t p = 0; p < source.parameters.size(); ++p) {
    const auto groups = alike(in, k, static_cast<int>(p));
    for (std::size_t g = 0; g < groups.size(); ++g) {
      std::string name = plain_name(source.name, source.parameters[p].name);
      if (groups.size() > 1) name += "." + std::to_string(g);
      ParameterPlan plan = plan_of(in, k, p, groups[g], std::move(name));
      plan.source->tied ? share_families(in, before, plan) : make_families(in, plan);
      add_plan(std::move(plan), groups[g], unit);
    }
  }
  return unit;
}

}  // namespace placet
