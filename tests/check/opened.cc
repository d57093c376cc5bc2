#include "check/opened.h"

#include "program/walk.h"

namespace placet::testing {
namespace {

IndexTerm constant(const IndexTerm& term, const Arguments& a) {
  return {.variable = IndexTerm::Variable::none, .offset = value_of(term, a)};
}

void open(std::vector<BufferRef>& refs, const Arguments& a) {
  for (BufferRef& ref : refs) {
    ref.unit = constant(ref.unit, a);
    ref.micro_batch = constant(ref.micro_batch, a);
  }
}

}  // namespace

Program opened(const Program& program) {
  Program out = program;
  out.procedures.clear();
  for (DeviceClass& c : out.classes) {
    std::vector<Step> body;
    for_each_instruction(program, c.body, {}, [&](const Instruction& i, const Arguments& a) {
      Instruction one = i;
      open(one.inputs, a);
      open(one.outputs, a);
      one.key.unit = constant(one.key.unit, a);
      body.push_back({.what = std::move(one)});
    });
    c.body = std::move(body);
  }
  return out;
}

}  // namespace placet::testing
