#include "execute/watch_plan.h"

#include <algorithm>
#include <iterator>

#include "units/at.h"

namespace placet::execute {
namespace {

using ranks::ListedInstruction;
using ranks::ListedRef;
using ranks::Operation;
using ranks::OperationList;
using ranks::Region;
using ranks::Run;
using ranks::Transfer;

/// Nothing is known to be there: zeros, or what nobody has written.
constexpr std::int64_t kNone = -1;
/// Labels of entries that nobody has written, and of those that moves label anew.
constexpr std::int64_t kUnwritten = std::int64_t{1} << 41;
constexpr std::int64_t kRelabelled = std::int64_t{1} << 40;

bool is_persistent(const Region& region) {
  return region.tensor != nullptr && region.kind != StateRef::Kind::input &&
         region.kind != StateRef::Kind::zero;
}

void add_axes(const AxisList& more, std::vector<int>& axes) {
  for (const int axis : more) {
    if (std::ranges::find(axes, axis) == axes.end()) axes.push_back(axis);
  }
}

/// Labels as runs; unwritten entries have labels of their own, by place.
std::vector<LabelRun> runs_of_labels(const std::int64_t* labels, std::int64_t count) {
  std::vector<LabelRun> runs;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t label = labels[k] == kNone ? kUnwritten + k : labels[k];
    if (!runs.empty() && runs.back().label + runs.back().length == label) {
      ++runs.back().length;
    } else {
      runs.push_back({.label = label, .length = 1});
    }
  }
  return runs;
}

}  // namespace

WatchPlan::WatchPlan(const Program& program, const ranks::ProgramPlan& plan, ranks::Mesh& mesh)
    : program_(program),
      plan_(plan),
      mesh_(mesh),
      operations_(plan.list.operations.size()),
      labels_(placet::at(plan.list.memory), kNone),
      readers_(placet::at(plan.list.memory), 0),
      is_opaque_(plan.list.operations.size(), 0) {
  label_all();
  follow_back();
  leave_out_local();
  for (std::size_t r = 0; r < readings_.size(); ++r) {
    readings_[r].is_state = readings_[r].is_state || (rested_[r] && !made_[r]);
  }
}

void WatchPlan::weigh(const SketchWeights& weights) {
  for (Reading& reading : readings_) weights.weigh(reading.runs);
  for (Writing& writing : resting_) weights.weigh(writing.runs);
  for (WatchedOperation& op : operations_) {
    for (auto& [tensor, writing] : op.writings) weights.weigh(writing.runs);
  }
}

const ListedInstruction& WatchPlan::listed(const Operation& op) const {
  return plan_.listings[placet::at(plan_.classes[placet::at(op.rank)])]
      ->instructions[placet::at(op.instruction)];
}

std::int64_t WatchPlan::element(std::size_t place) const { return plan_.list.addresses[place]; }

void WatchPlan::label_all() {
  for (const auto* regions : {&plan_.once, &plan_.fresh}) {
    for (const Region& region : *regions) label_region(region);
  }
  first_labels_ = labels_;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (plan_.list.operations[i].code != nullptr) {
      label_call(i);
    } else {
      label_move(i);
    }
  }
  watch_regions();
}

void WatchPlan::label_region(const Region& region) {
  if (region.tensor == nullptr) return;
  for (const Run& run : region.runs) {
    for (std::int64_t k = 0; k < run.length; ++k) {
      labels_[placet::at(run.to + k)] = run.from - region.tensor->address + k;
    }
  }
}

/// The logical place of each entry of what a buffer, or a piece of it, is on a rank.
const WatchPlan::Labels& WatchPlan::labels_of(int rank, const ListedRef& ref) {
  const auto [found, fresh] = known_labels_.try_emplace({rank, {ref.form, ref.piece}});
  if (!fresh) return found->second;
  const ranks::Listing& listing = *plan_.listings[placet::at(plan_.classes[placet::at(rank)])];
  const ranks::Form& form = listing.forms[placet::at(ref.form)];
  const BufferType& type = program_.families[placet::at(form.family)].type;
  ProgramCoordinates coordinates = mesh_.at(rank);
  coordinates.back() = form.micro_batch;
  const ranks::LocalShape shape = ranks::shape_of(program_, type, coordinates);
  Labels row;
  for (std::size_t p = 0; p < shape.pieces.size(); ++p) {
    const ranks::LocalPiece& local = shape.pieces[p];
    ranks::Extents whole;
    for (const DividedDim& d : type.pieces[p].dims) {
      whole.push_back(program_.dims[placet::at(d.dim)].extent);
    }
    const ranks::Extents origin(whole.size(), 0);
    for (const Run& run :
         ranks::runs_between({whole, local.begins}, {local.extents, origin}, local.extents)) {
      for (std::int64_t k = 0; k < run.length; ++k) row.push_back(run.from + k);
    }
  }
  const ranks::BufferView view = ranks::view_of(shape, ref.piece);
  const auto begin = row.begin() + shape.flat.begin + view.offset;
  found->second.assign(begin, begin + view.size);
  return found->second;
}

std::vector<LabelRun> WatchPlan::runs_at(std::int64_t address, std::int64_t length) const {
  return runs_of_labels(labels_.data() + address, length);
}

std::string WatchPlan::name_of(int rank, const ListedRef& ref) const {
  const ranks::Listing& listing = *plan_.listings[placet::at(plan_.classes[placet::at(rank)])];
  const ranks::Slot& slot = listing.slots[placet::at(ref.slot)];
  const Family& family = program_.families[placet::at(slot.family)];
  return family.by_unit ? family.name + "[" + std::to_string(slot.unit) + "]" : family.name;
}

Reading WatchPlan::reading_of(const Operation& op, std::size_t tensor) const {
  const ListedInstruction& one = listed(op);
  Reading reading{.rank = op.rank, .at = ranks::describe(*one.what)};
  if (op.code != nullptr) {
    reading.tensor = name_of(op.rank, one.inputs.at(tensor));
    reading.is_gradient = one.what->kind == InstructionKind::update ||
                          one.what->phase == StepPhase::reduce ||
                          one.what->phase == StepPhase::update;
  } else if (!one.inputs.empty()) {
    reading.tensor = name_of(op.rank, one.inputs.front());
  }
  return reading;
}

void WatchPlan::read_at(std::size_t op, std::int64_t address, std::int64_t length,
                        Reading reading) {
  if (length == 0) return;
  reading.runs = runs_at(address, length);
  operations_[op].readings.emplace_back(address, static_cast<int>(readings_.size()));
  readings_.push_back(std::move(reading));
}

void WatchPlan::label_call(std::size_t i) {
  const Operation& op = plan_.list.operations[i];
  const auto inputs = static_cast<std::size_t>(op.code->inputs);
  for (std::size_t t = 0; t < inputs; ++t) {
    read_at(i, plan_.list.addresses[op.addresses + t], static_cast<std::int64_t>(op.code->sizes[t]),
            reading_of(op, t));
  }
  const ListedInstruction& one = listed(op);
  for (std::size_t t = inputs; t < placet::at(op.code->arguments); ++t) {
    const Labels& labels = labels_of(op.rank, one.outputs.at(t - inputs));
    const std::int64_t address = plan_.list.addresses[op.addresses + t];
    std::copy_n(labels.begin(), std::min(labels.size(), op.code->sizes[t]),
                labels_.begin() + address);
  }
}

bool WatchPlan::has_one_label(const Transfer& transfer, std::int64_t k) const {
  std::int64_t label = kNone;
  for (std::size_t s = 0; s < transfer.source_count; ++s) {
    const std::int64_t own = labels_[placet::at(element(transfer.sources + s) + k)];
    if (label != kNone && own != kNone && own != label) return false;
    label = std::max(label, own);
  }
  return true;
}

/// Whether what is added up has the same labels, so that a sum of sketches is that of the sum.
bool WatchPlan::keeps_labels(const Operation& op) const {
  for (std::size_t t = op.first; t < op.first + op.count; ++t) {
    const Transfer& transfer = plan_.list.transfers[t];
    if (transfer.source_count > 1 && op.combine != Combine::sum) return false;
    for (std::int64_t k = 0; k < transfer.length; ++k) {
      if (!has_one_label(transfer, k)) return false;
    }
  }
  return true;
}

std::int64_t WatchPlan::label_of_sources(const Transfer& transfer, std::int64_t k) const {
  std::int64_t label = kNone;
  for (std::size_t s = 0; s < transfer.source_count; ++s) {
    label = std::max(label, labels_[placet::at(element(transfer.sources + s) + k)]);
  }
  return label;
}

WatchPlan::Labels WatchPlan::labels_of_sources(const Operation& op) const {
  Labels moved;
  for (std::size_t t = op.first; t < op.first + op.count; ++t) {
    const Transfer& transfer = plan_.list.transfers[t];
    for (std::int64_t k = 0; k < transfer.length; ++k) {
      moved.push_back(label_of_sources(transfer, k));
    }
  }
  return moved;
}

/// The sources are read as by a kernel.
WatchPlan::Labels WatchPlan::labelled_anew(std::size_t i) {
  const Operation& op = plan_.list.operations[i];
  Labels moved;
  for (std::size_t t = op.first; t < op.first + op.count; ++t) {
    const Transfer& transfer = plan_.list.transfers[t];
    for (std::size_t s = 0; s < transfer.source_count; ++s) {
      read_at(i, element(transfer.sources + s), transfer.length, reading_of(op, 0));
    }
    for (std::int64_t k = 0; k < transfer.length; ++k) moved.push_back(kRelabelled + k);
  }
  return moved;
}

/// What is sent has the labels of what it comes from; what cannot have them is labelled anew.
void WatchPlan::label_move(std::size_t i) {
  const Operation& op = plan_.list.operations[i];
  const OperationList& list = plan_.list;
  is_opaque_[i] = keeps_labels(op) ? 0 : 1;
  const Labels moved = is_opaque_[i] != 0 ? labelled_anew(i) : labels_of_sources(op);
  auto next = moved.begin();
  for (std::size_t t = op.first; t < op.first + op.count; ++t) {
    const Transfer& transfer = list.transfers[t];
    for (std::size_t s = 0; s < transfer.target_count; ++s) {
      std::copy_n(next, transfer.length, labels_.begin() + list.addresses[transfer.targets + s]);
    }
    next += transfer.length;
  }
}

/// What rests when the step ends is read as if by a kernel.
void WatchPlan::watch_regions() {
  for (const Region& region : plan_.checks) {
    if (!is_persistent(region) || region.runs.empty()) continue;
    Reading reading{.tensor = region.tensor->name,
                    .rank = region.rank,
                    .is_state = true,
                    .at = "the end of the step"};
    std::int64_t length = 0;
    for (const Run& run : region.runs) length += run.length;
    reading.runs = runs_at(region.runs.front().to, length);
    regions_.push_back({.region = &region, .reading = static_cast<int>(readings_.size())});
    readings_.push_back(std::move(reading));
  }
}

int WatchPlan::set_of(std::vector<int> members) {
  const auto [found, fresh] = set_numbers_.try_emplace(members, static_cast<int>(sets_.size()));
  if (fresh) sets_.push_back(std::move(members));
  return found->second;
}

int WatchPlan::joined(int a, int b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  const auto key = std::minmax(a, b);
  const auto found = unions_.find(key);
  if (found != unions_.end()) return found->second;
  std::vector<int> members;
  std::ranges::set_union(sets_[placet::at(a)], sets_[placet::at(b)], std::back_inserter(members));
  return unions_[key] = set_of(std::move(members));
}

void WatchPlan::add_reader(std::int64_t address, std::int64_t length, int reading) {
  const int own = set_of({reading});
  for (std::int64_t a = address; a < address + length; ++a) {
    readers_[placet::at(a)] = joined(readers_[placet::at(a)], own);
  }
}

/// What is written there, cut where others read it; nobody reads what was there before.
std::vector<Writing> WatchPlan::taken(std::int64_t address, std::int64_t length, std::int64_t base,
                                      const Labels& labels) {
  std::vector<Writing> all;
  for (std::int64_t begin = 0; begin < length;) {
    const int set = readers_[placet::at(address + begin)];
    std::int64_t end = begin;
    while (end < length && readers_[placet::at(address + end)] == set) {
      readers_[placet::at(address + end++)] = 0;
    }
    if (set != 0) {
      all.push_back({.offset = address + begin - base,
                     .runs = runs_of_labels(labels.data() + begin, end - begin),
                     .readers = set});
      for (const int reading : sets_[placet::at(set)]) ++readings_[placet::at(reading)].sources;
    }
    begin = end;
  }
  return all;
}

void WatchPlan::follow_back() {
  rested_.resize(readings_.size(), false);
  made_.resize(readings_.size(), false);
  moved_.resize(readings_.size(), false);
  for (const WatchedRegion& one : regions_) {
    for (const Run& run : one.region->runs) add_reader(run.to, run.length, one.reading);
  }
  for (std::size_t i = operations_.size(); i-- > 0;) {
    if (plan_.list.operations[i].code != nullptr) {
      follow_call(i);
    } else {
      follow_move(i);
    }
  }
  for (const ranks::BufferPlace& buffer : plan_.buffers) {
    follow_resting(buffer.address, buffer.address + buffer.elements);
  }
}

void WatchPlan::rest_between(std::int64_t begin, std::int64_t end) {
  const Labels labels(first_labels_.begin() + begin, first_labels_.begin() + end);
  for (Writing& writing : taken(begin, end - begin, 0, labels)) {
    for (const int r : sets_[placet::at(writing.readers)]) rested_[placet::at(r)] = true;
    resting_.push_back(std::move(writing));
  }
}

/// What nobody has written has no label, and is not expected to be anything.
void WatchPlan::follow_resting(std::int64_t begin, std::int64_t last) {
  while (begin < last) {
    std::int64_t end = begin;
    const bool is_known = first_labels_[placet::at(begin)] != kNone;
    while (end < last && (first_labels_[placet::at(end)] != kNone) == is_known) ++end;
    if (is_known) rest_between(begin, end);
    begin = end;
  }
}

void WatchPlan::follow_call(std::size_t i) {
  const Operation& op = plan_.list.operations[i];
  const ListedInstruction& one = listed(op);
  const auto inputs = static_cast<std::size_t>(op.code->inputs);
  for (std::size_t t = inputs; t < placet::at(op.code->arguments); ++t) {
    const std::int64_t address = plan_.list.addresses[op.addresses + t];
    const Labels& labels = labels_of(op.rank, one.outputs.at(t - inputs));
    const auto length = static_cast<std::int64_t>(std::min(labels.size(), op.code->sizes[t]));
    for (Writing& writing : taken(address, length, address, labels)) {
      for (const int r : sets_[placet::at(writing.readers)]) made_[placet::at(r)] = true;
      operations_[i].writings.emplace_back(static_cast<std::int64_t>(t), std::move(writing));
    }
  }
  std::size_t next = 0;
  for (std::size_t t = 0; t < inputs; ++t) {
    if (op.code->sizes[t] == 0) continue;
    const auto& [address, reading] = operations_[i].readings[next++];
    add_reader(address, static_cast<std::int64_t>(op.code->sizes[t]), reading);
  }
}

/// Between a kernel and the next one on its rank nothing is sent, added or kept.
void WatchPlan::leave_out_local() {
  const auto is_local = [&](int r) { return !moved_[placet::at(r)] && !rested_[placet::at(r)]; };
  for (const WatchedRegion& one : regions_) rested_[placet::at(one.reading)] = true;
  for (std::vector<int>& set : sets_) std::erase_if(set, is_local);
  for (WatchedOperation& op : operations_) {
    for (auto& [address, reading] : op.readings) {
      if (is_local(reading)) reading = -1;
    }
    std::erase_if(op.writings,
                  [&](const auto& one) { return sets_[placet::at(one.second.readers)].empty(); });
  }
}

/// Readings behind a collective were sent along its axes.
void WatchPlan::note_axes(const Operation& op, const std::vector<int>& sets) {
  for (const int set : sets) {
    for (const int r : sets_[placet::at(set)]) moved_[placet::at(r)] = true;
  }
  if (op.rank < 0) return;
  const Instruction& what = *listed(op).what;
  if (!is_collective(what.kind)) return;
  for (const int set : sets) {
    for (const int r : sets_[placet::at(set)]) {
      add_axes(what.axes, readings_[placet::at(r)].axes);
    }
  }
}

int WatchPlan::readers_of_target(const Transfer& transfer, std::int64_t k) {
  int set = 0;
  for (std::size_t s = 0; s < transfer.target_count; ++s) {
    set = joined(set, readers_[placet::at(element(transfer.targets + s) + k)]);
  }
  return set;
}

/// Of every element that is moved, transfer after transfer, who reads it where it arrives.
std::vector<int> WatchPlan::readers_of_targets(const Operation& op) {
  std::vector<int> sets;
  for (std::size_t t = op.first; t < op.first + op.count; ++t) {
    const Transfer& transfer = plan_.list.transfers[t];
    for (std::int64_t k = 0; k < transfer.length; ++k) {
      sets.push_back(readers_of_target(transfer, k));
    }
  }
  return sets;
}

/// What is labelled anew is written like the result of a kernel.
void WatchPlan::write_anew(std::size_t i, std::int64_t to, std::int64_t length) {
  Labels labels;
  for (std::int64_t k = 0; k < length; ++k) labels.push_back(kRelabelled + k);
  for (Writing& writing : taken(to, length, 0, labels)) {
    for (const int r : sets_[placet::at(writing.readers)]) made_[placet::at(r)] = true;
    operations_[i].writings.emplace_back(-1, std::move(writing));
  }
}

void WatchPlan::follow_move(std::size_t i) {
  const Operation& op = plan_.list.operations[i];
  const std::vector<int> sets = readers_of_targets(op);
  std::vector<int> distinct = sets;
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  note_axes(op, distinct);
  const bool is_opaque = is_opaque_[i] != 0;
  for (std::size_t t = op.first; t < op.first + op.count; ++t) {
    const Transfer& transfer = plan_.list.transfers[t];
    for (std::size_t s = 0; s < transfer.target_count; ++s) {
      const std::int64_t to = element(transfer.targets + s);
      if (is_opaque) write_anew(i, to, transfer.length);
      std::fill_n(readers_.begin() + to, transfer.length, 0);
    }
  }
  std::size_t reading = 0;
  const int* next = sets.data();
  for (std::size_t t = op.first; t < op.first + op.count; ++t) {
    const Transfer& transfer = plan_.list.transfers[t];
    for (std::size_t s = 0; s < transfer.source_count; ++s) {
      const std::int64_t from = element(transfer.sources + s);
      if (is_opaque) add_reader(from, transfer.length, operations_[i].readings[reading++].second);
      if (!is_opaque) add_readers(from, transfer.length, next);
    }
    next += transfer.length;
  }
}

/// The readers of what is moved read what it comes from.
void WatchPlan::add_readers(std::int64_t from, std::int64_t length, const int* sets) {
  for (std::int64_t k = 0; k < length; ++k) {
    int& to = readers_[placet::at(from + k)];
    to = joined(to, sets[k]);
  }
}

}  // namespace placet::execute
