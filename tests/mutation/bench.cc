// The table of the mutation bench.
#include <algorithm>

#include "mutation/mutants.h"

namespace placet::testing {
namespace {

constexpr std::size_t kMostKept = 200;

void keep(std::vector<std::string>& list, const std::string& text) {
  if (list.size() < kMostKept) list.push_back(text);
}

void add(MutantTally& t, const Judgement& j) {
  ++t.mutants;
  if (j.refused) {
    ++t.refused;
    return;
  }
  if (j.broken) ++t.broken;
  if (j.reordered) ++t.reordered;
  if (j.broken && j.named) ++t.named;
  if (j.broken && j.located) ++t.located;
  if (j.broken && j.in_chain) ++t.in_chain;
  if (j.differs) {
    ++t.differ;
    if (j.broken) ++t.found;
    if (j.first_loss_differs) ++t.first_loss;
    if (j.second_loss_differs) ++t.second_loss;
    if (j.replicas_differ) ++t.replicas;
    if (j.types_disagree) ++t.types;
    return;
  }
  ++t.equal;
  if (j.broken) ++(j.race_only ? t.races : t.alarms);
}

std::string line_of(const std::string& name, const std::vector<int>& counts) {
  std::string line = name;
  line.resize(std::max<std::size_t>(line.size(), 15), ' ');
  for (const int count : counts) {
    const std::string text = std::to_string(count);
    line += std::string(text.size() < 8 ? 8 - text.size() : 1, ' ') + text;
  }
  return line + "\n";
}

std::string row(const std::string& name, const MutantTally& t) {
  return line_of(
      name, {t.mutants, t.refused, t.equal, t.alarms, t.races, t.differ, t.found, t.broken, t.named,
             t.located, t.in_chain, t.first_loss, t.second_loss, t.replicas, t.types});
}

}  // namespace

void Bench::run(const std::string& name, const Program& program, std::uint32_t seed, int per_kind,
                std::size_t most) {
  std::mt19937 generator(seed);
  std::vector<Fault> faults = draw_faults(program, generator, per_kind);
  if (faults.size() > most) {
    std::shuffle(faults.begin(), faults.end(), generator);
    faults.resize(most);
  }
  for (const Fault& fault : faults) count(name, judge(program, fault));
}

void Bench::count(const std::string& name, const Judgement& j) {
  add(total_, j);
  add(by_op_[std::string(name_of(j.fault.op))], j);
  add(by_kind_[std::string(name_of(j.kind))], j);
  const std::string text = name + " | " + j.fault.text + " | " + j.finding;
  if (j.refused) return;
  if (j.differs && !j.broken) keep(missed_, text);
  if (!j.differs && j.broken && !j.race_only) keep(alarms_, text);
  if (j.broken && !j.named) keep(astray_, text);
  if (j.disguised) keep(disguised_, text);
}

std::string Bench::table() const {
  std::string text =
      "                mutants refused   equal  alarms   races  differ   found  broken   named "
      "located chained"
      "  loss 1  loss 2 replica   types\n";
  for (const auto& [name, tally] : by_op_) text += row(name, tally);
  text += "\n";
  for (const auto& [name, tally] : by_kind_) text += row(name, tally);
  return text + "\n" + row("all", total_);
}

}  // namespace placet::testing
