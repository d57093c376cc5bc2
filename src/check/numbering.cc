#include "check/numbering.h"

namespace placet {

Numbering::Numbering(const Program& program, int device_class)
    : micro_batches_(static_cast<std::size_t>(program.axes.back().degree)),
      units_(program.reference.units.size(), 0),
      touched_(program.reference.units.size(), false) {
  for (const Family& family : program.families) {
    places_.push_back({.by_unit = family.by_unit, .by_micro_batch = family.by_micro_batch});
  }
  const DeviceClass& own = program.classes[static_cast<std::size_t>(device_class)];
  for (const auto* list : {&own.initial, &own.results}) {
    for (const Initial& initial : *list) note(initial.buffer, {});
  }
  for_each_instruction(program, own.body, {}, [&](const Instruction& i, const Arguments& a) {
    for (const BufferRef& ref : i.inputs) note(ref, a);
    for (const BufferRef& ref : i.outputs) note(ref, a);
  });
  for (Place& family : places_) {
    family.begin = size_;
    const std::size_t units = family.by_unit ? unit_count_ : 1;
    size_ += units * (family.by_micro_batch ? micro_batches_ : 1);
  }
}

void Numbering::note(const BufferRef& ref, const Arguments& a) {
  if (!places_[static_cast<std::size_t>(ref.family)].by_unit) return;
  const auto unit = static_cast<std::size_t>(value_of(ref.unit, a));
  if (touched_[unit]) return;
  touched_[unit] = true;
  units_[unit] = unit_count_++;
}

}  // namespace placet
