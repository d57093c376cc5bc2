// The grammar check on programs that no text can spell, and its limits.
#include "program/wellformed.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "program/samples.h"
#include "program/text.h"
#include "units/error.h"

namespace placet {
namespace {

Instruction& instruction(Program& p, std::size_t step) {
  return std::get<Instruction>(p.classes[0].body.at(step).what);
}

struct Damage {
  std::function<void(Program&)> make;
  const char* message;  // behind "program: "
};

const std::vector<Damage> kDamages = {
    {[](Program& p) { p.axes.clear(); }, "mesh: has no axis of micro-batches"},
    {[](Program& p) { p.axes[0].name = ""; }, "mesh: an axis has no name"},
    {[](Program& p) { p.axes[0].degree = 0; },
     "mesh: 'dp' has the degree 0; expected from 1 to 16777216"},
    {[](Program& p) { p.dims[0].extent = -1; },
     "dims: 'sample' has the extent -1; expected from 1 to 281474976710656"},
    {[](Program& p) { p.dims[0].name = "a\nb"; },
     "dims: a dim has characters in its text that cannot be printed; expected UTF-8 without "
     "control characters"},
    {[](Program& p) { p.dims[0].name = "\xff"; },
     "dims: a dim has characters in its text that cannot be printed; expected UTF-8 without "
     "control characters"},
    {[](Program& p) { p.kernels[0].inputs = 9; },
     "kernel 'linear': 'linear' has not the tensors that come in and go out"},
    {[](Program& p) { p.kernels[0].tensors[0].dims[0] = 7; },
     "kernel 'linear': '7' is the number of no dim of the kernel; expected from 0 to 2"},
    {[](Program& p) { p.kernels[0].statements[0].products.clear(); },
     "kernel 'linear': 'y' is a sum of nothing"},
    {[](Program& p) { p.kernels[0].statements[0].combine = Combine::max; },
     "kernel 'linear': 'y' is a sum of products with parts of a function"},
    {[](Program& p) { p.kernels[0].statements.clear(); }, "kernel 'linear': 'y' is never made"},
    {[](Program& p) { p.kernels[1].statements[0].reduced = {0}; },
     "kernel 'distance': 's' is combined and left"},
    {[](Program& p) { p.reference.weights = 5; }, "reference: '5' is the number of no input"},
    {[](Program& p) { p.reference.rules[0].kernel = 99; },
     "reference: '99' is the number of no kernel; expected from 0 to 7"},
    {[](Program& p) { p.reference.kinds[0].values[1].parameter = -1; },
     "reference, kind 'layer': 'layer.weight' is a value that is another parameter"},
    {[](Program& p) { p.reference.kinds[0].parameters[0].rule = 1; },
     "reference, kind 'layer': '1' is the number of no rule; expected from 0 to 0"},
    {[](Program& p) { p.reference.kinds[0].applications[0].kernel = -1; },
     "reference, kind 'layer': '-1' is the number of no kernel; expected from 0 to 7"},
    {[](Program& p) { p.reference.units[0].kind = 3; },
     "reference, units: '3' is the number of no kind; expected from 0 to 0"},
    {[](Program& p) { p.reference.kinds[0].stream_in = 0; },
     "reference, kind 'layer': 'x' is the stream and an input or parameter"},
    {[](Program& p) { p.families[0].type.pieces[0].dims[0].dim = 3; },
     "buffer 'w': '3' is the number of no dim; expected from 0 to 2"},
    {[](Program& p) { p.families[0].type.pieces[0].dims[0].by = {{}}; },
     "buffer 'w': '()' is a division by no axis"},
    {[](Program& p) { p.families[0].type.pieces[0].dims[0].shift = 1; },
     "buffer 'w': '+1' is the part of another device, but no single axis divides last; expected "
     "DIM/AXIS+N"},
    {[](Program& p) {
       DividedDim& sample = p.families[1].type.pieces[0].dims[0];
       sample.by = {{0}};
       sample.shift = 2;
     },
     "buffer 'x': '+2' is no other device along the axis; expected from 1 to 1"},
    {[](Program& p) { p.families[0].type.flat = {2}; },
     "buffer 'w': '2' is the number of no axis; expected from 0 to 1"},
    {[](Program& p) { p.families[0].name = p.families[1].name; },
     "buffers: 'x' is the name of a buffer twice"},
    {[](Program& p) { p.classes[0].box.clear(); },
     "class 'all': 'all' has coordinates along 0 axes; expected one list for each of the 1 axes of "
     "the mesh"},
    {[](Program& p) {
       p.classes[0].box[0] = {1, 0};
     },
     "class 'all': '0' is no further coordinate along dp; expected coordinates from 0 to 1 in "
     "rising order"},
    {[](Program& p) { p.classes[0].initial[0].buffer.unit.offset = 1; },
     "class 'all', holds w = parameter w of unit 0: has an index that its buffer has not"},
    {[](Program& p) { p.classes[0].initial[0].buffer.piece = 0; },
     "class 'all', holds w:0 = parameter w of unit 0: 'w' is named by one of its tensors"},
    {[](Program& p) { p.classes[0].initial[1].pieces[0].unit = 1; },
     "class 'all', holds x[0] = input x: speaks of a unit where none matters"},
    {[](Program& p) {
       p.classes[0].initial[1].buffer.micro_batch.variable = IndexTerm::Variable::micro_batch;
     },
     "class 'all', holds x[j] = input x: has an index that is no number"},
    {[](Program& p) { instruction(p, 0).outputs.clear(); },
     "class 'all', step 1: 'alloc ' has another number of buffers; expected one out"},
    {[](Program& p) { instruction(p, 0).outputs[0].family = 77; },
     "class 'all', step 1: '77' is the number of no buffer; expected from 0 to 12"},
    {[](Program& p) { instruction(p, 0).outputs[0].piece = 1; },
     "class 'all', step 1: '1' is the number of no tensor of 'count'; expected from 0 to 0"},
    {[](Program& p) { instruction(p, 0).outputs[0].unit.offset = 1; },
     "class 'all', step 1: 'count' has no index of units"},
    {[](Program& p) { instruction(p, 0).kernel = 0; },
     "class 'all', step 1: 'alloc count' has a kernel, which alloc does not use"},
    {[](Program& p) { instruction(p, 0).axes = {0}; },
     "class 'all', step 1: 'alloc count over dp' has axes, which alloc does not "
     "use"},
    {[](Program& p) { instruction(p, 0).event = 0; },
     "class 'all', step 1: 'alloc count' has an event, which only record and wait "
     "use"},
    {[](Program& p) { instruction(p, 0).label = "\x01"; },
     "class 'all', step 1: a label has characters in its text that cannot be printed; expected "
     "UTF-8 without control characters"},
    {[](Program& p) { instruction(p, 7).outputs.clear(); },
     "class 'all', step 10: 'all_reduce sum count over dp' gives other buffers than it takes"},
    {[](Program& p) { instruction(p, 7).axes = {5}; },
     "class 'all', step 10: '5' is the number of no axis; expected from 0 to 1"},
    {[](Program& p) { instruction(p, 7).peer = 1; },
     "class 'all', step 10: 'all_reduce sum count over dp' has a peer, which all_reduce does not "
     "use"},
    {[](Program& p) {
       std::get<Call>(std::get<Loop>(p.classes[0].body[8].what).body[0].what).procedure = 4;
     },
     "class 'all', step 12: '4' is the number of no procedure; expected from 0 to 0"},
    {[](Program& p) { std::get<Loop>(p.classes[0].body[8].what).last = -1; },
     "class 'all', step 11: '-1' is no bound of a loop; expected from 0 to 4294967296"},
};

TEST(WellformedTest, EveryDamageHasItsMessage) {
  const Program good = sample_program("linear");
  ASSERT_EQ(refusal_of(good), "");
  for (std::size_t i = 0; i < kDamages.size(); ++i) {
    Program p = good;
    kDamages[i].make(p);
    EXPECT_EQ(refusal_of(p), std::string("program: ") + kDamages[i].message) << "damage " << i;
  }
}

// 10 x 10 x ... opened up, while the text stays short.
TEST(WellformedTest, LoopsAreCountedAndNotOpenedUp) {
  Program p = sample_program("linear");
  std::vector<Step> body = {{Instruction{.kind = InstructionKind::record, .event = 0}}};
  for (int depth = 0; depth < 9; ++depth) {
    Loop loop{.variable = IndexTerm::Variable::unit, .first = 0, .last = 9, .body = body};
    body = {{loop}};
  }
  p.classes[0].body = body;
  EXPECT_EQ(
      refusal_of(p),
      "program: class 'all': 'all' executes too many instructions; expected at most 67108864");
  GrammarRequest request{.where = "program"};
  request.most_steps = std::int64_t{1} << 40;
  EXPECT_NO_THROW(require_wellformed(p, request));
}

// Procedure k calls k + 1 twice: 2^59 calls in 60 procedures.
TEST(WellformedTest, CallsAreCountedAndNotOpenedUp) {
  Program p = sample_program("linear");
  p.procedures.clear();
  for (int k = 0; k < 60; ++k) {
    Procedure procedure{.name = "p" + std::to_string(k), .body = {}};
    if (k < 59) procedure.body = {{Call{.procedure = k + 1}}, {Call{.procedure = k + 1}}};
    p.procedures.push_back(procedure);
  }
  p.classes[0].body = {{Call{.procedure = 0}}};
  EXPECT_EQ(
      refusal_of(p),
      "program: class 'all': 'all' executes too many instructions; expected at most 67108864");
  p.procedures[59].body = {{Call{.procedure = 0}}};
  EXPECT_NE(refusal_of(p).find("calls itself"), std::string::npos) << refusal_of(p);
}

TEST(WellformedTest, CallsDoNotStandTooDeep) {
  Program p = sample_program("linear");
  p.procedures.clear();
  for (int k = 0; k < 5000; ++k) {
    Procedure procedure{.name = "p" + std::to_string(k), .body = {}};
    if (k < 4999) procedure.body = {{Call{.procedure = k + 1}}};
    p.procedures.push_back(procedure);
  }
  p.classes[0].body = {{Call{.procedure = 0}}};
  EXPECT_NE(refusal_of(p).find("is called too deep inside others; expected 64 at most"),
            std::string::npos)
      << refusal_of(p);
}

// The variables of a procedure take the values of all its calls, at whatever distance.
TEST(WellformedTest, IndicesAreJudgedOverAllCalls) {
  const std::string good = sample_text("linear");
  const std::string far =
      replaced(replaced(good, "class all {",
                        "procedure near(u, j) {\n  forward-backward(u, j+1)\n}\n"
                        "class all {"),
               "    forward-backward(0, j)", "    near(0, j)");
  EXPECT_EQ(refusal_of(far), "text, line 71: 'y[j]' is of micro-batch 2; expected from 0 to 1");
  EXPECT_EQ(refusal_of(replaced(far, "j+1", "j-0")), "");
}

// A procedure that nobody calls has no values for its indices; all else of it is checked.
TEST(WellformedTest, AnUncalledProcedureHasNoRange) {
  const std::string uncalled = "procedure other(u, j) {\n  free x[j+9]\n}\nclass all {";
  EXPECT_EQ(refusal_of(replaced(sample_text("linear"), "class all {", uncalled)), "");
}

TEST(WellformedTest, TheFirstFaultIsReportedWithItsPlace) {
  Program p = sample_program("linear");
  std::get<Instruction>(p.procedures[0].body[3].what).kernel = 12;
  EXPECT_EQ(refusal_of(p),
            "program: procedure 'forward-backward', step 4: '12' is the number of no kernel; "
            "expected from 0 to 7");
}

}  // namespace
}  // namespace placet
