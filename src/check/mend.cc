#include "check/mend.h"

#include <algorithm>
#include <ranges>

#include "check/mend_candidates.h"
#include "program/kernel_text.h"
#include "program/walk.h"
#include "program/wellformed.h"
#include "units/error.h"

namespace placet {
namespace {

/// Of fewer, hardly one is the right one.
constexpr std::int64_t kFewestTried = 8;

/// What one check of the program costs: an instruction is worked out where it is met first, which
/// takes as long as going over it so many times.
std::int64_t work_of(const Program& program) {
  constexpr std::int64_t kWorkedOut = 8;
  std::int64_t work = 1;
  for (const DeviceClass& c : program.classes) {
    for_each_instruction(program, c.body, {},
                         [&](const Instruction&, const Arguments&) { ++work; });
    for_each_written_instruction(program, c.body, [&](const Instruction&) { work += kWorkedOut; });
  }
  return work;
}

/// The number of a kernel y = x, which the program gets where it has none.
int multiple_of(Program& program) {
  static const Kernel kMultiple = kernel_from(
      "kernel multiple(x[...]) -> (y[...]) {\n"
      "  y[...] = x[...]\n}");
  Kernel kernel = kMultiple;
  for (int k = 0;; ++k) {
    kernel.name = kMultiple.name + (k == 0 ? "" : "." + std::to_string(k));
    const auto found = std::ranges::find(program.kernels, kernel.name, &Kernel::name);
    if (found == program.kernels.end()) break;
    if (*found == kernel) return static_cast<int>(found - program.kernels.begin());
  }
  program.kernels.push_back(std::move(kernel));
  return static_cast<int>(program.kernels.size()) - 1;
}

void splice(std::vector<Step>& steps, const std::vector<Splice>& splices) {
  for (const Splice& s : std::views::reverse(splices)) {
    const auto place = steps.begin() + static_cast<std::ptrdiff_t>(s.at);
    const auto behind = s.removes ? steps.erase(place) : place;
    steps.insert(behind, s.puts.begin(), s.puts.end());
  }
}

/// Bodies with the same text are one: what was written once may have been copied, for devices or
/// rounds of loops.
Program applied(const Program& program, const MendCandidate& candidate) {
  Program out = program;
  const std::vector<Step>& whole = body_of(program, candidate.place.body);
  const int bodies = static_cast<int>(program.procedures.size() + program.classes.size());
  for (int body = 0; body < bodies; ++body) {
    if (body_of(program, body) != whole) continue;
    MendPlace place = candidate.place;
    place.body = body;
    splice(steps_at(out, place), candidate.splices);
  }
  return out;
}

bool is_right_and_wellformed(Judge& judge, const Program& program) {
  try {
    require_wellformed(program, {.where = "mended"});
  } catch (const InputError&) {
    return false;
  }
  return judge.is_right(program);
}

}  // namespace

MendSearch check_and_mend(Program program, std::int64_t most_work) {
  MendSearch search;
  const int multiple = multiple_of(program);
  Judge quick(program);
  if (std::optional<Verdict> good = quick.good_verdict()) {
    search.verdict = *std::move(good);
    return search;
  }
  FullVerdict judged = judge_in_full(program);
  search.verdict = std::move(judged.verdict);
  Cure& cure = search.verdict.cure.emplace();
  const std::int64_t most_tried = most_work / work_of(program);
  cure.cut_short = most_tried < kFewestTried;
  if (cure.cut_short) return search;
  for (const MendCandidate& candidate : mend_candidates(program, judged.suspects, multiple)) {
    cure.cut_short = cure.tried >= most_tried;
    if (cure.cut_short) break;
    ++cure.tried;
    Program mended = applied(program, candidate);
    if (!is_right_and_wellformed(quick, mended)) continue;
    cure.body = body_name(program, candidate.place);
    cure.change = candidate.change;
    search.mended = std::move(mended);
    break;
  }
  return search;
}

}  // namespace placet
