// The table of the mutation bench.
#include <cstdio>

#include "mutation/mutants.h"

namespace placet::testing {
namespace {

constexpr std::size_t kMostKept = 200;

void keep(std::vector<std::string>& list, const std::string& text) {
  if (list.size() < kMostKept) list.push_back(text);
}

void add(Tally& t, const Judgement& j) {
  ++t.mutants;
  if (j.refused) {
    ++t.refused;
    return;
  }
  if (j.broken && j.located) ++t.located;
  if (j.differs) {
    ++t.differ;
    if (j.broken) ++t.found;
    if (j.phase == StepPhase::forward) ++t.forward;
    if (j.replicas_differ) ++t.replicas;
    return;
  }
  ++t.equal;
  if (j.broken) ++(j.race_only ? t.races : t.alarms);
}

std::string row(const std::string& name, const Tally& t) {
  std::string line(256, '\0');
  const int length = std::snprintf(
      line.data(), line.size(), "%-15s %7d %7d %7d %7d %7d %7d %7d %8d %8d\n", name.c_str(),
      t.mutants, t.refused, t.differ, t.found, t.equal, t.alarms, t.races, t.located, t.replicas);
  line.resize(static_cast<std::size_t>(length));
  return line;
}

}  // namespace

void Bench::run(const std::string& name, const Program& program, std::uint32_t seed, int per_kind) {
  std::mt19937 generator(seed);
  for (const Fault& fault : draw_faults(program, generator, per_kind)) {
    count(name, judge(program, fault));
  }
}

void Bench::count(const std::string& name, const Judgement& j) {
  add(total_, j);
  add(by_op_[std::string(name_of(j.fault.op))], j);
  add(by_kind_[std::string(name_of(j.kind))], j);
  const std::string text = name + " | " + j.fault.text + " | " + j.finding;
  if (j.refused) return;
  if (j.differs && !j.broken) keep(missed_, text);
  if (!j.differs && j.broken && !j.race_only) keep(alarms_, text);
  if (j.broken && !j.located) keep(astray_, text);
}

std::string Bench::table() const {
  std::string text =
      "                mutants refused  differ   found   equal  alarms   races  located replicas\n";
  for (const auto& [name, tally] : by_op_) text += row(name, tally);
  text += "\n";
  for (const auto& [name, tally] : by_kind_) text += row(name, tally);
  return text + "\n" + row("all", total_);
}

}  // namespace placet::testing
