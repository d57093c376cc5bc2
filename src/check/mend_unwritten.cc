// Buffers that are read and that nothing writes, beside those that are written and that nothing
// reads: one message or copy may be missing between them. Which goes with which is guessed by types
// and names; as all changes are judged, a wrong guess costs time only.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "check/mend_changes.h"
#include "program/instruction_form.h"
#include "program/tensor.h"
#include "program/walk.h"
#include "units/at.h"

namespace placet {
namespace {

/// What one buffer is tried to be made from.
constexpr std::size_t kMostSources = 6;

/// How an instruction makes a buffer of one type from one of another.
struct Way {
  InstructionKind kind = InstructionKind::copy;
  AxisList axes;
  int dim = 0;

  friend auto operator<=>(const Way&, const Way&) = default;
};

/// Along one dim: a gather, or a scatter or a slice.
void add_ways(const Division& from, const Division& to, int dim, std::vector<Way>& out) {
  const bool gathers = from.size() > to.size();
  const Division& longer = gathers ? from : to;
  const Division& shorter = gathers ? to : from;
  if (shorter.size() == longer.size()) return;
  const auto rest = longer.begin() + static_cast<std::ptrdiff_t>(shorter.size());
  if (!std::equal(longer.begin(), rest, shorter.begin())) return;
  AxisList axes;
  for (auto level = rest; level != longer.end(); ++level) {
    axes.insert(axes.end(), level->begin(), level->end());
  }
  if (gathers) {
    out.push_back({InstructionKind::all_gather, axes, dim});
  } else {
    out.push_back({InstructionKind::reduce_scatter, axes, dim});
    out.push_back({InstructionKind::slice, axes, dim});
  }
}

std::vector<Way> ways_between(const BufferType& from, const BufferType& to) {
  std::vector<Way> out;
  if (from.pieces == to.pieces) {
    if (from.flat == to.flat) out.push_back({});
    add_ways(one_by_one(from.flat), one_by_one(to.flat), kFlat, out);
    return out;
  }
  if (from.pieces.size() != 1 || to.pieces.size() != 1 || from.flat != to.flat) return out;
  const std::vector<DividedDim>& a = from.pieces[0].dims;
  const std::vector<DividedDim>& b = to.pieces[0].dims;
  if (!std::ranges::equal(a, b, {}, &DividedDim::dim, &DividedDim::dim)) return out;
  for (std::size_t d = 0; d < a.size(); ++d) {
    if (a[d].by != b[d].by) add_ways(a[d].by, b[d].by, static_cast<int>(d), out);
  }
  return out;
}

using UnitsByFamily = std::map<int, std::vector<IndexTerm>>;

bool counts(const IndexTerm& term) { return term.variable != IndexTerm::Variable::none; }

/// Whether some of them may be the unit of a buffer: one that a loop counts may be any.
bool has_unit(const UnitsByFamily& units, const BufferRef& ref) {
  const auto found = units.find(ref.family);
  if (found == units.end()) return false;
  return counts(ref.unit) || std::ranges::any_of(found->second, [&](const IndexTerm& unit) {
           return counts(unit) || unit == ref.unit;
         });
}

bool is_unit_of(const BufferRef& a, const BufferRef& b) {
  return a.family == b.family && a.unit == b.unit;
}

/// How many letters two names end alike in.
std::ptrdiff_t alike_at_the_end(std::string_view a, std::string_view b) {
  return std::ranges::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).in1 - a.rbegin();
}

/// Of one class of devices.
class Unwritten {
 public:
  Unwritten(MendChanges& changes, const DeviceClass& own)
      : changes_(changes), own_(own), families_(changes.program().families) {
    for_each_written_instruction(changes.program(), own.body, [&](const Instruction& i) {
      all_.push_back(&i);
      for (const BufferRef& ref : i.outputs) {
        if (writes(i) && i.kind != InstructionKind::zero) written_[ref.family].push_back(ref.unit);
      }
      for (const BufferRef& ref : i.inputs) {
        // What is brought up to date in its place is not read by that.
        const bool reads = i.kind != InstructionKind::free && !names_buffer(i.outputs, ref);
        if (reads) read_[ref.family].push_back(ref.unit);
      }
    });
  }

  void mend() {
    for (const Instruction* i : all_) {
      if (!writes(*i)) continue;
      for (const BufferRef& ref : i->inputs) {
        if (!is_there_from_the_start(ref)) supply(i, ref);
      }
    }
    for (const Initial& initial : own_.initial) supply(nullptr, initial.buffer);
    for (const auto& [key, what] : together_) {
      if (what.instruction.inputs.size() > 1) put(what);
    }
    for (const Supply& what : single_) put(what);
  }

 private:
  struct Supply {
    const Instruction* reader = nullptr;  // the first; null: it is read in the next step
    const Instruction* writer = nullptr;  // the last of what it is made from
    Instruction instruction;
  };

  bool is_there_from_the_start(const BufferRef& ref) const {
    return std::ranges::any_of(
        own_.initial, [&](const Initial& initial) { return initial.buffer.family == ref.family; });
  }

  void put(const Supply& what) {
    if (what.reader != nullptr) changes_.put_before(*what.reader, what.instruction);
    Instruction behind = what.instruction;
    if (what.reader != nullptr) behind.stream = what.writer->stream;
    changes_.put_behind(*what.writer, behind);
  }

  /// Something in place of a buffer that is read and that nothing writes.
  void supply(const Instruction* reader, const BufferRef& to) {
    const bool known =
        std::ranges::any_of(supplied_, [&](const BufferRef& r) { return is_unit_of(r, to); });
    if (known || has_unit(written_, to)) return;
    supplied_.push_back(to);
    const std::vector<BufferRef> sources = sources_of(to, reader == nullptr);
    for (std::size_t k = 0; k < sources.size(); ++k) {
      for (const Way& way : ways_between(type_of(sources[k]), type_of(to))) {
        add(reader, way, sources[k], to, k);
      }
    }
  }

  void add(const Instruction* reader, const Way& way, const BufferRef& from, const BufferRef& to,
           std::size_t rank) {
    const Instruction* writer = last_writer(from);
    const Instruction& near = reader != nullptr ? *reader : *writer;
    Instruction what = beside(near, way.kind);
    what.axes = way.axes;
    if (way.kind != InstructionKind::copy) what.dim = way.dim;
    what.inputs = {from};
    what.outputs = {to};
    what.inputs[0].piece = what.outputs[0].piece = -1;
    single_.push_back({.reader = reader, .writer = writer, .instruction = what});
    if (form_of(way.kind).buffers == InstructionForm::Buffers::pair) return;
    Supply& all = together_[{changes_.place_of(near).steps, way, rank}];
    if (all.writer == nullptr) {
      all = single_.back();
      return;
    }
    all.writer = writer;
    all.instruction.inputs.push_back(what.inputs[0]);
    all.instruction.outputs.push_back(what.outputs[0]);
  }

  const Instruction* last_writer(const BufferRef& ref) const {
    const Instruction* last = nullptr;
    for (const Instruction* i : all_) {
      if (writes(*i) && names_buffer(i->outputs, ref)) last = i;
    }
    return last;
  }

  const BufferType& type_of(const BufferRef& ref) const { return families_[at(ref.family)].type; }

  /// What it may be made from: of what nobody reads, else (unless only that is asked for) of all
  /// that is written, those whose names end most like its own.
  std::vector<BufferRef> sources_of(const BufferRef& to, bool idle_only) const {
    std::vector<BufferRef> best = most_alike(to, true);
    if (best.empty() && !idle_only) best = most_alike(to, false);
    return best;
  }

  std::vector<BufferRef> most_alike(const BufferRef& to, bool idle) const {
    std::vector<BufferRef> best;
    std::ptrdiff_t most = 0;
    for (const auto& [family, units] : written_) {
      BufferRef from = to;
      from.family = family;
      const std::ptrdiff_t alike =
          alike_at_the_end(families_[at(family)].name, families_[at(to.family)].name);
      if (alike < most || !may_be_source(from, to, idle)) continue;
      if (alike > most) best.clear();
      most = alike;
      if (best.size() < kMostSources) best.push_back(from);
    }
    return best;
  }

  bool may_be_source(const BufferRef& from, const BufferRef& to, bool idle) const {
    const Family& source = families_[at(from.family)];
    const Family& target = families_[at(to.family)];
    return from.family != to.family && source.by_unit == target.by_unit &&
           source.by_micro_batch == target.by_micro_batch && has_unit(written_, from) &&
           !(idle && has_unit(read_, from)) && last_writer(from) != nullptr &&
           !ways_between(source.type, target.type).empty();
  }

  MendChanges& changes_;
  const DeviceClass& own_;
  const std::vector<Family>& families_;
  std::vector<const Instruction*> all_;  // of the class
  UnitsByFamily written_;
  UnitsByFamily read_;
  std::vector<BufferRef> supplied_;
  /// Of the k-th source of each.
  std::map<std::tuple<const std::vector<Step>*, Way, std::size_t>, Supply> together_;
  std::vector<Supply> single_;
};

/// The last instruction of a class that writes one of the buffers; null: there is none.
const Instruction* last_writer_in(const Program& program, const DeviceClass& own,
                                  const std::vector<BufferRef>& buffers) {
  const Instruction* last = nullptr;
  for_each_written_instruction(program, own.body, [&](const Instruction& i) {
    const auto is_one = [&](const BufferRef& ref) { return names_buffer(i.outputs, ref); };
    if (writes(i) && std::ranges::any_of(buffers, is_one)) last = &i;
  });
  return last;
}

}  // namespace

void mend_missing_members(MendChanges& changes, const Instruction& i) {
  if (!is_collective(i.kind)) return;
  const Program& program = changes.program();
  const auto calls = [&](const DeviceClass& own) {
    bool found = false;
    for_each_written_instruction(program, own.body,
                                 [&](const Instruction& other) { found = found || other == i; });
    return found;
  };
  for (const DeviceClass& own : program.classes) {
    if (calls(own)) continue;
    const Instruction* writer = last_writer_in(program, own, i.inputs);
    if (writer != nullptr) changes.put_behind(*writer, i);
  }
}

void mend_unwritten(MendChanges& changes) {
  for (const DeviceClass& own : changes.program().classes) Unwritten(changes, own).mend();
}

}  // namespace placet
