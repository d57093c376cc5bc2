#include "lower/lower.h"

#include <algorithm>

#include "lower/class_passes.h"
#include "lower/stages.h"
#include "lower/streams.h"
#include "units/error.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

ReferenceRequest request_of(const Job& job) {
  ReferenceRequest request{.samples = job.batch.global, .tokens = job.batch.sequence};
  request.rules.clear();
  const auto names = [](const std::vector<OptimizerState>& states) {
    std::vector<std::string> out;
    for (const OptimizerState& s : states) out.push_back(s.what);
    return out;
  };
  request.rules.push_back(names(job.optimizer.states));
  request.rules.push_back(names(job.optimizer.other_states));
  const Optimizer optimizer = job.optimizer;
  request.rule_of = [optimizer](const Parameter& p) { return is_other(optimizer, p) ? 1 : 0; };
  request.clips = job.clips_by_global_norm;
  return request;
}

[[noreturn]] void refuse(const std::string& where, const std::string& value,
                         const std::string& problem) {
  throw InputError({.where = where,
                    .value = value,
                    .problem = problem,
                    .allowed = {},
                    .nearest = {},
                    .excerpt = {}});
}

/// Parts of jobs that are not lowered yet are named, not left out.
void require_known(const Job& job) {
  for (const AxisPlacement& axis : job.placement.axes) {
    const std::string name(axis.axis.text());
    if (axis.how.tensor_indices != kTensorIndices) {
      refuse("--placement", name, "cuts further dims, which has no step program yet");
    }
    if (axis.how.modes.gradients == Mode::materialized) {
      refuse("--placement", name, "uses gradients up inside backward: no step program yet");
    }
    if (axis.how.modes.optimizer == Mode::sharded_gather) {
      refuse("--placement", name, "gathers optimizer state: no step program yet");
    }
    for (const Override& o : axis.overrides) {
      if (std::holds_alternative<BlockRange>(o.selector)) {
        refuse("--placement", name, "treats some blocks apart: no step program yet");
      }
    }
  }
  if (job.recompute.kind == Recompute::Kind::selective) {
    refuse("--recompute", "selective", "has no step program yet");
  }
}

/// Axes of the mesh for a job without any.
void require_axes(Mesh& mesh) {
  if (mesh.axes.size() > 1) return;
  mesh.axes.insert(mesh.axes.begin(), {.name = "device", .degree = 1, .shares = {}});
}

/// Whether the unit, the n-th block of its device, keeps only its input.
bool recomputes(const Job& job, UnitRole role, std::int64_t n) {
  if (role != UnitRole::block) return false;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.modes.activations == Mode::materialized) return true;
  }
  switch (job.recompute.kind) {
    case Recompute::Kind::none:
    case Recompute::Kind::selective:
      return false;
    case Recompute::Kind::full:
      return true;
    case Recompute::Kind::every:
      return job.recompute.count > 0 && n % job.recompute.count == 0;
    case Recompute::Kind::first:
      return n < job.recompute.count;
  }
  return false;
}

/// Whether a device hosts both units.
bool host_both(const std::vector<StagePlan>& stages, int a, int b) {
  return std::ranges::any_of(stages, [&](const StagePlan& stage) {
    const auto hosts = [&](int u) {
      return std::ranges::any_of(stage.chunks, [&](const std::vector<int>& chunk) {
        return std::ranges::find(chunk, u) != chunk.end();
      });
    };
    return hosts(a) && hosts(b);
  });
}

/// Finds the tensors whose gradients of two units are scattered as one.
void join_gradients(const Job& job, const std::vector<StagePlan>& stages,
                    std::vector<UnitParameters>& parameters) {
  for (std::size_t u = 0; u < job.model.units.size(); ++u) {
    for (ParameterPlan& plan : parameters[at(job.model.units[u].kind)].plans) {
      if (plan.owner < 0 || (plan.scattered.empty() && !plan.on_host[2])) continue;
      if (!host_both(stages, static_cast<int>(u), plan.owner)) continue;
      plan.joins = true;
      for (ParameterPlan& own : parameters[at(job.model.units[at(plan.owner)].kind)].plans) {
        own.joins = own.joins || (own.owner < 0 && own.gradient == plan.gradient);
      }
    }
  }
}

}  // namespace

Program lower(const Job& job) {
  require_known(job);
  const ModelReference model = reference_of(job.model, request_of(job));
  Mesh mesh = mesh_of(job, model);
  require_axes(mesh);
  const Layouts layouts(job, model, mesh);
  Program program{.axes = mesh.axes,
                  .dims = model.dims,
                  .kernels = model.kernels,
                  .reference = model.reference};
  program.kernels.clear();
  Writer writer(program, model);
  for (const Kernel& kernel : model.kernels) writer.add_kernel(kernel);
  Lowering in{.job = job,
              .model = model,
              .mesh = mesh,
              .layouts = layouts,
              .program = program,
              .writer = writer};

  std::vector<UnitParameters> parameters;
  for (std::size_t k = 0; k < job.model.kinds.size(); ++k) {
    parameters.push_back(plan_parameters(in, static_cast<int>(k), parameters));
  }
  UnitTable table{.parameters = parameters, .procedures = {}};
  const std::vector<StagePlan> stages = plan_stages(job, mesh.micro_batches);
  table.recomputed.assign(job.model.units.size(), false);
  for (const StagePlan& stage : stages) {
    std::int64_t ordinal = 0;
    for (const auto& chunk : stage.chunks) {
      for (int u : chunk) {
        const UnitRole role = job.model.kinds[at(job.model.units[at(u)].kind)].role;
        table.recomputed[at(u)] = recomputes(job, role, ordinal);
        if (role == UnitRole::block) ++ordinal;
      }
    }
  }
  join_gradients(job, stages, table.parameters);
  for (std::size_t u = 0; u < job.model.units.size(); ++u) {
    const int kind = job.model.units[u].kind;
    const std::pair<int, bool> key{kind, table.recomputed[u]};
    if (table.procedures.contains(key)) continue;
    table.procedures[key] = write_unit(in, table.parameters[at(kind)], kind, key.second);
  }
  for (const StagePlan& stage : stages) write_class(in, table, stages, stage);
  return with_streams(std::move(program));
}

}  // namespace placet
