#include "check/mend_changes.h"

#include <algorithm>

#include "program/instruction_form.h"
#include "program/text.h"
#include "units/at.h"

namespace placet {
namespace {

/// Axes of a mesh that groups are made of; more make too many groups to try.
constexpr std::size_t kMostGroupAxes = 4;

}  // namespace

MendChanges::MendChanges(const Program& program, int multiple)
    : program_(program), multiple_(multiple) {
  for (int p = 0; p < static_cast<int>(program.procedures.size()); ++p) {
    add_places({.body = p, .loops = {}, .at = 0}, program.procedures[at(p)].body);
  }
  const int procedures = static_cast<int>(program.procedures.size());
  for (int c = 0; c < static_cast<int>(program.classes.size()); ++c) {
    add_places({.body = procedures + c, .loops = {}, .at = 0}, program.classes[at(c)].body);
  }
  for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) {
    if (program.axes[a].degree > 1) axes_.push_back(static_cast<int>(a));
  }
  if (axes_.size() > kMostGroupAxes) axes_.resize(kMostGroupAxes);
}

void MendChanges::add_places(const MendPlace& around, const std::vector<Step>& steps) {
  lists_.push_back({around, &steps});
  for (std::size_t k = 0; k < steps.size(); ++k) {
    MendPlace place = around;
    place.at = k;
    if (const Instruction* i = instruction_of(steps[k])) {
      places_[i] = {place, &steps};
      all_.push_back(i);
      if (i->kind == InstructionKind::free) continue;
      for (const BufferRef& ref : i->inputs) read_.insert(ref.family);
    } else if (const auto* loop = std::get_if<Loop>(&steps[k].what)) {
      place.loops.push_back(k);
      add_places(place, loop->body);
    }
  }
}

const Instruction* MendChanges::writer_before(const Instruction& i,
                                              const std::vector<BufferRef>& buffers) const {
  const auto& [place, steps] = places_.at(&i);
  for (std::size_t k = place.at; k-- > 0;) {
    const Instruction* writer = instruction_of((*steps)[k]);
    if (writer == nullptr || !writes(*writer)) continue;
    if (writer->kind == InstructionKind::zero) continue;
    const bool makes = std::ranges::any_of(
        buffers, [&](const BufferRef& ref) { return names_buffer(writer->outputs, ref); });
    if (makes) return writer;
  }
  return nullptr;
}

std::string MendChanges::quoted(const Instruction& i) const {
  return "'" + to_text(program_, i) + "'";
}

void MendChanges::add(const MendPlace& place, std::vector<Splice> splices, std::string change) {
  std::string key = std::to_string(place.body);
  for (std::size_t loop : place.loops) key += "." + std::to_string(loop);
  for (const Splice& s : splices) key += " " + std::to_string(s.at);
  if (!known_.insert(key + change).second) return;
  out_.push_back({place, std::move(splices), std::move(change)});
}

void MendChanges::put_before(const Instruction& i, const Instruction& what) {
  const MendPlace& place = places_.at(&i).place;
  add(place, {{.at = place.at, .removes = false, .puts = {{what}}}},
      "put " + quoted(what) + " before " + quoted(i));
}

void MendChanges::put_behind(const Instruction& i, const Instruction& what) {
  const MendPlace& place = places_.at(&i).place;
  add(place, {{.at = place.at + 1, .removes = false, .puts = {{what}}}},
      "put " + quoted(what) + " behind " + quoted(i));
}

void MendChanges::put_at(const MendPlace& place, const Instruction& what) {
  add(place, {{.at = place.at, .removes = false, .puts = {{what}}}},
      "put " + quoted(what) + " as step " + std::to_string(place.at + 1));
}

void MendChanges::replace(const Instruction& i, const Instruction& what) {
  if (what == i) return;
  const MendPlace& place = places_.at(&i).place;
  add(place, {{.at = place.at, .removes = true, .puts = {{what}}}},
      "put " + quoted(what) + " in the place of " + quoted(i));
}

void MendChanges::remove(const Instruction& i) {
  const MendPlace& place = places_.at(&i).place;
  add(place, {{.at = place.at, .removes = true, .puts = {}}}, "leave out " + quoted(i));
}

void MendChanges::move(const Instruction& i, std::size_t to) {
  const auto& [place, steps] = places_.at(&i);
  if (to == place.at || to == place.at + 1 || to > steps->size()) return;
  std::vector<Splice> splices = {{.at = place.at, .removes = true, .puts = {}},
                                 {.at = to, .removes = false, .puts = {{i}}}};
  if (to < place.at) std::swap(splices[0], splices[1]);
  const bool last = to == steps->size();
  const Instruction* next = last ? nullptr : instruction_of((*steps)[to]);
  add(place, std::move(splices),
      "move " + quoted(i) +
          (next != nullptr ? " before " + quoted(*next) : " to step " + std::to_string(to + 1)));
}

void MendChanges::exchange(const Instruction& i, const Instruction& other) {
  const MendPlace& one = places_.at(&i).place;
  const MendPlace& two = places_.at(&other).place;
  std::vector<Splice> splices = {{.at = one.at, .removes = true, .puts = {{other}}},
                                 {.at = two.at, .removes = true, .puts = {{i}}}};
  if (two.at < one.at) std::swap(splices[0], splices[1]);
  add(one, std::move(splices), "let " + quoted(i) + " and " + quoted(other) + " change places");
}

const Instruction* instruction_of(const Step& step) { return std::get_if<Instruction>(&step.what); }

bool writes(const Instruction& i) {
  return i.kind != InstructionKind::alloc && i.kind != InstructionKind::free && !i.outputs.empty();
}

Instruction beside(const Instruction& i, InstructionKind kind) {
  Instruction out;
  out.kind = kind;
  out.stream = i.stream;
  out.phase = i.phase;
  out.step = i.step;
  return out;
}

}  // namespace placet
