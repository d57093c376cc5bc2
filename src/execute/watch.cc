#include "execute/watch.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "units/at.h"

namespace placet::execute {
namespace {

using ranks::Operation;

const ranks::ListedInstruction& listed_in(const ranks::ProgramPlan& plan, const Operation& op) {
  return plan.listings[at(plan.classes[at(op.rank)])]->instructions[at(op.instruction)];
}

/// A buffer by its family, unit and micro-batch.
std::string name_of_slot(const PlannedProgram& of, const ranks::Listing& listing, int number) {
  const ranks::Slot& slot = listing.slots[at(number)];
  return of.program.families[at(slot.family)].name + "[" + std::to_string(slot.unit) + "," +
         std::to_string(slot.micro_batch) + "]";
}

/// What an operation is for, whatever stands before and behind it: its rank, instruction and
/// buffers.
std::string name_of_operation(const PlannedProgram& of, const Operation& op) {
  const ranks::Listing& listing = *of.plan.listings[at(of.plan.classes[at(op.rank)])];
  const ranks::ListedInstruction& one = listing.instructions[at(op.instruction)];
  const Instruction& what = *one.what;
  std::string name = std::to_string(op.rank) + " " + std::string(placet::name_of(what.kind)) + " " +
                     what.label + " " +
                     (what.kernel >= 0 ? of.program.kernels[at(what.kernel)].name : "");
  for (const auto* refs : {&one.inputs, &one.outputs}) {
    for (const ranks::ListedRef& ref : *refs) {
      name += " " + name_of_slot(of, listing, ref.slot) + "." + std::to_string(ref.piece);
    }
  }
  return name;
}

/// What is done again has the next number.
std::vector<std::string> names_of_operations(const PlannedProgram& of) {
  std::map<std::string, int> seen;
  std::vector<std::string> names;
  names.reserve(of.plan.list.operations.size());
  for (const Operation& op : of.plan.list.operations) {
    const std::string name = name_of_operation(of, op);
    names.push_back(name + " " + std::to_string(seen[name]++));
  }
  return names;
}

std::vector<int> matched(const PlannedProgram& proven, const PlannedProgram& run) {
  std::map<std::string, int> known;
  int next = 0;
  for (std::string& name : names_of_operations(proven)) known.emplace(std::move(name), next++);
  std::vector<int> of;
  for (const std::string& name : names_of_operations(run)) {
    const auto found = known.find(name);
    of.push_back(found == known.end() ? -1 : found->second);
  }
  return of;
}

/// Where buffers of the first plan stand in the second one; -1: it has no such buffer.
std::vector<std::int64_t> places_in(const PlannedProgram& proven, const PlannedProgram& run) {
  const auto name_of_buffer = [](const PlannedProgram& of, const ranks::BufferPlace& buffer) {
    const ranks::Listing& listing = *of.plan.listings[at(of.plan.classes[at(buffer.rank)])];
    return std::to_string(buffer.rank) + " " + name_of_slot(of, listing, buffer.slot);
  };
  std::map<std::string, std::int64_t> known;
  for (const ranks::BufferPlace& buffer : run.plan.buffers) {
    known.emplace(name_of_buffer(run, buffer), buffer.address);
  }
  std::vector<std::int64_t> places;
  for (const ranks::BufferPlace& buffer : proven.plan.buffers) {
    const auto found = known.find(name_of_buffer(proven, buffer));
    places.push_back(found == known.end() ? -1 : found->second);
  }
  return places;
}

/// What regions that hold the same entries in the same format have in common.
std::string replica_name(const PlannedProgram& of, const ranks::Region& region) {
  const ranks::Listing& listing = *of.plan.listings[at(of.plan.classes[at(region.rank)])];
  const Family& family = of.program.families[at(listing.slots[at(region.buffer.slot)].family)];
  std::string name = region.tensor->name + " " + std::string(placet::name_of(family.type.dtype));
  for (const ranks::Run& run : region.runs) {
    name += " " + std::to_string(run.from) + "+" + std::to_string(run.length);
  }
  return name;
}

/// How many deviations a sum of random signs is allowed: beyond is rarer than 2 exp(-81/2).
constexpr double kDeviations = 9;
/// Roundings on the way beside one for each addition: copies, messages, the sum itself.
constexpr double kOtherRoundings = 4;

constexpr std::uint64_t kSeed = 0x2545f4914f6cdd1dU;

}  // namespace

template <class Numbers>
Watch<Numbers>::Watch(PlannedProgram proven, PlannedProgram run, ranks::Mesh& mesh,
                      const Memory<Numbers>& memory, double unit)
    : proven_(proven),
      run_(run),
      mesh_(mesh),
      memory_(memory),
      unit_(unit),
      plan_(proven.program, proven.plan, mesh),
      weights_(kSeed),
      buffers_(proven.plan.buffers),
      places_(places_in(proven, run)),
      proven_operation_(matched(proven, run)),
      expected_(plan_.readings().size()),
      rests_(plan_.regions().size()) {
  plan_.weigh(weights_);
  for (const WatchedRegion& one : plan_.regions()) {
    replicas_.push_back(replica_name(proven_, *one.region));
  }
}

template <class Numbers>
void Watch<Numbers>::begin_step(int step) {
  step_ = step;
  std::ranges::fill(expected_, Sketch{});
  for (const Writing& writing : plan_.resting()) write(writing, moved(writing.offset));
}

template <class Numbers>
std::int64_t Watch<Numbers>::moved(std::int64_t address) const {
  const auto after = std::ranges::upper_bound(buffers_, address, {}, &ranks::BufferPlace::address);
  if (after == buffers_.begin()) return -1;
  const ranks::BufferPlace& buffer = *(after - 1);
  // Behind the buffers are messages, which stand where they did unless the program is another.
  if (address >= buffer.address + buffer.elements)
    return &proven_.plan == &run_.plan ? address : -1;
  const std::int64_t place = places_[at(after - 1 - buffers_.begin())];
  return place < 0 ? place : place + (address - buffer.address);
}

template <class Numbers>
void Watch<Numbers>::write(const Writing& writing, std::int64_t address) {
  if (address < 0) return;
  const Sketch sketch = weights_.sketch(memory_.numbers.data() + address, writing.runs);
  for (const int reading : plan_.readers(writing.readers)) add(expected_[at(reading)], sketch);
}

/// A number per addition may be rounded; signs that do not depend on that add up to little.
template <class Numbers>
bool Watch<Numbers>::agree(const Sketch& expected, const Sketch& found,
                           const Reading& reading) const {
  if constexpr (std::is_same_v<Stored, Number>) return expected.field == found.field;
  const double terms = std::max(1, reading.sources);
  double entries = 0;
  for (const LabelRun& run : reading.runs) entries += static_cast<double>(run.length);
  const double size = std::sqrt(terms * (expected.squares + found.squares));
  const double stored = kDeviations * (terms + kOtherRoundings) * unit_ * size;
  const double summed = std::ldexp(std::sqrt(entries) * entries * size, -53);
  return std::fabs(expected.sum - found.sum) <= stored + summed;
}

template <class Numbers>
Sketch Watch<Numbers>::read(int number, std::int64_t address, std::int64_t size) {
  if (number < 0) return {};
  const Reading& reading = plan_.readings()[at(number)];
  std::int64_t length = 0;
  for (const LabelRun& run : reading.runs) length += run.length;
  ++compared_;
  const std::vector<std::string> axes = names_of(reading.axes);
  const std::string condition = reading.is_state ? "state consistency" : "gradient integrity";
  if (length != size) {
    report(reading, condition, axes, "has another size");
    return {};
  }
  const Sketch found = weights_.sketch(memory_.numbers.data() + address, reading.runs);
  if (!agree(expected_[at(number)], found, reading)) {
    report(reading, condition, axes,
           reading.sources > 1 ? "is not the sum of what was written for it"
                               : "is not what was written for it");
  }
  return found;
}

template <class Numbers>
void Watch<Numbers>::before(std::size_t operation) {
  const int proven = proven_operation_[operation];
  if (proven < 0) return;
  const Operation& op = run_.plan.list.operations[operation];
  const Operation& as = proven_.plan.list.operations[at(proven)];
  const WatchedOperation& watched = plan_.at(at(proven));
  if (op.code != nullptr && as.code != nullptr) compare_arguments(operation);
  std::size_t next = 0;
  for (std::size_t t = 0; op.code != nullptr && t < at(op.code->inputs); ++t) {
    if (op.code->sizes[t] == 0 || next == watched.readings.size()) continue;
    read(watched.readings[next++].second, run_.plan.list.addresses[op.addresses + t],
         static_cast<std::int64_t>(op.code->sizes[t]));
  }
  for (std::size_t t = op.first; op.code == nullptr && t < op.first + op.count; ++t) {
    const ranks::Transfer& transfer = run_.plan.list.transfers[t];
    for (std::size_t s = 0; s < transfer.source_count && next < watched.readings.size(); ++s) {
      read(watched.readings[next++].second, run_.plan.list.addresses[transfer.sources + s],
           transfer.length);
    }
  }
}

template <class Numbers>
void Watch<Numbers>::after(std::size_t operation) {
  const int proven = proven_operation_[operation];
  if (proven < 0) return;
  const Operation& op = run_.plan.list.operations[operation];
  for (const auto& [tensor, writing] : plan_.at(at(proven)).writings) {
    if (tensor < 0) {
      write(writing, moved(writing.offset));
    } else if (op.code != nullptr && tensor < op.code->arguments) {
      write(writing, run_.plan.list.addresses[op.addresses + at(tensor)] + writing.offset);
    }
  }
}

/// Random streams, scales and positions are those that were proven.
template <class Numbers>
void Watch<Numbers>::compare_arguments(std::size_t operation) {
  const Operation& op = run_.plan.list.operations[operation];
  const Operation& as = proven_.plan.list.operations[at(proven_operation_[operation])];
  const auto begins = [](const PlannedProgram& of, const Operation& one, std::size_t d) {
    return one.begins < 0 ? 0 : of.plan.list.begins[at(one.begins) + d];
  };
  bool same_places = op.code->extents == as.code->extents;
  for (std::size_t d = 0; same_places && d < op.code->extents.size(); ++d) {
    same_places = begins(run_, op, d) == begins(proven_, as, d);
  }
  const Reading reading{.tensor = ranks::describe(*listed_in(run_.plan, op).what),
                        .rank = op.rank,
                        .at = ranks::describe(*listed_in(run_.plan, op).what)};
  if (op.draw != as.draw) report(reading, "input integrity", {}, "draws with another key");
  if (op.factor != as.factor) report(reading, "gradient integrity", {}, "has another scale");
  if (!same_places) report(reading, "input integrity", {}, "works at other positions");
}

template <class Numbers>
void Watch<Numbers>::end_step() {
  for (std::size_t r = 0; r < plan_.regions().size(); ++r) {
    const auto& [region, reading] = plan_.regions()[r];
    const std::int64_t address = moved(region->runs.front().to);
    if (address < 0) continue;
    std::int64_t length = 0;
    for (const ranks::Run& run : region->runs) length += run.length;
    rests_[r] = read(reading, address, length);
  }
  compare_replicas();
}

/// Of ranks that hold the same entries, those that differ from most.
template <class Numbers>
void Watch<Numbers>::compare_replicas() {
  std::map<std::string, std::map<std::uint64_t, std::vector<std::size_t>>> groups;
  for (std::size_t r = 0; r < rests_.size(); ++r)
    groups[replicas_[r]][rests_[r].field].push_back(r);
  const auto fewer = [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size() ||
           (a.second.size() == b.second.size() && a.second.front() > b.second.front());
  };
  for (const auto& [name, values] : groups) {
    const auto most = std::ranges::max_element(values, fewer);
    for (const auto& [value, holders] : values) {
      if (value == most->first) continue;
      for (const std::size_t r : holders) report_replica(r, most->second.front());
    }
  }
}

template <class Numbers>
void Watch<Numbers>::report_replica(std::size_t region, std::size_t same) {
  const Reading& reading = plan_.readings()[at(plan_.regions()[region].reading)];
  const int rank = plan_.regions()[same].region->rank;
  std::vector<int> axes;
  for (std::size_t a = 0; a + 1 < proven_.program.axes.size(); ++a) {
    if (mesh_.at(rank)[a] != mesh_.at(reading.rank)[a]) axes.push_back(static_cast<int>(a));
  }
  report(reading, "state consistency", names_of(axes),
         "is not what rank " + std::to_string(rank) + " holds");
}

template <class Numbers>
std::vector<std::string> Watch<Numbers>::names_of(const std::vector<int>& axes) const {
  std::vector<std::string> names;
  names.reserve(axes.size());
  for (const int axis : axes) names.push_back(proven_.program.axes[at(axis)].name);
  return names;
}

template <class Numbers>
void Watch<Numbers>::report(const Reading& reading, std::string condition,
                            std::vector<std::string> axes, std::string problem) {
  if (findings_.size() >= kMostWatchFindings) return;
  findings_.push_back({.condition = std::move(condition),
                       .tensor = reading.tensor,
                       .axes = std::move(axes),
                       .rank = reading.rank,
                       .step = step_ + 1,
                       .at = reading.at,
                       .problem = std::move(problem)});
}

template class Watch<CanonicalNumbers>;
template class Watch<PlainNumbers<float>>;
template class Watch<PlainNumbers<double>>;

}  // namespace placet::execute
