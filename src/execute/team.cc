#include "execute/team.h"

#include <algorithm>

#include "units/at.h"

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
void load(RankMachine<Numbers>& rank, const RankPlace& place, const Memory<Numbers>& all) {
  Memory<Numbers>& own = rank.numbers();
  std::copy_n(all.numbers.begin() + place.first, place.size, own.numbers.begin());
  std::copy_n(all.levels.begin() + place.first, place.size, own.levels.begin());
}

template <class Numbers>
void save(const RankMachine<Numbers>& rank, const RankPlace& place, Memory<Numbers>& all) {
  const Memory<Numbers>& own = rank.numbers();
  std::copy_n(own.numbers.begin(), place.size, all.numbers.begin() + place.first);
  std::copy_n(own.levels.begin(), place.size, all.levels.begin() + place.first);
}

template <class Numbers>
std::optional<std::string> run_alone(RankMachine<Numbers>& rank, int step, QueueChoice& choice,
                                     Communicator& communicator) {
  rank.begin_step(step);
  while (!rank.is_done()) {
    Progress progress = Progress::none;
    for (const Stream stream : choice.next()) {
      const int instruction = rank.next_of(stream);
      progress = rank.advance(stream, communicator);
      if (progress == Progress::out_of_range) {
        return out_of_range_text(step, rank.rank(), instruction);
      }
      if (progress != Progress::none) break;
    }
    if (progress == Progress::none) communicator.wait();
  }
  return std::nullopt;
}

template void load(RankMachine<CanonicalNumbers>&, const RankPlace&, const Memory<CanonicalNumbers>&);
template void save(const RankMachine<CanonicalNumbers>&, const RankPlace&, Memory<CanonicalNumbers>&);
template std::optional<std::string> run_alone(RankMachine<CanonicalNumbers>&, int, QueueChoice&, Communicator&);
template void load(RankMachine<PlainNumbers<float>>&, const RankPlace&, const Memory<PlainNumbers<float>>&);
template void save(const RankMachine<PlainNumbers<float>>&, const RankPlace&, Memory<PlainNumbers<float>>&);
template std::optional<std::string> run_alone(RankMachine<PlainNumbers<float>>&, int, QueueChoice&, Communicator&);
template void load(RankMachine<PlainNumbers<double>>&, const RankPlace&, const Memory<PlainNumbers<double>>&);
template void save(const RankMachine<PlainNumbers<double>>&, const RankPlace&, Memory<PlainNumbers<double>>&);
template std::optional<std::string> run_alone(RankMachine<PlainNumbers<double>>&, int, QueueChoice&, Communicator&);

}  // namespace placet::execute
