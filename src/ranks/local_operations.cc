#include "ranks/local_operations.h"

#include <algorithm>

#include "ranks/binding.h"
#include "units/at.h"

namespace placet::ranks {

std::string LocalOperations::add(const ListedInstruction& one, OperationList& list) {
  return calls_kernel(one.what->kind) ? call(one, list) : move(one, list);
}

std::size_t LocalOperations::pieces_in(const ListedRef& ref) const {
  const Form& form = listing_.forms[at(ref.form)];
  return shared_.program.families[at(form.family)].type.pieces.size();
}

std::string LocalOperations::call(const ListedInstruction& one, OperationList& list) {
  const Instruction& what = *one.what;
  const std::vector<Kernel>& kernels = shared_.program.kernels;
  if (what.kernel < 0 || at(what.kernel) >= kernels.size()) return "calls no kernel";
  const Kernel& kernel = kernels[at(what.kernel)];
  std::vector<BufferView> views;
  std::vector<std::int64_t> addresses;
  for (const auto* refs : {&one.inputs, &one.outputs}) {
    for (const ListedRef& ref : *refs) {
      views.push_back(image_.view(ref));
      addresses.push_back(image_.address(ref) + views.back().offset);
    }
  }
  if (one.inputs.size() != at(kernel.inputs)) return "gives its kernel other inputs";
  const Binding binding = bind_kernel(kernel, views);
  if (!binding.problem.empty()) return binding.problem;
  std::vector<std::int64_t> begins(kernel.dims.size(), 0);
  if (!find_begins(one, begins)) {
    return "gives the position of a dim that none of its buffers has";
  }
  Operation& op =
      list.add_call(*shared_.library.compiled(kernel, binding.extents), addresses, kernel.inputs);
  if (!what.positions.empty()) {
    op.begins = static_cast<std::ptrdiff_t>(list.begins.size());
    list.begins.insert(list.begins.end(), begins.begin(), begins.end());
  }
  note_wholes(one, list);
  op.draws = true;
  op.draw = draw_number(what.key.name, value_of(what.key.unit, one.arguments));
  if (what.kind == InstructionKind::scale) op.factor = what.factor;
  return "";
}

/// How long the dims are of which the kernel's are parts, where a function may ask for it.
void LocalOperations::note_wholes(const ListedInstruction& one, OperationList& list) const {
  Operation& op = list.operations.back();
  const bool asks = std::ranges::any_of(op.code->statements, [](const StatementCode& s) {
    return s.products.empty() && !s.function.beyond.empty();
  });
  if (!asks) return;
  op.wholes = static_cast<std::ptrdiff_t>(list.wholes.size());
  for (std::size_t d = 0; d < op.code->extents.size(); ++d) {
    const int dim = logical_dim(one, static_cast<int>(d));
    list.wholes.push_back(dim < 0 ? op.code->extents[d]
                                  : shared_.program.dims.at(at(dim)).extent);
  }
}

/// Where the code believes that its parts begin. False: of a dim that no buffer has.
bool LocalOperations::find_begins(const ListedInstruction& one,
                                  std::vector<std::int64_t>& begins) const {
  for (const Position& position : one.what->positions) {
    const bool exists = position.dim >= 0 && at(position.dim) < begins.size();
    const int dim = exists ? logical_dim(one, position.dim) : -1;
    if (dim < 0) return false;
    const std::vector<ProgramAxis>& axes = shared_.program.axes;
    ProgramCoordinates coordinates = shared_.mesh.at(rank_);
    coordinates.back() = one.micro_batch;
    if (coordinates.back() < 0 || coordinates.back() >= axes.back().degree) coordinates.back() = 0;
    begins[at(position.dim)] = part_of(shared_.program.dims.at(at(dim)).extent, position.by,
                                       position.shift, axes, coordinates)
                                   .begin;
  }
  return true;
}

/// The logical dim that a dim of the kernel stands for, or the one that it is like; -1: unknown.
int LocalOperations::logical_dim(const ListedInstruction& one, int dim) const {
  const Kernel& kernel = shared_.program.kernels[at(one.what->kernel)];
  for (std::size_t steps = 0; dim >= 0 && steps <= kernel.dims.size(); ++steps) {
    for (std::size_t t = 0; t < one.inputs.size() + one.outputs.size(); ++t) {
      const bool is_input = t < one.inputs.size();
      const ListedRef& ref = is_input ? one.inputs[t] : one.outputs[t - one.inputs.size()];
      const int found = logical_dim(ref, kernel.tensors[t].dims, dim);
      if (found >= 0) return found;
    }
    dim = kernel.dims[at(dim)].like;
  }
  return -1;
}

/// The logical dim of a buffer whose dims a kernel calls `names`.
int LocalOperations::logical_dim(const ListedRef& ref, const std::vector<int>& names,
                                 int dim) const {
  const auto found = std::ranges::find(names, dim);
  const PieceType* piece = image_.piece(ref);
  if (found == names.end() || piece == nullptr || piece->dims.size() != names.size()) return -1;
  return piece->dims[static_cast<std::size_t>(found - names.begin())].dim;
}

/// Instructions that move data within the rank; alloc, free, record and wait move none.
std::string LocalOperations::move(const ListedInstruction& one, OperationList& list) {
  const InstructionKind kind = one.what->kind;
  const bool clears = kind == InstructionKind::zero;
  const bool moves = kind == InstructionKind::accumulate || kind == InstructionKind::copy ||
                     kind == InstructionKind::host_copy || kind == InstructionKind::slice;
  if (!clears && !moves) return "";
  const std::size_t first = list.transfers.size();
  std::string problem = moves ? move_all(one, list) : "";
  if (!problem.empty()) return problem;
  if (clears) clear(one, list);
  list.add_move(first, Combine::sum);
  return "";
}

void LocalOperations::clear(const ListedInstruction& one, OperationList& list) const {
  for (const auto* refs : {&one.inputs, &one.outputs}) {
    for (const ListedRef& ref : *refs) {
      add_local(list, InstructionKind::zero,
                {.to = image_.view(ref), .to_address = image_.address(ref)});
    }
  }
}

Member LocalOperations::member(const ListedRef& from, const ListedRef& to) const {
  return {.from = image_.view(from),
          .from_address = image_.address(from),
          .to = image_.view(to),
          .to_address = image_.address(to)};
}

/// Inputs to outputs, one by one.
std::string LocalOperations::move_all(const ListedInstruction& one, OperationList& list) {
  const Instruction& what = *one.what;
  if (one.inputs.size() != one.outputs.size()) return "has other inputs than outputs";
  std::string problem;
  for (std::size_t i = 0; i < one.inputs.size() && problem.empty(); ++i) {
    ListedRef from = one.inputs[i];
    ListedRef to = one.outputs[i];
    if (what.kind != InstructionKind::slice) {
      problem = add_local(list, what.kind, member(from, to));
      continue;
    }
    if (what.dim == kFlat || image_.piece(from) != nullptr) {
      problem = slice(what, from, to, list);
      continue;
    }
    const std::size_t pieces = pieces_in(from);
    if (pieces != pieces_in(to)) return "has other pieces than its input";
    for (std::size_t p = 0; p < pieces && problem.empty(); ++p) {
      from.piece = to.piece = static_cast<int>(p);
      problem = slice(what, from, to, list);
    }
  }
  return problem;
}

/// The part of the device that stands `shift` places further on in the group.
std::string LocalOperations::slice(const Instruction& what, const ListedRef& from,
                                   const ListedRef& to, OperationList& list) {
  const std::vector<int>* group = shared_.mesh.group(rank_, what);
  if (group == nullptr) return "runs over an axis that is not of the mesh";
  const auto n = static_cast<std::int64_t>(group->size());
  const auto own = std::ranges::find(*group, rank_) - group->begin();
  const int owner = (*group)[static_cast<std::size_t>(((own + what.shift) % n + n) % n)];
  const BufferView view = image_.view(from);
  std::int64_t whole = view.size;
  if (what.dim != kFlat) {
    if (view.extents == nullptr || what.dim < 0 || at(what.dim) >= view.extents->size()) {
      return "a dim is named that the buffer does not have";
    }
    whole = (*view.extents)[at(what.dim)];
  }
  const Division by = what.dim == kFlat ? one_by_one(what.axes) : Division{what.axes};
  const Part part = part_of(whole, by, shared_.program.axes, shared_.mesh.at(owner));
  return add_slice(list, what.dim, part, member(from, to));
}

}  // namespace placet::ranks
