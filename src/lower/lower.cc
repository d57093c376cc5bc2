#include "lower/lower.h"

#include <algorithm>
#include <map>
#include <optional>

#include "layout/realised.h"
#include "lower/class_passes.h"
#include "lower/scope.h"
#include "lower/stages.h"
#include "lower/streams.h"
#include "program/rewrite.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

/// A stage's work is laid out micro-batch by micro-batch before what repeats itself becomes a loop,
/// and buffers are numbered so: time and memory grow with their number.
constexpr std::int64_t kMostMicroBatches = 4096;

void require_few_micro_batches(const Job& job, const Mesh& mesh) {
  if (mesh.micro_batches <= kMostMicroBatches) return;
  const std::int64_t samples = job.batch.global / mesh.micro_batches * kMostMicroBatches;
  refuse("--global-batch", std::to_string(job.batch.global),
         "makes " + std::to_string(mesh.micro_batches) +
             " micro-batches in a step, each of which is written down and judged",
         "at most " + std::to_string(kMostMicroBatches) + " micro-batches: " +
             std::to_string(samples) + " samples on this placement, or a larger --micro-batch");
}

/// A loss over each device's micro-batch is judged against that over the step: it is another one.
ReferenceRequest::Balance balance_of(BalanceScope scope) {
  switch (scope) {
    case BalanceScope::none:
      return ReferenceRequest::Balance::none;
    case BalanceScope::sequence:
      return ReferenceRequest::Balance::sample;
    case BalanceScope::micro_batch:
    case BalanceScope::global:
      return ReferenceRequest::Balance::step;
  }
  fail_internally("every scope has its reference");
}

ReferenceRequest request_of(const Job& job) {
  ReferenceRequest request{.samples = job.batch.global, .tokens = job.batch.sequence};
  request.rules.clear();
  const auto names = [](const std::vector<OptimizerState>& states) {
    std::vector<std::string> out;
    out.reserve(states.size());
    for (const OptimizerState& s : states) out.push_back(s.what);
    return out;
  };
  request.rules.push_back(names(job.optimizer.states));
  request.rules.push_back(names(job.optimizer.other_states));
  const Optimizer optimizer = job.optimizer;
  request.rule_of = [optimizer](const Parameter& p) { return is_other(optimizer, p) ? 1 : 0; };
  request.sees_matrices = [optimizer](const Parameter& p) {
    return region_of(optimizer, p) == UpdateRegion::matrix && p.dims.size() > 1;
  };
  request.clips = job.clips_by_global_norm;
  request.scales_loss = job.scales_loss_dynamically;
  request.balance = balance_of(job.balance);
  return request;
}

/// Axes of the mesh for a job without any.
void require_axes(Mesh& mesh) {
  if (mesh.axes.size() > 1) return;
  mesh.axes.insert(mesh.axes.begin(), {.name = "device", .degree = 1, .shares = {}});
}

/// What backward of a unit, the n-th block of its device, makes again.
Again made_again(const Job& job, UnitRole role, std::int64_t n) {
  if (role != UnitRole::block && role != UnitRole::mtp) return Again::nothing;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.modes.activations == Mode::materialized) return Again::everything;
  }
  const auto whole = [](bool again) { return again ? Again::everything : Again::nothing; };
  switch (job.recompute.kind) {
    case Recompute::Kind::none:
      return Again::nothing;
    case Recompute::Kind::selective:
      return Again::modules;
    case Recompute::Kind::full:
    case Recompute::Kind::uniform:
      return Again::everything;
    case Recompute::Kind::every:
      return whole(job.recompute.count > 0 && n % job.recompute.count == 0);
    case Recompute::Kind::first:
      return whole(n < job.recompute.count);
  }
  fail_internally("every kind of recomputation says what is made again");
}

/// The same for the units of a stage.
std::vector<Again> units_made_again(const Job& job, const StagePlan& stage) {
  std::vector<Again> out(job.model.units.size(), Again::nothing);
  std::int64_t ordinal = 0;
  for (const auto& chunk : stage.chunks) {
    for (int u : chunk) {
      const UnitRole role = job.model.kinds[at(job.model.units[at(u)].kind)].role;
      out[at(u)] = made_again(job, role, ordinal);
      if (role == UnitRole::block) ++ordinal;
    }
  }
  return out;
}

/// The same stage by stage: one that is hosted twice counts on each device anew.
std::map<std::int64_t, std::vector<Again>> units_made_again(const Job& job,
                                                            const std::vector<StagePlan>& stages) {
  std::map<std::int64_t, std::vector<Again>> all;
  for (const StagePlan& stage : stages) {
    all[stage.coordinate] = units_made_again(job, stage);
  }
  return all;
}

/// The micro-batches of which a device runs the unit; none: it does not host it.
std::optional<MicroBatches> micro_batches_at(const StagePlan& stage, int unit) {
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    if (std::ranges::find(stage.chunks[c], unit) != stage.chunks[c].end()) {
      return stage.micro_batches[c];
    }
  }
  return std::nullopt;
}

/// Along which axes gradients are partial, as the last block shows it too.
void note_partial(const UnitParameters& from, UnitParameters& to) {
  for (std::size_t p = 0; p < to.plans.size(); ++p) {
    to.plans[p].piece_partial = from.plans[p].piece_partial;
    to.plans[p].partial = from.plans[p].partial;
  }
}

/// Where the model's last block stays gathered to its backward: as it uses its parameters.
void set_last_block_apart(const Lowering& in, UnitTable& table) {
  if (in.step.gathers.last_block == Keep::none) return;
  const std::vector<Unit>& units = in.job.model.units;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const bool block = in.job.model.kinds[at(units[u].kind)].role == UnitRole::block;
    if (block) table.last_block = static_cast<int>(u);
  }
  if (table.last_block < 0) return;
  table.of_last_block =
      kept_to_backward(in, table.parameters[at(units[at(table.last_block)].kind)]);
}

/// One set of procedures for each kind of unit and what is made again of it.
void write_units(Lowering& in, const std::vector<StagePlan>& stages, UnitTable& table) {
  for (std::size_t u = 0; u < in.job.model.units.size(); ++u) {
    const int kind = in.job.model.units[u].kind;
    for (const StagePlan& stage : stages) {
      if (!micro_batches_at(stage, static_cast<int>(u))) continue;
      const bool last = static_cast<int>(u) == table.last_block;
      const UnitSort key{kind, table.again.at(stage.coordinate)[u], last};
      if (table.procedures.contains(key)) continue;
      UnitParameters& own = table.parameters[at(kind)];
      UnitParameters& used = last ? table.of_last_block : own;
      table.procedures[key] = write_unit(in, used, kind, key.again);
      if (last) note_partial(used, own);
    }
  }
}

/// Whether a device runs both units for the same micro-batches.
bool run_both(const std::vector<StagePlan>& stages, int a, int b) {
  return std::ranges::any_of(stages, [&](const StagePlan& stage) {
    const auto own = micro_batches_at(stage, a);
    return own && own == micro_batches_at(stage, b);
  });
}

/// Marks a shared tensor, and its owner's.
void join_gradient(ParameterPlan& plan, UnitParameters& owner) {
  plan.joins = true;
  for (ParameterPlan& own : owner.plans) {
    own.joins = own.joins || (own.owner < 0 && own.gradient == plan.gradient);
  }
}

/// Finds the tensors whose gradients of two units are scattered as one.
void join_gradients(const Job& job, const std::vector<StagePlan>& stages,
                    std::vector<UnitParameters>& parameters) {
  for (std::size_t u = 0; u < job.model.units.size(); ++u) {
    for (ParameterPlan& plan : parameters[at(job.model.units[u].kind)].plans) {
      if (plan.owner < 0 || (plan.scattered.empty() && !plan.on_host[2])) continue;
      if (!run_both(stages, static_cast<int>(u), plan.owner)) continue;
      join_gradient(plan, parameters[at(job.model.units[at(plan.owner)].kind)]);
    }
  }
}

/// A rewrite's text with the axis where it says so.
std::string along_axis(std::string text, const std::string& axis) {
  constexpr std::string_view word = "{axis}";
  for (std::size_t k = 0; (k = text.find(word, k)) != std::string::npos; k += axis.size()) {
    text.replace(k, word.size(), axis);
  }
  return text;
}

/// What methods make of the program.
Program with_methods(Program program, const std::vector<Method>& methods) {
  for (const Method& method : methods) {
    for (const std::string& rewrite : method.rewrites) {
      program = rewritten(std::move(program), along_axis(rewrite, method.axis),
                          "strategy " + method.name);
    }
  }
  return program;
}

/// The mesh of a job that has a step program.
Mesh require_mesh(const Job& job, const ModelReference& model) {
  Mesh mesh = mesh_of(job, model);
  require_axes(mesh);
  require_few_micro_batches(job, mesh);
  if (job.balance == BalanceScope::global && mesh.micro_batches > 1) {
    refuse("--balance-loss", "global",
           "needs the loads of all micro-batches before the first one's backward: no step program "
           "yet",
           "sequence, or one micro-batch in a step");
  }
  return mesh;
}

StepShape shape_of(const Job& job, const Mesh& mesh) {
  StepShape shape{.stages = 1, .micro_batches = mesh.micro_batches};
  const int layer = layer_axis(job.placement);
  if (layer >= 0) shape.stages = job.placement.axes[at(layer)].degree;
  return shape;
}

}  // namespace

Program lower(const Job& job) { return lower(job, {}); }

void require_program(const Job& job) {
  require_lowerable(job);
  require_mesh(job, reference_of(job.model, request_of(job)));
}

Program lower(const Job& job, const AfterPass& after) {
  require_lowerable(job);
  const ModelReference model = reference_of(job.model, request_of(job));
  Mesh mesh = require_mesh(job, model);
  const Layouts layouts(job, model, mesh);
  Program program{.axes = mesh.axes,
                  .dims = model.dims,
                  .kernels = model.kernels,
                  .reference = model.reference};
  program.kernels.clear();
  Writer writer(program, model);
  for (const Kernel& kernel : model.kernels) writer.add_kernel(kernel);
  const StepPlan step = realised_plan(job, shape_of(job, mesh));
  Lowering in{.job = job,
              .step = step,
              .model = model,
              .mesh = mesh,
              .layouts = layouts,
              .program = program,
              .writer = writer};

  std::vector<UnitParameters> parameters;
  for (std::size_t k = 0; k < job.model.kinds.size(); ++k) {
    parameters.push_back(plan_parameters(in, static_cast<int>(k), parameters));
  }
  UnitTable table;
  table.parameters = parameters;
  const std::vector<StagePlan> stages = plan_stages(job, mesh.micro_batches);
  table.again = units_made_again(job, stages);
  join_gradients(job, stages, table.parameters);
  set_last_block_apart(in, table);
  find_holders(in, stages, table);
  write_units(in, stages, table);
  for (const StagePlan& stage : stages) write_class(in, table, stages, stage);
  program = with_methods(std::move(program), job.methods);
  if (after) after("classes", program);
  program = with_streams(std::move(program));
  if (after) after("streams", program);
  return program;
}

}  // namespace placet
