// The part of plan.h that concerns one rank alone: kernels, copies, slices, and how it ends.
#include <algorithm>

#include "ranks/binding.h"
#include "ranks/plan.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::ranks {

void Planner::call(int rank, const ListedInstruction& one) {
  const Instruction& what = *one.what;
  if (what.kernel < 0 || at(what.kernel) >= program_.kernels.size()) {
    return stop(rank, "calls no kernel");
  }
  const Kernel& kernel = program_.kernels[at(what.kernel)];
  const RankImage& image = state(rank).image;
  std::vector<BufferView> views;
  std::vector<std::int64_t> addresses;
  for (const auto* refs : {&one.inputs, &one.outputs}) {
    for (const ListedRef& ref : *refs) {
      views.push_back(image.view(ref));
      addresses.push_back(image.address(ref) + views.back().offset);
    }
  }
  if (one.inputs.size() != at(kernel.inputs)) return stop(rank, "gives its kernel other inputs");
  const Binding binding = bind_kernel(kernel, views);
  if (!binding.problem.empty()) return stop(rank, binding.problem);
  std::vector<std::int64_t> begins(kernel.dims.size(), 0);
  if (!begins_of(rank, one, begins)) return;
  Operation& op =
      plan_.list.add_call(*library_.compiled(kernel, binding.extents), addresses, kernel.inputs);
  if (!what.positions.empty()) {
    op.begins = static_cast<std::ptrdiff_t>(plan_.list.begins.size());
    plan_.list.begins.insert(plan_.list.begins.end(), begins.begin(), begins.end());
  }
  note_wholes(rank, one, op);
  op.draws = true;
  op.draw = draw_number(what.key.name, value_of(what.key.unit, one.arguments));
  if (what.kind == InstructionKind::scale) op.factor = what.factor;
  tag(rank);
}

/// How long the dims are of which the kernel's are parts, where a function may ask for it.
void Planner::note_wholes(int rank, const ListedInstruction& one, Operation& op) {
  const bool asks = std::ranges::any_of(op.code->statements, [](const StatementCode& s) {
    return s.products.empty() && !s.function.beyond.empty();
  });
  if (!asks) return;
  op.wholes = static_cast<std::ptrdiff_t>(plan_.list.wholes.size());
  for (std::size_t d = 0; d < op.code->extents.size(); ++d) {
    const int dim = logical_dim(rank, one, static_cast<int>(d));
    plan_.list.wholes.push_back(dim < 0 ? op.code->extents[d] : program_.dims.at(at(dim)).extent);
  }
}

/// Where the code believes that its parts begin. False: stuck.
bool Planner::begins_of(int rank, const ListedInstruction& one, std::vector<std::int64_t>& begins) {
  for (const Position& position : one.what->positions) {
    const bool exists = position.dim >= 0 && at(position.dim) < begins.size();
    const int dim = exists ? logical_dim(rank, one, position.dim) : -1;
    if (dim < 0) {
      stop(rank, "gives the position of a dim that none of its buffers has");
      return false;
    }
    ProgramCoordinates coordinates = mesh_.at(rank);
    coordinates.back() = one.micro_batch;
    const auto degree = program_.axes.back().degree;
    if (coordinates.back() < 0 || coordinates.back() >= degree) coordinates.back() = 0;
    begins[at(position.dim)] = part_of(program_.dims.at(at(dim)).extent, position.by,
                                       position.shift, program_.axes, coordinates)
                                   .begin;
  }
  return true;
}

/// The logical dim that a dim of the kernel stands for, or the one that it is like; -1: unknown.
int Planner::logical_dim(int rank, const ListedInstruction& one, int dim) const {
  const Kernel& kernel = program_.kernels[at(one.what->kernel)];
  for (std::size_t steps = 0; dim >= 0 && steps <= kernel.dims.size(); ++steps) {
    for (std::size_t t = 0; t < one.inputs.size() + one.outputs.size(); ++t) {
      const bool is_input = t < one.inputs.size();
      const ListedRef& ref = is_input ? one.inputs[t] : one.outputs[t - one.inputs.size()];
      const int found = logical_dim(rank, ref, kernel.tensors[t].dims, dim);
      if (found >= 0) return found;
    }
    dim = kernel.dims[at(dim)].like;
  }
  return -1;
}

/// The logical dim of a buffer whose dims a kernel calls `names`.
int Planner::logical_dim(int rank, const ListedRef& ref, const std::vector<int>& names,
                         int dim) const {
  const auto found = std::ranges::find(names, dim);
  const PieceType* piece = state(rank).image.piece(ref);
  if (found == names.end() || piece == nullptr || piece->dims.size() != names.size()) return -1;
  return piece->dims[static_cast<std::size_t>(found - names.begin())].dim;
}

/// Instructions that move data within the rank; alloc, free, record and wait move none.
void Planner::move(int rank, const ListedInstruction& one) {
  const InstructionKind kind = one.what->kind;
  const bool clears = kind == InstructionKind::zero;
  const bool moves = kind == InstructionKind::accumulate || kind == InstructionKind::copy ||
                     kind == InstructionKind::host_copy || kind == InstructionKind::slice;
  if (!clears && !moves) return;
  const std::size_t first = plan_.list.transfers.size();
  const std::string problem = moves ? move_all(rank, one) : "";
  if (!problem.empty()) return stop(rank, problem);
  if (clears) clear(rank, one);
  plan_.list.add_move(first, Combine::sum);
  tag(rank);
}

void Planner::clear(int rank, const ListedInstruction& one) {
  const RankImage& image = state(rank).image;
  for (const auto* refs : {&one.inputs, &one.outputs}) {
    for (const ListedRef& ref : *refs) {
      add_local(plan_.list, InstructionKind::zero,
                {.to = image.view(ref), .to_address = image.address(ref)});
    }
  }
}

Member Planner::member(int rank, const ListedRef& from, const ListedRef& to) const {
  const RankImage& image = state(rank).image;
  return {.from = image.view(from),
          .from_address = image.address(from),
          .to = image.view(to),
          .to_address = image.address(to)};
}

/// Inputs to outputs, one by one.
std::string Planner::move_all(int rank, const ListedInstruction& one) {
  const Instruction& what = *one.what;
  if (one.inputs.size() != one.outputs.size()) return "has other inputs than outputs";
  std::string problem;
  for (std::size_t i = 0; i < one.inputs.size() && problem.empty(); ++i) {
    ListedRef from = one.inputs[i];
    ListedRef to = one.outputs[i];
    if (what.kind != InstructionKind::slice) {
      problem = add_local(plan_.list, what.kind, member(rank, from, to));
      continue;
    }
    if (what.dim == kFlat || state(rank).image.piece(from) != nullptr) {
      problem = slice(rank, what, from, to);
      continue;
    }
    const std::size_t pieces = pieces_in(rank, from);
    if (pieces != pieces_in(rank, to)) return "has other pieces than its input";
    for (std::size_t p = 0; p < pieces && problem.empty(); ++p) {
      from.piece = to.piece = static_cast<int>(p);
      problem = slice(rank, what, from, to);
    }
  }
  return problem;
}

/// The part of the device that stands `shift` places further on in the group.
std::string Planner::slice(int rank, const Instruction& what, const ListedRef& from,
                           const ListedRef& to) {
  const std::vector<int>* group = mesh_.group(rank, what);
  if (group == nullptr) return "runs over an axis that is not of the mesh";
  const auto n = static_cast<std::int64_t>(group->size());
  const auto own = std::ranges::find(*group, rank) - group->begin();
  const int owner = (*group)[static_cast<std::size_t>(((own + what.shift) % n + n) % n)];
  const BufferView view = state(rank).image.view(from);
  std::int64_t whole = view.size;
  if (what.dim != kFlat) {
    if (view.extents == nullptr || what.dim < 0 || at(what.dim) >= view.extents->size()) {
      return "a dim is named that the buffer does not have";
    }
    whole = (*view.extents)[at(what.dim)];
  }
  const Division by = what.dim == kFlat ? one_by_one(what.axes) : Division{what.axes};
  const Part part = part_of(whole, by, program_.axes, mesh_.at(owner));
  return add_slice(plan_.list, what.dim, part, member(rank, from, to));
}

void Planner::stop(int rank, const std::string& problem) {
  if (plan_.stuck) return;
  const DeviceClass& device_class = program_.classes[at(plan_.classes[at(rank)])];
  std::string text = "step " + std::to_string(step_ + 1) + ", rank " + std::to_string(rank) +
                     " ('" + device_class.name + "')";
  if (at(rank) < ranks_.size()) {
    if (const ListedInstruction* one = current(rank)) {
      text +=
          ", instruction " + std::to_string(state(rank).next) + " (" + describe(*one->what) + ")";
    }
  }
  plan_.stuck = text + ": " + problem;
}

/// A rank that has not come to its end waits for one that never comes.
void Planner::check_blocked() {
  for (int r = 0; r < mesh_.ranks(); ++r) {
    const ListedInstruction* one = current(r);
    if (one == nullptr) continue;
    if (one->what->kind == InstructionKind::receive) {
      stop(r, "waits for a message that is never sent");
      continue;
    }
    const std::vector<int>* group = mesh_.group(r, *one->what);
    ensure(group != nullptr, "a group that a rank waits for exists");
    for (int other : *group) {
      if (arrived(other, *one->what)) continue;
      const ListedInstruction* there = current(other);
      stop(r, "waits for rank " + std::to_string(other) + ", which " +
                  (there == nullptr ? "is at the end of the step"
                                    : "is at instruction " + std::to_string(state(other).next) +
                                          " (" + describe(*there->what) + ")"));
    }
  }
}

/// What must hold when the step ends: every message has come, every result can be read.
void Planner::check_end() {
  for (const auto& [ranks, waiting] : messages_) {
    if (waiting.empty()) continue;
    stop(ranks.first, "a message to rank " + std::to_string(ranks.second) + " is never received");
  }
  for (const Region& region : plan_.checks) {
    const std::string problem = state(region.rank).buffers.reads(region.buffer);
    if (!problem.empty()) stop(region.rank, "when the step ends, " + problem);
  }
}

}  // namespace placet::ranks
