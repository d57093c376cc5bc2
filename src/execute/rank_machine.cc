#include "execute/rank_machine.h"

#include <algorithm>
#include <utility>

#include "execute/poison.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

/// A number for the ranks that meet: the same on all of them.
std::uint64_t number_of_group(std::vector<int> members, std::uint64_t kind) {
  std::ranges::sort(members);
  std::uint64_t number = kind;
  for (const int r : members) number = ranks::mixed(number ^ (static_cast<std::uint64_t>(r) + 1));
  return number;
}

/// Messages from one to another are numbered apart from meetings of the two.
constexpr std::uint64_t kMeetings = 1;
constexpr std::uint64_t kMessages = 2;

std::uint64_t number_of_messages(int from, int to) {
  return ranks::mixed(number_of_group({from}, kMessages) ^ static_cast<std::uint64_t>(to));
}

}  // namespace

template <class Numbers>
RankMachine<Numbers>::RankMachine(const RankSetting& setting, int rank,
                                  const ranks::Listing& listing)
    : setting_(setting),
      listing_(listing),
      image_(setting.program, listing, setting.mesh.at(rank), list_),
      local_({.program = setting.program, .library = setting.library, .mesh = setting.mesh}, rank,
             listing, image_),
      memory_{.program = setting.program,
              .mesh = setting.mesh,
              .rank = rank,
              .numbers = Memory<Numbers>(at(list_.memory)),
              .formats = std::vector<Dtype>(at(list_.memory), Dtype::fp32),
              .rounds = setting.rounds},
      machine_(setting.functions) {
  for (const ranks::BufferPlace& buffer : image_.buffers(rank)) {
    std::fill_n(memory_.formats.begin() + buffer.address, buffer.elements,
                setting.program.families[at(buffer.family)].type.dtype);
  }
  if (setting.rounds) machine_.formats = memory_.formats;
  machine_.slip = setting.slip;
  for (const ranks::ListedInstruction& one : listing.instructions) add(one);
}

template <class Numbers>
void RankMachine<Numbers>::add(const ranks::ListedInstruction& one) {
  Task task{.one = &one};
  if (is_collective(one.what->kind)) {
    add_collective(one, task);
  } else {
    const std::size_t before = list_.operations.size();
    const std::string problem = local_.add(one, list_);
    if (!problem.empty()) refuse("program", ranks::describe(*one.what), problem);
    if (list_.operations.size() > before) task.operation = static_cast<std::ptrdiff_t>(before);
  }
  tasks_.push_back(task);
}

template <class Numbers>
void RankMachine<Numbers>::add_collective(const ranks::ListedInstruction& one, Task& task) {
  const Instruction& what = *one.what;
  const int peer = setting_.mesh.peer(rank(), what.axes, what.peer);
  if (what.kind == Kind::send) {
    task.group_number = number_of_messages(rank(), peer);
  } else if (what.kind == Kind::receive) {
    task.group_number = number_of_messages(peer, rank());
  } else {
    task.group = setting_.mesh.group(rank(), what);
    if (task.group == nullptr) {
      refuse("program", ranks::describe(what), "runs over an axis that is not of the mesh");
    }
    task.group_number = number_of_group(*task.group, kMeetings);
  }
}

template <class Numbers>
void RankMachine<Numbers>::begin_step(int step) {
  step_ = step;
  left_ = 0;
  recorded_.clear();
  for (Queue& queue : queues_) {
    queue.tasks.clear();
    queue.next = 0;
  }
  for (std::size_t k = 0; k < tasks_.size(); ++k) {
    const std::int64_t only = tasks_[k].one->what->step;
    if (only == 0 || only == step + 1) begin(static_cast<int>(k));
  }
  middle_ = left_ / 2;
  struck_ = false;
}

template <class Numbers>
void RankMachine<Numbers>::begin(int number) {
  Task& task = tasks_[at(number)];
  const Instruction& what = *task.one->what;
  task.done = false;
  task.after = -1;
  if (what.kind == Kind::wait) {
    const auto found = recorded_.find(what.event);
    if (found != recorded_.end()) task.after = found->second;
  }
  if (what.kind == Kind::record) recorded_[what.event] = number;
  if (is_collective(what.kind)) {
    std::uint64_t meetings = 1;
    if (what.kind == Kind::send) meetings = task.one->inputs.size();
    if (what.kind == Kind::receive) meetings = task.one->outputs.size();
    task.meeting = met_[task.group_number];
    met_[task.group_number] += meetings;
  }
  queue(what.stream).tasks.push_back(number);
  ++left_;
}

template <class Numbers>
int RankMachine<Numbers>::next_of(Stream stream) const {
  const Queue& queue = queues_[static_cast<std::size_t>(stream)];
  return queue.next < queue.tasks.size() ? queue.tasks[queue.next] : -1;
}

template <class Numbers>
Progress RankMachine<Numbers>::advance(Stream stream, Communicator& communicator) {
  Queue& own = queue(stream);
  if (own.next == own.tasks.size()) return Progress::none;
  Task& task = tasks_[at(own.tasks[own.next])];
  if (task.after >= 0 && !tasks_[at(task.after)].done) return Progress::none;
  if (!setting_.faults.empty()) begin_faults();
  const Progress progress = run(task, own, communicator);
  if (progress != Progress::done) return progress;
  task.done = true;
  ++own.next;
  --left_;
  return progress;
}

template <class Numbers>
Progress RankMachine<Numbers>::run(Task& task, Queue& own, Communicator& communicator) {
  const Kind kind = task.one->what->kind;
  if (kind == Kind::send) return send(task, communicator);
  if (kind == Kind::receive) return receive(task, communicator);
  if (is_collective(kind)) return meet(task, own, communicator);
  if (kind == Kind::alloc || kind == Kind::free) forget(*task.one);
  if (task.operation < 0) return Progress::done;
  const bool fits =
      machine_.run_one(list_, list_.operations[at(task.operation)], memory_.numbers, step_);
  return fits ? Progress::done : Progress::out_of_range;
}

template <class Numbers>
MeetingPlan RankMachine<Numbers>::plan_of(const Task& task) const {
  const Instruction& what = *task.one->what;
  MeetingPlan plan{.what = &what,
                   .members = *task.group,
                   .label = {.group = task.group_number, .meeting = task.meeting}};
  const bool whole =
      what.kind == Kind::all_reduce || what.kind == Kind::broadcast || what.dim == kFlat;
  for (std::size_t i = 0; i < task.one->inputs.size(); ++i) {
    ranks::ListedRef from = task.one->inputs[i];
    ranks::ListedRef to = task.one->outputs[i];
    const Family& result = memory_.program.families[at(what.outputs[i].family)];
    const bool by_piece = !whole && image_.piece(from) == nullptr;
    const std::size_t pieces = by_piece ? local_.pieces_in(from) : 1;
    for (std::size_t p = 0; p < pieces; ++p) {
      if (by_piece) from.piece = to.piece = static_cast<int>(p);
      plan.tensors.push_back({.from = image_.view(from),
                              .from_address = image_.address(from),
                              .to = image_.view(to),
                              .to_address = image_.address(to)});
      plan.formats.push_back(result.type.dtype);
    }
  }
  return plan;
}

template <class Numbers>
Progress RankMachine<Numbers>::meet(Task& task, Queue& own, Communicator& communicator) {
  if (!own.meeting) own.meeting = std::make_unique<Meeting<Numbers>>(plan_of(task), memory_);
  const Progress progress = own.meeting->advance(communicator);
  if (progress == Progress::done) own.meeting.reset();
  return progress;
}

/// The buffers follow each other as messages of their own: who takes them may do so in others.
template <class Numbers>
Progress RankMachine<Numbers>::send(const Task& task, Communicator& communicator) {
  const Instruction& what = *task.one->what;
  Cargo cargo = cargo_of(what);
  communicator.ledger.begin_call(cargo);
  const int peer = setting_.mesh.peer(rank(), what.axes, what.peer);
  Label label{.group = task.group_number, .meeting = task.meeting};
  for (const ranks::ListedRef& ref : task.one->inputs) {
    const ranks::BufferView view = image_.view(ref);
    const std::int64_t address = image_.address(ref) + view.offset;
    cargo.bits = 0;
    if (view.size > 0) cargo.bits = view.size * bits_of(memory_.formats[at(address)]);
    cargo.bits = chosen_of(memory_.program, what, cargo.bits);
    Parcel<typename Numbers::Stored> parcel = taken(memory_.numbers, {{address, view.size}});
    spoil_if_due(memory_, parcel);
    communicator.send(peer, label, packed(parcel), cargo);
    ++label.meeting;
  }
  return Progress::done;
}

/// Buffer after buffer, as they come.
template <class Numbers>
Progress RankMachine<Numbers>::receive(Task& task, Communicator& communicator) {
  using Stored = typename Numbers::Stored;
  const Instruction& what = *task.one->what;
  const int peer = setting_.mesh.peer(rank(), what.axes, what.peer);
  Label label{.group = task.group_number, .meeting = task.meeting};
  std::vector<Bytes>& come = came_[&task];
  for (label.meeting += come.size(); come.size() < task.one->outputs.size(); ++label.meeting) {
    auto bytes = communicator.receive(peer, label);
    if (!bytes) return Progress::none;
    come.push_back(*std::move(bytes));
  }
  for (std::size_t i = 0; i < come.size(); ++i) {
    const ranks::ListedRef& ref = task.one->outputs[i];
    const ranks::BufferView view = image_.view(ref);
    store(memory_, {{image_.address(ref) + view.offset, view.size}}, unpacked<Stored>(come[i]));
  }
  came_.erase(&task);
  return Progress::done;
}

/// What `alloc` and `free` leave in buffers.
template <class Numbers>
void RankMachine<Numbers>::forget(const ranks::ListedInstruction& one) {
  for (const auto* refs : {&one.inputs, &one.outputs}) {
    for (const ranks::ListedRef& ref : *refs) forget(ref);
  }
}

template <class Numbers>
void RankMachine<Numbers>::forget(const ranks::ListedRef& ref) {
  const ranks::BufferView view = image_.view(ref);
  const std::size_t first = at(image_.address(ref) + view.offset);
  for (std::size_t a = first; a < first + at(view.size); ++a) {
    poison(a, memory_.numbers.numbers[a]);
    if constexpr (Memory<Numbers>::kHasLevels) memory_.numbers.levels[a] = 0;
  }
}

/// In the middle of a step.
template <class Numbers>
void RankMachine<Numbers>::begin_faults() {
  if (left_ > middle_ || std::exchange(struck_, true)) return;
  for (const RankFault& fault : setting_.faults) {
    const bool always = fault.kind == RankFault::Kind::slow;
    if (fault.rank != rank() || (!always && fault.step != step_ + 1)) continue;
    if (fault.kind == RankFault::Kind::corrupt) {
      memory_.spoils_next = true;
    } else {
      setting_.strike(fault);
    }
  }
}

template class RankMachine<CanonicalNumbers>;
template class RankMachine<PlainNumbers<float>>;
template class RankMachine<PlainNumbers<double>>;

}  // namespace placet::execute
