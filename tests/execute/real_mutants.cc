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

enum class Found : std::uint8_t { equal, nothing, differs };

/// The gradient of the keys' bias is zero over the reals, as it moves all scores of a query alike
/// (GPT-2 has one). On numbers it is what rounding leaves, so that a fault which makes it zero, or
/// scales it, is right and has other bits.
bool is_nothing(const placet::Difference& difference) {
  return difference.tensor.find("attn.c_attn.bias.1") != std::string::npos;
}

Found found_in(const Program& mutant, const std::string& order) {
  // The limit of the norm acts on every gradient, so that the norm matters.
  const RealRun found =
      run(mutant, {.steps = kSteps, .meanings = {.clip = 1e-3}, .order = queue_order_from(order)});
  if (found.equal) return Found::equal;
  const bool nothing = !found.stuck && std::ranges::all_of(found.differences, is_nothing);
  return nothing ? Found::nothing : Found::differs;
}

Found found_somewhere(const Program& mutant) {
  Found most = Found::equal;
  for (const char* order : {"early", "late", "seeded=1", "seeded=2", "seeded=3", "seeded=4"}) {
    most = std::max(most, found_in(mutant, order));
  }
  return most;
}

/// Whether what the fault does to a number may be nothing: whole numbers and powers of two have
/// eight bits, and of single numbers one of four is not masked.
bool may_do_nothing(const std::string& name) {
  return name.find(": compress(") != std::string::npos || name.find(": mask(") != std::string::npos;
}

void judge_values(const std::string& name, const Program& mutant, RealTally& tally) {
  const bool differs = found_in(mutant, "listed") != Found::equal;
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
  const Found found = found_somewhere(mutant);
  if (verdict.equivalent) {
    ++tally.equal;
    if (found == Found::differs) tally.alarms.push_back(name);
    if (found == Found::nothing) tally.of_nothing.push_back(name);
    return;
  }
  const bool only_order = std::ranges::all_of(
      verdict.findings, [](const CheckFinding& f) { return f.condition == Condition::order; });
  if (!only_order) return;
  ++tally.orders;
  if (found != Found::equal) {
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

bool is_hidden(const CheckFinding& finding) {
  return finding.masked || finding.difference.starts_with("'use.embedding");
}

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
  for (const std::string& one : tally.of_nothing) std::printf("of nothing: %s\n", one.c_str());
  for (const std::string& one : tally.missed_orders) std::printf("no order: %s\n", one.c_str());
}

}  // namespace placet::testing
