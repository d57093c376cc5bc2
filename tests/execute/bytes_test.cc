// What ranks send and hold in a step of a job of the catalogue, under an engine: counted at their
// communicators and in their buffers, it is what the program's own sums say, to the byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "amount.h"
#include "catalog/catalog.h"
#include "catalog/profile_catalog.h"
#include "check/tally.h"
#include "derive/rules.h"
#include "execute/run.h"
#include "lower/catalogue_jobs.h"
#include "lower/small.h"
#include "meet/meeting.h"
#include "ranks/groups.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::testing {
namespace {

using Amounts = std::map<std::string, std::int64_t>;

/// "all_reduce over dp tp".
std::string words_of(const std::string& collective, const std::vector<std::string>& axes) {
  std::string text = collective + " over";
  for (const std::string& axis : axes) text += " " + axis;
  return text;
}

std::string collective_word(InstructionKind kind) {
  const bool pair = kind == InstructionKind::permute || kind == InstructionKind::send;
  return pair ? "send_recv" : std::string(name_of(kind));
}

/// Bytes and calls of messages between devices.
Amounts told_messages(const Program& program, const Tally& tally) {
  Amounts out;
  for (const TalliedMessage& m : tally.messages) {
    if (m.kind == InstructionKind::host_copy) continue;
    std::vector<std::string> axes;
    for (const int a : m.axes) axes.push_back(program.axes[at(a)].name);
    const std::string words = words_of(collective_word(m.kind), axes);
    out["bytes of " + words] += in_bytes(m.sent) * m.count;
    out["calls of " + words] += m.count;
  }
  return out;
}

Amounts sent_messages(const std::vector<SentBytes>& sent) {
  Amounts out;
  for (const SentBytes& one : sent) {
    const std::string words = words_of(one.collective, one.axes);
    out["bytes of " + words] += one.bytes;
    out["calls of " + words] += one.calls;
  }
  return out;
}

/// Without samples and single numbers, which a run counts apart.
Amounts told_memory(const Program& program, int device_class, const ProgramCoordinates& where,
                    const Tally& tally) {
  std::int64_t peak = 0;
  for (const PhaseMemory& phase : phase_memory(program, device_class, where)) {
    peak = std::max(peak, in_bytes(phase.bytes));
  }
  return {{"peak", peak}, {"peak on the host", in_bytes(tally.host_peak.bytes)}};
}

Amounts held_memory(const HeldBytes& held) {
  return {{"peak", held.peak}, {"peak on the host", held.host}};
}

void note_differences(const Amounts& told, const Amounts& counted, const std::string& where,
                      std::vector<std::string>& out) {
  Amounts all = told;
  all.insert(counted.begin(), counted.end());
  for (const auto& [words, unused] : all) {
    const auto in = [&, &key = words](const Amounts& of) {
      const auto found = of.find(key);
      return found == of.end() ? 0 : found->second;
    };
    if (in(told) == in(counted)) continue;
    out.push_back(where + words + ": the program says " + std::to_string(in(told)) + ", counted " +
                  std::to_string(in(counted)));
  }
}

/// Of a step of all ranks.
std::vector<std::string> differences_in_step(const Program& program) {
  const RealRun found = run(
      program,
      {.steps = 1, .arithmetic = Arithmetic::declared, .order = {.kind = QueueOrder::Kind::early}});
  if (found.stuck) return {*found.stuck};
  const ranks::Mesh mesh(program, found.ranks);
  const std::vector<int> classes = classes_of(program, mesh);
  std::vector<std::string> out;
  for (int r = 0; r < found.ranks; ++r) {
    const Tally told = tally(program, classes[at(r)], mesh.at(r));
    const std::string where = "rank " + std::to_string(r) + ": ";
    note_differences(told_messages(program, told), sent_messages(found.sent_by_rank[at(r)]), where,
                     out);
    note_differences(told_memory(program, classes[at(r)], mesh.at(r), told),
                     held_memory(found.held_by_rank[at(r)]), where, out);
  }
  return out;
}

bool is_refused(const Job& job) {
  return std::ranges::any_of(
      check_rules(job), [](const Finding& finding) { return finding.severity == Severity::error; });
}

std::string name_of(const CatalogueJob& job) {
  std::string text = job.engine + ": " + job.model + " " + job.placement;
  for (const std::string& more : {job.recompute, job.lora, job.balance, job.precision}) {
    if (!more.empty()) text += " " + more;
  }
  return text;
}

/// Figures in which a job's program and its run part, and why. The list only shrinks.
struct Parting {
  const char* placement;
  const char* figure;  // of all others the job is asked
  const char* why;
};
constexpr Parting kParting[] = {
    {"cp=4:ring sp=2:heads", "bytes of all_to_all over sp",
     "heads exchanged for tokens in uneven parts (docs/theory.md, section 4.1: p - p/n): a device "
     "sends as much of heads there as it sends of tokens back"}};

bool parts_in(const CatalogueJob& job, const std::string& difference) {
  return std::ranges::any_of(kParting, [&](const Parting& one) {
    return job.placement == one.placement && difference.find(one.figure) != std::string::npos;
  });
}

/// Jobs by their outcome.
struct BytesTold {
  int equal = 0;
  int parted = 0;
  std::map<std::string, int> refused;  // why
};

void compare_bytes(const CatalogueJob& job, BytesTold& out) {
  try {
    const Job loaded = load(job);
    if (is_refused(loaded)) {
      ++out.refused["the rules"];
      return;
    }
    const std::vector<std::string> found = differences_in_step(lower_small(loaded));
    bool is_known = false;
    for (const std::string& text : found) {
      is_known = parts_in(job, text);
      EXPECT_TRUE(is_known) << name_of(job) << ", " << text;
    }
    ++(is_known ? out.parted : out.equal);
  } catch (const InputError& error) {
    ++out.refused[error.what()];
  }
}

/// Jobs of an engine that are compared in daily work.
constexpr int kFewOfEngine = 40;

class BytesUnderEngine : public ::testing::TestWithParam<std::string> {};

TEST_P(BytesUnderEngine, AreThoseOfTheProgram) {
  std::vector<CatalogueJob> jobs = all_catalogue_jobs();
  std::seed_seq seed(GetParam().begin(), GetParam().end());
  std::shuffle(jobs.begin(), jobs.end(), std::mt19937(seed));
  BytesTold told;
  for (CatalogueJob& job : jobs) {
    if (!runs_all() && told.equal + told.parted == kFewOfEngine) break;
    job.engine = GetParam();
    compare_bytes(job, told);
  }
  EXPECT_GT(told.equal, 0);
  std::cout << told.equal << " equal, " << told.parted << " part in a figure that is named\n";
  for (const auto& [why, times] : told.refused) std::cout << times << " refused: " << why << "\n";
}

std::string test_name_of(const ::testing::TestParamInfo<std::string>& of) {
  std::string name = of.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(OfTheData, BytesUnderEngine,
                         ::testing::ValuesIn(profile_names(find_catalog())), test_name_of);

}  // namespace
}  // namespace placet::testing
