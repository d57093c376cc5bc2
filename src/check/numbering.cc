#include "check/numbering.h"

#include <algorithm>
#include <set>
#include <utility>

#include "units/at.h"

namespace placet {
namespace {

using Variable = IndexTerm::Variable;

/// Whether a unit is somewhere named by the number of a micro-batch.
bool names_units_by_micro_batch(const std::vector<Step>& body) {
  const auto is_so = [](const BufferRef& ref) {
    return ref.unit.variable == Variable::micro_batch;
  };
  return std::ranges::any_of(body, [&](const Step& step) {
    if (const auto* i = std::get_if<Instruction>(&step.what)) {
      return std::ranges::any_of(i->inputs, is_so) || std::ranges::any_of(i->outputs, is_so);
    }
    if (const auto* call = std::get_if<Call>(&step.what)) {
      return call->unit.variable == Variable::micro_batch;
    }
    const auto* loop = std::get_if<Loop>(&step.what);
    return loop != nullptr && names_units_by_micro_batch(loop->body);
  });
}

/// Calls visit(ref, arguments) for the buffers of each call of a procedure for a unit, once.
template <class Visit>
class OncePerUnit {
 public:
  OncePerUnit(const Program& program, Visit& visit) : program_(program), visit_(visit) {}

  void go(const std::vector<Step>& body, const Arguments& arguments) {
    for (const Step& step : body) {
      if (const auto* i = std::get_if<Instruction>(&step.what)) {
        for (const BufferRef& ref : i->inputs) visit_(ref, arguments);
        for (const BufferRef& ref : i->outputs) visit_(ref, arguments);
      } else if (const auto* call = std::get_if<Call>(&step.what)) {
        const std::int64_t unit = value_of(call->unit, arguments);
        if (!seen_.insert({call->procedure, unit}).second) continue;
        go(program_.procedures[at(call->procedure)].body,
           {.unit = unit, .micro_batch = value_of(call->micro_batch, arguments)});
      } else if (const auto* loop = std::get_if<Loop>(&step.what)) {
        take(*loop, arguments);
      }
    }
  }

 private:
  void take(const Loop& loop, Arguments arguments) {
    if (loop.variable == Variable::unit) {
      for_each_round(loop, arguments, [&](const Arguments& inner) { go(loop.body, inner); });
    } else {
      arguments.micro_batch = loop.first;
      go(loop.body, arguments);
    }
  }

  const Program& program_;
  Visit& visit_;
  std::set<std::pair<int, std::int64_t>> seen_;
};

}  // namespace

Numbering::Numbering(const Program& program, int device_class)
    : Numbering(program, device_class, std::vector<bool>(program.families.size(), true)) {}

Numbering::Numbering(const Program& program, int device_class, const std::vector<bool>& families)
    : micro_batches_(static_cast<std::size_t>(program.axes.back().degree)),
      units_(program.reference.units.size(), 0),
      touched_(program.reference.units.size(), false) {
  for (const Family& family : program.families) {
    places_.push_back({.by_unit = family.by_unit, .by_micro_batch = family.by_micro_batch});
  }
  note_units(program, program.classes[at(device_class)]);
  for (std::size_t f = 0; f < places_.size(); ++f) {
    Place& family = places_[f];
    family.begin = size_;
    if (!families[f]) continue;
    const std::size_t units = family.by_unit ? unit_count_ : 1;
    size_ += units * (family.by_micro_batch ? micro_batches_ : 1);
  }
}

/// A call names the same units for every micro-batch, unless units are named by these.
void Numbering::note_units(const Program& program, const DeviceClass& own) {
  for (const auto* list : {&own.initial, &own.results}) {
    for (const Initial& initial : *list) note(initial.buffer, {});
  }
  const auto visit = [&](const BufferRef& ref, const Arguments& a) { note(ref, a); };
  const bool by_micro_batch =
      names_units_by_micro_batch(own.body) ||
      std::ranges::any_of(program.procedures, [](const Procedure& procedure) {
        return names_units_by_micro_batch(procedure.body);
      });
  if (!by_micro_batch) return OncePerUnit(program, visit).go(own.body, {});
  for_each_instruction(program, own.body, {}, [&](const Instruction& i, const Arguments& a) {
    for (const BufferRef& ref : i.inputs) visit(ref, a);
    for (const BufferRef& ref : i.outputs) visit(ref, a);
  });
}

void Numbering::note(const BufferRef& ref, const Arguments& a) {
  if (!places_[at(ref.family)].by_unit) return;
  const auto unit = static_cast<std::size_t>(value_of(ref.unit, a));
  if (touched_[unit]) return;
  touched_[unit] = true;
  units_[unit] = unit_count_++;
}

}  // namespace placet
