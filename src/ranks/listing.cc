#include "ranks/listing.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "units/at.h"
#include "units/error.h"

namespace placet::ranks {
namespace {

bool divided_by(const BufferType& type, int axis) {
  const auto has = [&](const AxisList& list) {
    return std::ranges::find(list, axis) != list.end();
  };
  if (has(type.flat)) return true;
  for (const PieceType& piece : type.pieces) {
    for (const DividedDim& dim : piece.dims) {
      if (std::ranges::any_of(dim.by, has)) return true;
    }
  }
  return false;
}

constexpr int kDeepest = 64;

double count(const Program& program, const std::vector<Step>& body, int depth);

double count(const Program& program, const Call& call, int depth) {
  if (call.procedure < 0 || at(call.procedure) >= program.procedures.size()) {
    refuse("program", std::to_string(call.procedure), "is no procedure");
  }
  return count(program, program.procedures[at(call.procedure)].body, depth + 1);
}

double count(const Program& program, const Loop& loop, int depth) {
  const double rounds =
      std::abs(static_cast<double>(loop.last) - static_cast<double>(loop.first)) + 1;
  return rounds * std::max(1.0, count(program, loop.body, depth + 1));
}

double count(const Program& program, const std::vector<Step>& body, int depth) {
  if (depth > kDeepest)
    refuse("program", std::to_string(depth), "calls and loops are nested too deeply");
  double sum = 0;
  for (const Step& step : body) {
    if (const auto* call = std::get_if<Call>(&step.what)) {
      sum += count(program, *call, depth);
    } else if (const auto* loop = std::get_if<Loop>(&step.what)) {
      sum += count(program, *loop, depth);
    } else {
      sum += 1;
    }
  }
  return sum;
}

}  // namespace

Listing::Listing(const Program& program, const DeviceClass& device_class) {
  const int micro_axis = static_cast<int>(program.axes.size()) - 1;
  for (const Family& family : program.families) {
    varies_.push_back(divided_by(family.type, micro_axis) ? 1 : 0);
  }
  for_each_instruction(program, device_class.body, {},
                       [&](const Instruction& what, const Arguments& arguments) {
                         ListedInstruction one{.what = &what, .arguments = arguments};
                         for (const BufferRef& ref : what.inputs) {
                           one.inputs.push_back(listed(program, ref, arguments));
                         }
                         for (const BufferRef& ref : what.outputs) {
                           one.outputs.push_back(listed(program, ref, arguments));
                         }
                         one.micro_batch = micro_batch_of(what, arguments);
                         instructions.push_back(std::move(one));
                       });
  for (const Initial& i : device_class.initial) initial.push_back(listed(program, i.buffer, {}));
  for (const Initial& i : device_class.results) results.push_back(listed(program, i.buffer, {}));
}

std::int64_t Listing::micro_batch_of(const Instruction& what, const Arguments& arguments) const {
  for (const std::vector<BufferRef>* refs : {&what.inputs, &what.outputs}) {
    for (const BufferRef& ref : *refs) {
      if (varies_[at(ref.family)] != 0) return value_of(ref.micro_batch, arguments);
    }
  }
  return arguments.micro_batch;
}

ListedRef Listing::listed(const Program& program, const BufferRef& ref,
                          const Arguments& arguments) {
  if (ref.family < 0 || at(ref.family) >= program.families.size()) {
    refuse("program", std::to_string(ref.family), "is no family of buffers");
  }
  const Family& family = program.families[at(ref.family)];
  const std::int64_t unit = value_of(ref.unit, arguments);
  const std::int64_t micro_batch = value_of(ref.micro_batch, arguments);
  if (ref.piece >= 0 && at(ref.piece) >= family.type.pieces.size()) {
    refuse("program", family.name, "has no such piece");
  }
  const bool varies = varies_[at(ref.family)] != 0;
  if (varies && (micro_batch < 0 || micro_batch >= program.axes.back().degree)) {
    refuse("program", family.name,
           "is used for micro-batch " + std::to_string(micro_batch) + ", which does not exist");
  }
  const Slot slot{.family = ref.family,
                  .unit = family.by_unit ? unit : 0,
                  .micro_batch = family.by_micro_batch ? micro_batch : 0};
  const auto [s, new_slot] = slot_numbers_.try_emplace({slot.family, slot.unit, slot.micro_batch},
                                                       static_cast<int>(slots.size()));
  if (new_slot) slots.push_back(slot);
  const Form form{.family = ref.family, .micro_batch = varies ? micro_batch : 0};
  const auto [f, new_form] =
      form_numbers_.try_emplace({form.family, form.micro_batch}, static_cast<int>(forms.size()));
  if (new_form) forms.push_back(form);
  return {.slot = s->second, .form = f->second, .piece = ref.piece};
}

double instructions_in(const Program& program, const DeviceClass& device_class) {
  return count(program, device_class.body, 0);
}

}  // namespace placet::ranks
