#include "execute/real_mutants.h"

#include <algorithm>
#include <cstdio>
#include <random>

#include "algebra/verify.h"
#include "check/check.h"
#include "execute/run.h"
#include "mutation/mutants.h"
#include "units/error.h"

namespace placet::testing {
namespace {

constexpr int kSteps = 2;  // as many as the algebraic run makes

bool differs_in(const Program& mutant, const std::string& order) {
  // The limit of the norm acts on every gradient, so that the norm matters.
  const RealRun found =
      run(mutant, {.steps = kSteps, .meanings = {.clip = 1e-3}, .order = queue_order_from(order)});
  return !found.equal;
}

bool differs_somewhere(const Program& mutant) {
  return std::ranges::any_of(
      std::vector<std::string>{"early", "late", "seeded=1", "seeded=2", "seeded=3", "seeded=4"},
      [&](const std::string& order) { return differs_in(mutant, order); });
}

/// What no order can show: it is hidden by a mask, or gathered where nobody reads it.
bool is_hidden(const CheckFinding& finding) {
  return finding.masked || finding.difference.starts_with("'use.embedding");
}

/// Whether what the fault does to a number may be nothing: whole numbers and powers of two have
/// eight bits, and of single numbers one of four is not masked.
bool may_do_nothing(const std::string& name) {
  return name.find(": compress(") != std::string::npos || name.find(": mask(") != std::string::npos;
}

void judge_values(const std::string& name, const Program& mutant, RealTally& tally) {
  const bool differs = differs_in(mutant, "listed");
  ++tally.apart;
  if (differs) {
    ++tally.apart_found;
  } else {
    (may_do_nothing(name) ? tally.by_chance : tally.missed).push_back(name);
  }
}

/// Values are right in the order of the listing.
void judge_order(const std::string& name, const Program& mutant, RealTally& tally) {
  const Verdict verdict = check(mutant);
  if (std::ranges::any_of(verdict.findings, is_hidden)) return;
  const bool differs = differs_somewhere(mutant);
  if (verdict.equivalent) {
    ++tally.equal;
    if (differs) tally.alarms.push_back(name);
    return;
  }
  const bool only_order = std::ranges::all_of(
      verdict.findings, [](const CheckFinding& f) { return f.condition == Condition::order; });
  if (!only_order) return;
  ++tally.orders;
  if (differs) {
    ++tally.orders_found;
  } else {
    tally.missed_orders.push_back(name);
  }
}

void judge_one(const std::string& name, const Program& mutant, RealTally& tally) {
  ++tally.mutants;
  const Verification verified = verify(mutant);
  if (verified.stuck || !verified.equal) return judge_values(name, mutant, tally);
  judge_order(name, mutant, tally);
}

}  // namespace

void run_mutants(const std::string& name, const Program& program, std::uint32_t seed, int per_kind,
                 RealTally& tally, std::size_t most) {
  std::mt19937 generator(seed);
  std::vector<Fault> faults = draw_faults(program, generator, per_kind);
  std::ranges::shuffle(faults, generator);
  if (faults.size() > most) faults.resize(most);
  for (const Fault& fault : faults) {
    const std::optional<Program> mutant = wellformed_mutant(program, fault);
    if (!mutant) continue;
    try {
      judge_one(name + ": " + fault.text, *mutant, tally);
    } catch (const InputError&) {
      ++tally.refused;
    }
  }
}

void print_tally(const RealTally& tally) {
  std::printf(
      "%d mutants: %d of %d told apart differ, %d of %d in order alone, %d equal, "
      "%d refused\n",
      tally.mutants, tally.apart_found, tally.apart, tally.orders_found, tally.orders, tally.equal,
      tally.refused);
  for (const std::string& one : tally.missed) std::printf("not seen: %s\n", one.c_str());
  for (const std::string& one : tally.by_chance) std::printf("by chance: %s\n", one.c_str());
  for (const std::string& one : tally.missed_orders) std::printf("no order: %s\n", one.c_str());
}

}  // namespace placet::testing
