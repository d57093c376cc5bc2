#include "ranks/plan.h"

#include <algorithm>

#include "ranks/binding.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::ranks {
namespace {

bool is_message(InstructionKind kind) {
  return kind == InstructionKind::send || kind == InstructionKind::receive;
}

/// Whether two ranks that came to these take part in the same collective.
bool is_same_collective(const Instruction& a, const Instruction& b) {
  return a.kind == b.kind && a.axes == b.axes && a.op == b.op && a.dim == b.dim &&
         a.into == b.into && a.shift == b.shift && a.among == b.among &&
         a.inputs.size() == b.inputs.size() && a.outputs.size() == b.outputs.size() &&
         (a.kind != InstructionKind::broadcast || a.peer == b.peer);
}

/// Whether it is compared when the step ends.
bool is_persistent(const Region& region) {
  return region.kind != StateRef::Kind::input && region.kind != StateRef::Kind::zero;
}

}  // namespace

std::string describe(const Instruction& instruction) {
  std::string text(name_of(instruction.kind));
  if (!instruction.label.empty()) text += " '" + instruction.label + "'";
  return text;
}

Planner::Planner(const Program& program, const ReferenceRun& reference, KernelLibrary& library,
                 Mesh& mesh)
    : program_(program), reference_(reference), library_(library), mesh_(mesh) {}

ProgramPlan Planner::build(StepRange steps, std::int64_t most) {
  first_step_ = step_ = steps.first;
  add_ranks(most);
  for (; step_ < steps.first + steps.count && !plan_.stuck; ++step_) {
    for (const Region& region : plan_.fresh) state(region.rank).buffers.begin_with(region.buffer);
    const std::size_t first = plan_.list.operations.size();
    run_step();
    for (std::size_t k = first; steps_differ_ && k < plan_.list.operations.size(); ++k) {
      plan_.list.operations[k].step = step_;
    }
    if (!plan_.stuck) check_end();
  }
  return std::move(plan_);
}

void Planner::add_ranks(std::int64_t most) {
  plan_.classes = classes_of(program_, mesh_);
  for (const DeviceClass& device_class : program_.classes) {
    plan_.listings.push_back(std::make_unique<Listing>(program_, device_class));
    for (const ListedInstruction& one : plan_.listings.back()->instructions) {
      steps_differ_ = steps_differ_ || one.what->step != 0;
    }
  }
  ranks_.reserve(at(mesh_.ranks()));
  for (int r = 0; r < mesh_.ranks(); ++r) {
    const Listing& listing = *plan_.listings[at(plan_.classes[at(r)])];
    ranks_.push_back({.listing = &listing,
                      .image = RankImage(program_, listing, mesh_.at(r), plan_.list),
                      .buffers = BufferStates(program_, listing),
                      .next = listing.instructions.size()});
    if (plan_.list.memory > most) {
      throw InputError({.where = "program",
                        .value = "elements of all buffers of all ranks",
                        .problem = "are too many to run",
                        .allowed = "at most " + std::to_string(most)});
    }
    const std::vector<BufferPlace> buffers = state(r).image.buffers(r);
    plan_.buffers.insert(plan_.buffers.end(), buffers.begin(), buffers.end());
    add_regions(r);
  }
}

void Planner::add_regions(int rank) {
  const DeviceClass& device_class = program_.classes[at(plan_.classes[at(rank)])];
  const Listing& listing = *state(rank).listing;
  for (std::size_t i = 0; i < device_class.initial.size(); ++i) {
    for (Region& region : regions_of(rank, device_class.initial[i], listing.initial[i])) {
      state(rank).buffers.begin_with(region.buffer);
      if (is_persistent(region)) plan_.checks.push_back(region);
      (region.kind == StateRef::Kind::input ? plan_.fresh : plan_.once)
          .push_back(std::move(region));
    }
  }
  for (std::size_t i = 0; i < device_class.results.size(); ++i) {
    for (Region& region : regions_of(rank, device_class.results[i], listing.results[i])) {
      if (is_persistent(region)) plan_.checks.push_back(std::move(region));
    }
  }
}

std::vector<Region> Planner::regions_of(int rank, const Initial& initial, const ListedRef& ref) {
  std::vector<Region> regions;
  const std::string problem =
      state(rank).image.add_regions(reference_, ref, initial.pieces, regions);
  if (!problem.empty()) stop(rank, problem);
  for (Region& region : regions) region.rank = rank;
  return regions;
}

const ListedInstruction* Planner::current(int rank) const {
  const RankState& own = state(rank);
  return own.next < own.listing->instructions.size() ? &own.listing->instructions[own.next]
                                                     : nullptr;
}

/// Ranks go on as far as they can, again and again, until none can.
void Planner::run_step() {
  for (int r = 0; r < mesh_.ranks(); ++r) {
    state(r).next = 0;
    pass_by(r);
  }
  for (bool progress = true; progress && !plan_.stuck;) {
    progress = false;
    for (int r = 0; r < mesh_.ranks() && !plan_.stuck; ++r) {
      while (!plan_.stuck && advance(r)) progress = true;
    }
  }
  if (!plan_.stuck) check_blocked();
}

void Planner::go_on(int rank) {
  ++state(rank).next;
  pass_by(rank);
}

/// Instructions of other steps are passed by.
void Planner::pass_by(int rank) {
  const ListedInstruction* one = current(rank);
  while (one != nullptr && one->what->step != 0 && one->what->step != step_ + 1) {
    ++state(rank).next;
    one = current(rank);
  }
}

/// One instruction of the rank, or one collective of its group; false: it waits or is done.
bool Planner::advance(int rank) {
  const ListedInstruction* one = current(rank);
  if (one == nullptr) return false;
  const InstructionKind kind = one->what->kind;
  if (kind == InstructionKind::send) return send(rank, *one);
  if (kind == InstructionKind::receive) return receive(rank, *one);
  if (is_collective(kind)) return meet(rank, *one);
  return run_one(rank, *one);
}

bool Planner::run_one(int rank, const ListedInstruction& one) {
  const std::string problem = state(rank).buffers.run(one, false);
  if (!problem.empty()) {
    stop(rank, problem);
  } else if (writes()) {
    write_down(rank, one);
  }
  go_on(rank);
  return true;
}

LocalOperations Planner::local(int rank) {
  return {{.program = program_, .library = library_, .mesh = mesh_},
          rank,
          *state(rank).listing,
          state(rank).image};
}

void Planner::write_down(int rank, const ListedInstruction& one) {
  const std::size_t before = plan_.list.operations.size();
  const std::string problem = local(rank).add(one, plan_.list);
  if (!problem.empty()) return stop(rank, problem);
  if (plan_.list.operations.size() > before) tag(rank);
}

Member Planner::member(int rank, const ListedRef& from, const ListedRef& to) const {
  const RankImage& image = state(rank).image;
  return {.from = image.view(from),
          .from_address = image.address(from),
          .to = image.view(to),
          .to_address = image.address(to)};
}

bool Planner::arrived(int rank, const Instruction& there) const {
  const ListedInstruction* one = current(rank);
  return one != nullptr && is_collective(one->what->kind) && !is_message(one->what->kind) &&
         is_same_collective(*one->what, there);
}

bool Planner::meet(int rank, const ListedInstruction& one) {
  const Instruction& what = *one.what;
  const std::vector<int>* group = mesh_.group(rank, what);
  if (group == nullptr) {
    stop(rank, "runs over an axis that is not of the mesh");
    return false;
  }
  if (std::ranges::find(*group, rank) == group->end()) {
    stop(rank, "is not among those that take part");
    return false;
  }
  if (!std::ranges::all_of(*group, [&](int r) { return arrived(r, what); })) return false;
  for (std::size_t i = 0; i < group->size(); ++i) {
    const int r = (*group)[i];
    const std::string problem =
        state(r).buffers.run(*current(r), static_cast<std::int64_t>(i) == what.peer);
    if (!problem.empty()) stop(r, problem);
  }
  if (writes() && !plan_.stuck) exchange(*group, what);
  for (int r : *group) go_on(r);
  return true;
}

/// All buffers of a collective travel at once. Dims are those of each tensor of a buffer.
void Planner::exchange(const std::vector<int>& group, const Instruction& what) {
  const std::size_t first = plan_.list.transfers.size();
  std::string problem;
  if (what.inputs.size() != what.outputs.size()) problem = "gives and takes different buffers";
  const bool whole = what.kind == InstructionKind::all_reduce ||
                     what.kind == InstructionKind::broadcast || what.dim == kFlat;
  for (std::size_t ref = 0; ref < what.inputs.size() && problem.empty(); ++ref) {
    const ListedRef& input = current(group[0])->inputs[ref];
    if (whole || state(group[0]).image.piece(input) != nullptr) {
      problem = exchange_one(group, what, ref, -1);
      continue;
    }
    for (std::size_t p = 0; p < pieces_in(group[0], input) && problem.empty(); ++p) {
      problem = exchange_one(group, what, ref, static_cast<int>(p));
    }
  }
  if (!problem.empty()) return stop(group[0], problem);
  plan_.list.add_move(first, what.op);
  tag(group[0]);
}

std::string Planner::exchange_one(const std::vector<int>& group, const Instruction& what,
                                  std::size_t ref, int piece) {
  std::vector<Member> members;
  members.reserve(group.size());
  for (int r : group) {
    ListedRef input = current(r)->inputs[ref];
    ListedRef output = current(r)->outputs[ref];
    const std::size_t pieces = std::min(pieces_in(r, input), pieces_in(r, output));
    if (piece >= 0 && at(piece) >= pieces) return "the buffers have different numbers of pieces";
    if (piece >= 0) input.piece = output.piece = piece;
    members.push_back(member(r, input, output));
  }
  std::string problem = add_collective(plan_.list, what, members);
  return problem.empty() ? fault_of_parts(group, what, members) : problem;
}

/// Whether each member's part of what is divided or put together is that of its coordinates, not
/// one that happens to fill the whole with those of the others. Case: 2 elements over four devices
/// are 1, 1, 0, 0 of them; in an order that takes the third before the second 1, 0, 1, 0.
std::string Planner::fault_of_parts(const std::vector<int>& group, const Instruction& what,
                                    const std::vector<Member>& members) const {
  const bool gathers = what.kind == InstructionKind::all_gather;
  if (!gathers && what.kind != InstructionKind::reduce_scatter) return "";
  const auto length = [&](const BufferView& view) {
    return what.dim == kFlat ? view.size : (*view.extents)[at(what.dim)];
  };
  const std::int64_t whole = length(gathers ? members[0].to : members[0].from);
  const Division by = what.dim == kFlat ? one_by_one(what.axes) : Division{what.axes};
  for (std::size_t k = 0; k < members.size(); ++k) {
    const Part part = part_of(whole, by, program_.axes, mesh_.at(group[k]));
    if (part.size != length(gathers ? members[k].from : members[k].to)) {
      return "the buffers are not the parts that their devices have along its axes";
    }
  }
  return "";
}

std::size_t Planner::pieces_in(int rank, const ListedRef& ref) const {
  const Form& form = state(rank).listing->forms[at(ref.form)];
  return program_.families[at(form.family)].type.pieces.size();
}

/// A message is taken when it is sent; the receiver may come later.
bool Planner::send(int rank, const ListedInstruction& one) {
  const int peer = mesh_.peer(rank, one.what->axes, one.what->peer);
  std::string problem = state(rank).buffers.run(one, true);
  if (peer < 0) problem = "is sent to a device that does not exist";
  if (!problem.empty()) {
    stop(rank, problem);
    return false;
  }
  const std::size_t first = plan_.list.transfers.size();
  for (const ListedRef& ref : one.inputs) {
    const RankImage& image = state(rank).image;
    const BufferView view = image.view(ref);
    Message message{.size = view.size};
    if (writes()) {
      message.address = plan_.list.reserve(view.size);
      plan_.list.add_transfer(view.size, {image.address(ref) + view.offset}, {message.address});
    }
    messages_[{rank, peer}].push_back(message);
  }
  if (writes()) {
    plan_.list.add_move(first, Combine::sum);
    tag(rank);
  }
  go_on(rank);
  return true;
}

bool Planner::receive(int rank, const ListedInstruction& one) {
  const int peer = mesh_.peer(rank, one.what->axes, one.what->peer);
  if (peer < 0) {
    stop(rank, "comes from a device that does not exist");
    return false;
  }
  std::deque<Message>& waiting = messages_[{peer, rank}];
  if (waiting.size() < one.outputs.size()) return false;
  const std::string problem = state(rank).buffers.run(one, false);
  if (!problem.empty()) stop(rank, problem);
  const std::size_t first = plan_.list.transfers.size();
  for (const ListedRef& ref : one.outputs) {
    const RankImage& image = state(rank).image;
    const BufferView view = image.view(ref);
    const Message message = waiting.front();
    waiting.pop_front();
    if (message.size != view.size) {
      stop(rank, "takes " + std::to_string(view.size) + " elements, but " +
                     std::to_string(message.size) + " were sent");
      return false;
    }
    if (writes()) {
      plan_.list.add_transfer(view.size, {message.address}, {image.address(ref) + view.offset});
    }
  }
  if (writes()) {
    plan_.list.add_move(first, Combine::sum);
    tag(rank);
  }
  go_on(rank);
  return true;
}

void Planner::tag(int rank) {
  Operation& op = plan_.list.operations.back();
  op.rank = rank;
  op.instruction = static_cast<int>(state(rank).next);
}

}  // namespace placet::ranks
