#include "execute/team.h"

#include <algorithm>
#include <array>

#include "ranks/numbers.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::execute {

RankPlace place_of(const ranks::ProgramPlan& plan, int rank) {
  RankPlace place{.first = -1};
  for (const ranks::BufferPlace& buffer : plan.buffers) {
    if (buffer.rank != rank) continue;
    if (place.first < 0) place.first = buffer.address;
    place.size = buffer.address + buffer.elements - place.first;
  }
  place.first = std::max<std::int64_t>(place.first, 0);
  return place;
}

Stretches reported(const ranks::ProgramPlan& plan, int rank) {
  Stretches out;
  for (const auto* regions : {&plan.checks, &plan.once}) {
    for (const ranks::Region& region : *regions) {
      if (region.rank != rank) continue;
      for (const ranks::Run& run : region.runs) out.push_back({run.to, run.length});
    }
  }
  return out;
}

Stretches reported(const ranks::ReferenceRun& reference) {
  Stretches out;
  for (const ranks::ReferenceTensor& tensor : reference.tensors) {
    out.push_back({tensor.address, ranks::elements_in(tensor.extents)});
  }
  return out;
}

std::string out_of_range_text(int step, int rank, int instruction) {
  return "step " + std::to_string(step + 1) + ", rank " + std::to_string(rank) + ", instruction " +
         std::to_string(instruction) + ": a number is out of range";
}

template <class Numbers>
void put_back(Memory<Numbers>& memory, const Stretches& to,
              const Parcel<typename Numbers::Stored>& parcel) {
  std::ptrdiff_t next = 0;
  for (const Stretch& s : to) {
    ensure(next + s.length <= static_cast<std::ptrdiff_t>(parcel.numbers.size()),
           "as much comes as is taken");
    std::copy_n(parcel.numbers.begin() + next, s.length, memory.numbers.begin() + s.address);
    if constexpr (Memory<Numbers>::kHasLevels) {
      std::copy_n(parcel.levels.begin() + next, s.length, memory.levels.begin() + s.address);
    }
    next += s.length;
  }
}

template <class Numbers>
void load(RankMachine<Numbers>& rank, const RankPlace& place, const Memory<Numbers>& all) {
  Memory<Numbers>& own = rank.numbers();
  std::copy_n(all.numbers.begin() + place.first, place.size, own.numbers.begin());
  if constexpr (!Memory<Numbers>::kHasLevels) return;
  std::copy_n(all.levels.begin() + place.first, place.size, own.levels.begin());
}

template <class Numbers>
void save(const RankMachine<Numbers>& rank, const RankPlace& place, Memory<Numbers>& all) {
  const Memory<Numbers>& own = rank.numbers();
  std::copy_n(own.numbers.begin(), place.size, all.numbers.begin() + place.first);
  if constexpr (!Memory<Numbers>::kHasLevels) return;
  std::copy_n(own.levels.begin(), place.size, all.levels.begin() + place.first);
}

namespace {

/// What a queue did, by its place among all.
struct Advance {
  Progress progress = Progress::none;
  std::size_t place = 0;
  int instruction = -1;
};

/// One instruction of the first queue that can go on.
template <class Numbers>
Advance advance_first(RankMachine<Numbers>& rank, const std::array<Stream, kStreamCount>& queues,
                      Communicator& communicator) {
  Advance one;
  for (; one.place < queues.size(); ++one.place) {
    one.instruction = rank.next_of(queues[one.place]);
    one.progress = rank.advance(queues[one.place], communicator);
    if (one.progress != Progress::none) break;
  }
  return one;
}

std::array<Stream, kStreamCount> streams_of(const DrawnOrder& drawn) {
  std::array<Stream, kStreamCount> streams{};
  for (std::size_t k = 0; k < streams.size(); ++k) streams[k] = drawn.queues()[k].stream;
  return streams;
}

}  // namespace

template <class Numbers>
std::optional<std::string> run_alone(RankMachine<Numbers>& rank, int step, const QueueOrder& order,
                                     Communicator& communicator) {
  rank.begin_step(step);
  const bool is_drawn = order.kind == QueueOrder::Kind::seeded;
  DrawnOrder drawn(ranks::mixed(order.seed + static_cast<std::uint64_t>(rank.rank())), 1);
  drawn.begin_step(rank.left());
  while (!rank.is_done()) {
    const auto queues = is_drawn ? streams_of(drawn) : queues_in_order(order.kind);
    const Advance one = advance_first(rank, queues, communicator);
    if (one.progress == Progress::out_of_range) {
      return out_of_range_text(step, rank.rank(), one.instruction);
    }
    if (one.progress == Progress::done) drawn.went_on(one.place);
    if (one.progress == Progress::none) communicator.wait();
  }
  return std::nullopt;
}

template void put_back(Memory<CanonicalNumbers>&, const Stretches&, const Parcel<Number>&);
template void load(RankMachine<CanonicalNumbers>&, const RankPlace&,
                   const Memory<CanonicalNumbers>&);
template void save(const RankMachine<CanonicalNumbers>&, const RankPlace&,
                   Memory<CanonicalNumbers>&);
template std::optional<std::string> run_alone(RankMachine<CanonicalNumbers>&, int,
                                              const QueueOrder&, Communicator&);
template void put_back(Memory<PlainNumbers<float>>&, const Stretches&, const Parcel<float>&);
template void load(RankMachine<PlainNumbers<float>>&, const RankPlace&,
                   const Memory<PlainNumbers<float>>&);
template void save(const RankMachine<PlainNumbers<float>>&, const RankPlace&,
                   Memory<PlainNumbers<float>>&);
template std::optional<std::string> run_alone(RankMachine<PlainNumbers<float>>&, int,
                                              const QueueOrder&, Communicator&);
template void put_back(Memory<PlainNumbers<double>>&, const Stretches&, const Parcel<double>&);
template void load(RankMachine<PlainNumbers<double>>&, const RankPlace&,
                   const Memory<PlainNumbers<double>>&);
template void save(const RankMachine<PlainNumbers<double>>&, const RankPlace&,
                   Memory<PlainNumbers<double>>&);
template std::optional<std::string> run_alone(RankMachine<PlainNumbers<double>>&, int,
                                              const QueueOrder&, Communicator&);

}  // namespace placet::execute
