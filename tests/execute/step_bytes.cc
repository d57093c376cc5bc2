#include "execute/step_bytes.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "check/tally.h"
#include "execute/run.h"
#include "meet/meeting.h"
#include "ranks/groups.h"
#include "units/at.h"

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

}  // namespace

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

std::string name_of_engine(const ::testing::TestParamInfo<std::string>& engine) {
  std::string name = engine.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace placet::testing
