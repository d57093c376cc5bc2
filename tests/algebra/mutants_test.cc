// Wrong programs that must be found, made from right ones by one change.
#include <gtest/gtest.h>

#include <functional>

#include "algebra/small_step.h"
#include "algebra/verify.h"

namespace placet {
namespace {

SmallStep four_devices() { return {.data = 2, .tensor = 2, .micro_batches = 2}; }
SmallStep divided() { return {.data = 2, .tensor = 2, .micro_batches = 2, .divided_state = true}; }

Verification changed(const SmallStep& request, const std::function<void(Program&)>& change) {
  Program program = small_step(request);
  change(program);
  return verify(program);
}

void erase(const InstructionPlace& place) {
  place.body->erase(place.body->begin() + static_cast<std::ptrdiff_t>(place.index));
}

void insert_after(const InstructionPlace& place, const Instruction& what) {
  Step step;
  step.what = what;
  place.body->insert(place.body->begin() + static_cast<std::ptrdiff_t>(place.index) + 1, step);
}

// Every instruction is needed; those that give memory back, as it is taken again in step 2.
TEST(MutantsTest, EveryDeletionIsFound) {
  for (const SmallStep& request : {four_devices(), divided()}) {
    Program program = small_step(request);
    const std::size_t count = instructions_of(program).size();
    for (std::size_t i = 0; i < count; ++i) {
      Program mutant = program;
      const InstructionPlace place = instructions_of(mutant)[i];
      const Instruction what = place.what();
      erase(place);
      const Verification v = verify(mutant);
      EXPECT_FALSE(v.equal) << i << " " << name_of(what.kind) << " " << what.label;
      EXPECT_NE(v.equal, v.stuck.has_value() || !v.witness.empty());
    }
  }
}

// Done twice: sums, updates in place, taking and giving back memory are wrong, all others make the
// same again.
TEST(MutantsTest, DuplicatesAreFoundWhereTheyChangeSomething) {
  for (const SmallStep& request : {four_devices(), divided()}) {
    Program program = small_step(request);
    const std::size_t count = instructions_of(program).size();
    for (std::size_t i = 0; i < count; ++i) {
      Program mutant = program;
      const InstructionPlace place = instructions_of(mutant)[i];
      const Instruction what = place.what();
      insert_after(place, what);
      const bool in_place = what.kind == InstructionKind::compute && what.label == "update";
      const bool is_wrong =
          in_place || what.kind == InstructionKind::free || what.kind == InstructionKind::alloc ||
          what.kind == InstructionKind::accumulate || what.kind == InstructionKind::all_reduce;
      EXPECT_EQ(verify(mutant).equal, !is_wrong) << i << " " << name_of(what.kind) << what.label;
    }
  }
}

// The first sum over ranks is of the count of tokens, the second of the partial outputs.
TEST(MutantsTest, ASumOverTheWrongGroup) {
  for (std::size_t n = 0; n < 6; ++n) {
    const Verification v = changed(four_devices(), [&](Program& p) {
      Instruction& what = nth(p, InstructionKind::all_reduce, n).what();
      what.axes = {1 - what.axes[0]};
    });
    EXPECT_FALSE(v.equal) << n;
  }
}

TEST(MutantsTest, ALargestInsteadOfASum) {
  const Verification v = changed(four_devices(), [](Program& p) {
    nth(p, InstructionKind::all_reduce, 1).what().op = Combine::max;
  });
  EXPECT_FALSE(v.equal);
}

// A gradient too large by a factor that every rank agrees on.
TEST(MutantsTest, AWrongScale) {
  const auto scaled_by = [](const Rational& factor) {
    return changed(four_devices(), [&](Program& p) {
      p.kernels.push_back(
          {.name = "scale",
           .dims = {{.name = "..."}},
           .tensors = {{"x", {0}}, {"y", {0}}},
           .inputs = 1,
           .outputs = 1,
           .statements = {{.result = {1, {0}}, .products = {{.operands = {{0, {0}}}}}}}});
      const InstructionPlace place = nth(p, InstructionKind::all_reduce, 2);
      Instruction scale;
      scale.kind = InstructionKind::scale;
      scale.kernel = static_cast<int>(p.kernels.size()) - 1;
      scale.inputs = place.what().inputs;
      scale.outputs = scale.inputs;
      scale.factor = factor;
      insert_after(place, scale);
    });
  };
  EXPECT_TRUE(scaled_by(Rational(1)).equal);
  const Verification v = scaled_by(Rational(1, 2));
  EXPECT_FALSE(v.equal);
  ASSERT_FALSE(v.witness.empty());
  EXPECT_EQ(v.witness[0].step, 1);
}

TEST(MutantsTest, TheNeighboursSlice) {
  const Verification v =
      changed(divided(), [](Program& p) { nth(p, InstructionKind::slice).what().shift = 1; });
  EXPECT_FALSE(v.equal);
}

TEST(MutantsTest, AnAccumulatorThatIsNotCleared) {
  // It is not alive before it is written in the first step, so it is kept from step to step here.
  const auto keep = [](Program& p, bool clear) {
    int gradient = -1;
    for (std::size_t f = 0; f < p.families.size(); ++f) {
      if (p.families[f].name == "gw") gradient = static_cast<int>(f);
    }
    p.classes[0].initial.push_back({{.family = gradient}, {{}}});
    const auto concerns = [&](const Instruction& i, InstructionKind kind) {
      const auto& refs = kind == InstructionKind::free ? i.inputs : i.outputs;
      return i.kind == kind && refs[0].family == gradient;
    };
    for (InstructionKind kind :
         {InstructionKind::alloc, InstructionKind::free, InstructionKind::zero}) {
      if (kind == InstructionKind::zero && clear) continue;
      for (const InstructionPlace& place : instructions_of(p)) {
        if (!concerns(place.what(), kind)) continue;
        erase(place);
        break;
      }
    }
  };
  EXPECT_TRUE(changed(four_devices(), [&](Program& p) { keep(p, true); }).equal);
  const Verification v = changed(four_devices(), [&](Program& p) { keep(p, false); });
  EXPECT_FALSE(v.equal);
  ASSERT_FALSE(v.witness.empty());
  EXPECT_EQ(v.witness[0].step, 2);
}

// Gathered before the update instead of after it: right in the first step's gradients, wrong at its
// end.
TEST(MutantsTest, AStaleGather) {
  const Verification v = changed(divided(), [](Program& p) {
    const InstructionPlace gather = nth(p, InstructionKind::all_gather, 0);
    const Instruction what = gather.what();
    erase(gather);
    insert_after(nth(p, InstructionKind::slice, 1), what);
  });
  EXPECT_FALSE(v.equal);
  ASSERT_FALSE(v.witness.empty());
  EXPECT_EQ(v.witness[0].tensor, "w");
}

// The norm over the own part only; all ranks agree in no rank's factor.
TEST(MutantsTest, ALocalNorm) {
  const Verification v = changed(divided(), [](Program& p) {
    for (const InstructionPlace& place : instructions_of(p)) {
      Instruction& what = place.what();
      if (what.kind == InstructionKind::all_reduce && what.axes.size() == 2) what.axes = {0};
    }
  });
  EXPECT_FALSE(v.equal);
}

/// Names of everything that people read, and kinds that say what a kernel is for.
void rename_all(Program& program) {
  int number = 0;
  const auto name = [&] { return "n" + std::to_string(number++); };
  for (Family& f : program.families) f.name = name();
  for (Kernel& k : program.kernels) k.name = name();
  for (DeviceClass& c : program.classes) c.name = name();
  for (const InstructionPlace& place : instructions_of(program)) {
    Instruction& what = place.what();
    what.label = name();
    what.phase = StepPhase::reduce;
    if (calls_kernel(what.kind)) what.kind = InstructionKind::recompute;
  }
}

TEST(MutantsTest, NamesAreNoEvidence) {
  EXPECT_TRUE(changed(divided(), rename_all).equal);
  const auto wrong = [](Program& p) { nth(p, InstructionKind::slice).what().shift = 1; };
  const Verification named = changed(divided(), wrong);
  const Verification nameless = changed(divided(), [&](Program& p) {
    rename_all(p);
    wrong(p);
  });
  EXPECT_FALSE(nameless.equal);
  EXPECT_EQ(named.witness, nameless.witness);
}

// --- programs that cannot run

TEST(StuckTest, ACollectiveThatOneRankDoesNotComeTo) {
  const Verification v = changed({.data = 2}, [](Program& p) {
    DeviceClass other = p.classes[0];
    p.classes[0].name = "first";
    p.classes[0].box = {{0}, {}};
    other.name = "second";
    other.box = {{1}, {}};
    p.classes.push_back(other);
    // Both classes have the same instructions; the second loses its last sum.
    std::vector<InstructionPlace> places = instructions_of(p);
    for (std::size_t i = places.size(); i-- > 0;) {
      if (places[i].what().kind != InstructionKind::all_reduce) continue;
      if (places[i].what().axes != AxisList{0}) continue;
      erase(places[i]);
      break;
    }
  });
  EXPECT_FALSE(v.equal);
  ASSERT_TRUE(v.stuck);
  EXPECT_NE(v.stuck->find("rank 0 ('first')"), std::string::npos) << *v.stuck;
  EXPECT_NE(v.stuck->find("waits for rank 1"), std::string::npos) << *v.stuck;
}

TEST(StuckTest, ABufferThatIsNotAliveOrWasNeverWritten) {
  const Verification dead = changed({}, [](Program& p) { erase(nth(p, InstructionKind::alloc)); });
  EXPECT_NE(dead.stuck.value().find("'gw' is written, but not alive"), std::string::npos)
      << *dead.stuck;
  const Verification raw = changed({}, [](Program& p) { erase(nth(p, InstructionKind::zero)); });
  EXPECT_NE(raw.stuck.value().find("'n' is read, but was never written"), std::string::npos)
      << *raw.stuck;
}

TEST(StuckTest, BuffersThatDoNotFit) {
  const Verification v = changed(divided(), [](Program& p) {
    Instruction& what = nth(p, InstructionKind::all_gather).what();
    what.axes = {1};
    what.inputs[0] = what.outputs[0];
  });
  EXPECT_NE(v.stuck.value().find("do not fit"), std::string::npos) << *v.stuck;
}

TEST(StuckTest, ADivisionByZeroWhateverTheNumbers) {
  const Verification v = changed({}, [](Program& p) {
    const InstructionPlace sum = nth(p, InstructionKind::accumulate);
    const Instruction zero = nth(p, InstructionKind::zero).what();
    sum.what() = zero;
  });
  EXPECT_NE(v.stuck.value().find("divides by zero"), std::string::npos) << *v.stuck;
}

TEST(StuckTest, TheSameProgramGivesTheSameAnswer) {
  const auto once = [] {
    return changed(four_devices(),
                   [](Program& p) { nth(p, InstructionKind::all_reduce, 2).what().axes = {1}; });
  };
  const Verification a = once();
  ASSERT_FALSE(a.witness.empty());
  EXPECT_EQ(a.witness, once().witness);
  EXPECT_EQ(a.error_probability, 0);
}

}  // namespace
}  // namespace placet
