// The small network over two stages that hand activations and their gradients to each other.
#include <gtest/gtest.h>

#include "algebra/small_step.h"
#include "algebra/verify.h"
#include "program/wellformed.h"

namespace placet {
namespace {

constexpr std::int64_t kMicroBatches = 3;

/// Stage 0 has the lower unit, stage 1 the upper. All micro-batches forward, then all backward.
class PipelineWriter {
 public:
  Program write() {
    stage_ = w_.axis("stage", 2);
    micro_ = w_.axis("micro-batch", kMicroBatches);
    n_ = add_small_net(w_, 6, 4);
    w_.program.classes = {{.name = "first", .box = {{0}}}, {.name = "last", .box = {{1}}}};
    declare();
    write_first();
    write_last();
    return std::move(w_.program);
  }

 private:
  BufferRef of_micro_batch(const std::string& name, std::vector<DividedDim> dims) {
    const BufferRef ref = w_.buffer(name, std::move(dims));
    w_.program.families.back().by_micro_batch = true;
    return at_micro_batch(ref);
  }

  void declare() {
    const DividedDim s{n_.sample, {{micro_}}};
    const DividedDim t{n_.token, {}};
    const DividedDim h{n_.hidden, {}};
    const DividedDim o{n_.out, {}};
    x_ = of_micro_batch("x", {s, t, {n_.in, {}}});
    z_ = of_micro_batch("z", {s, t, o});
    weights_ = of_micro_batch("weights", {s, t});
    a_ = of_micro_batch("a", {s, t, h});
    da_ = of_micro_batch("da", {s, t, h});
    y_ = of_micro_batch("y", {s, t, o});
    dy_ = of_micro_batch("dy", {s, t, o});
    l_ = of_micro_batch("l", {s, t});
    d_ = of_micro_batch("d", {s, t});
    const std::vector<DividedDim> w{h, {n_.in, {}}};
    const std::vector<DividedDim> v{o, h};
    parameter_ = {w_.buffer("w", w), w_.buffer("v", v)};
    moment_ = {w_.buffer("mw", w), w_.buffer("mv", v)};
    gradient_ = {w_.buffer("gw", w), w_.buffer("gv", v)};
    share_ = {w_.buffer("dw", w), w_.buffer("dv", v)};
    count_ = w_.buffer("n", {});
    one_ = w_.buffer("one", {});
    q_ = w_.buffer("q", {});
    c_ = w_.buffer("c", {});
    loss_ = w_.buffer("loss", {});
  }

  void begin(std::size_t stage, std::vector<std::pair<BufferRef, int>> inputs) {
    DeviceClass& c = w_.program.classes[stage];
    const int unit = static_cast<int>(stage);
    c.initial = {{parameter_[stage], {{.kind = StateRef::Kind::parameter, .unit = unit}}},
                 {moment_[stage], {{.kind = StateRef::Kind::state, .unit = unit}}}};
    for (auto& [buffer, input] : inputs) {
      for (std::int64_t j = 0; j < kMicroBatches; ++j) {
        buffer.micro_batch = {.offset = j};
        c.initial.push_back({buffer, {{.kind = StateRef::Kind::input, .tensor = input}}});
      }
    }
    c.initial.push_back({loss_, {{}}});
    c.results = {{loss_, {{.kind = StateRef::Kind::loss}}}};
    w_.body = &c.body;
    w_.alloc_all({gradient_[stage], share_[stage], one_, q_, c_});
    w_.add(InstructionKind::zero, {}, {gradient_[stage]});
    if (stage == 1) w_.add(InstructionKind::zero, {}, {loss_});  // the other takes it whole
  }

  std::vector<Step>* begin_loop(std::int64_t first, std::int64_t last) {
    std::vector<Step>* outside = w_.body;
    Loop& loop = outside->emplace_back().what.emplace<Loop>();
    loop.variable = IndexTerm::Variable::micro_batch;
    loop.first = first;
    loop.last = last;
    w_.body = &loop.body;
    return outside;
  }

  void message(InstructionKind kind, const BufferRef& buffer, std::int64_t peer) {
    const bool sends = kind == InstructionKind::send;
    Instruction& what = sends ? w_.add(kind, {buffer}, {}) : w_.add(kind, {}, {buffer});
    what.axes = {stage_};
    what.peer = peer;
  }

  void write_first() {
    begin(0, {{x_, 0}});
    std::vector<Step>* outside = begin_loop(0, kMicroBatches - 1);
    w_.alloc_all({a_});
    w_.call(n_.lower, {x_, parameter_[0]}, {a_});
    message(InstructionKind::send, a_, 1);
    w_.body = outside;
    begin_loop(kMicroBatches - 1, 0);
    w_.alloc_all({da_});
    message(InstructionKind::receive, da_, 1);
    w_.backward(n_.lower, {x_, parameter_[0], a_}, {da_}, {{1, share_[0]}});
    w_.add(InstructionKind::accumulate, {share_[0]}, {gradient_[0]});
    w_.free_all({a_, da_});
    w_.body = outside;
    end(0);
  }

  void write_last() {
    begin(1, {{z_, 1}, {weights_, 2}});
    w_.alloc_all({count_});
    w_.add(InstructionKind::zero, {}, {count_});
    std::vector<Step>* outside = begin_loop(0, kMicroBatches - 1);
    w_.call(n_.count, {weights_}, {one_});
    w_.add(InstructionKind::accumulate, {one_}, {count_});
    w_.body = outside;
    begin_loop(0, kMicroBatches - 1);
    w_.alloc_all({a_});
    message(InstructionKind::receive, a_, 0);
    w_.body = outside;
    begin_loop(kMicroBatches - 1, 0);
    w_.alloc_all({y_, dy_, l_, d_, da_});
    w_.call(n_.upper, {a_, parameter_[1]}, {y_});
    w_.call(n_.loss, {y_, z_}, {l_});
    w_.call(n_.seed, {weights_, count_}, {d_});
    w_.call(n_.weighted, {d_, l_}, {one_});
    w_.add(InstructionKind::accumulate, {one_}, {loss_});
    w_.backward(n_.loss, {y_, z_, l_}, {d_}, {{0, dy_}});
    w_.backward(n_.upper, {a_, parameter_[1], y_}, {dy_}, {{0, da_}, {1, share_[1]}});
    w_.add(InstructionKind::accumulate, {share_[1]}, {gradient_[1]});
    message(InstructionKind::send, da_, 0);
    w_.free_all({a_, y_, dy_, l_, d_, da_});
    w_.body = outside;
    w_.free_all({count_});
    end(1);
  }

  void end(std::size_t stage) {
    w_.call(n_.squares, {gradient_[stage]}, {q_});
    w_.over(InstructionKind::all_reduce, {stage_}, q_, q_);
    w_.over(InstructionKind::broadcast, {stage_}, loss_, loss_).peer = 1;
    w_.call(n_.limit, {q_}, {c_});
    w_.call(n_.update, {parameter_[stage], moment_[stage], gradient_[stage], c_},
            {parameter_[stage], moment_[stage]});
    w_.free_all({gradient_[stage], share_[stage], one_, q_, c_});
  }

  ProgramWriter w_;
  SmallNet n_;
  int stage_ = 0, micro_ = 0;
  BufferRef x_, z_, weights_, a_, da_, y_, dy_, l_, d_, count_, one_, q_, c_, loss_;
  std::vector<BufferRef> parameter_, moment_, gradient_, share_;
};

Program pipeline() { return PipelineWriter().write(); }

TEST(PipelineTest, TwoStages) {
  const Program program = pipeline();
  require_wellformed(program, {.where = "pipeline"});
  const Verification v = verify(program);
  EXPECT_TRUE(v.equal) << v.stuck.value_or("");
  EXPECT_EQ(v.ranks, 2);
}

// Messages are matched in their order, so a stage that takes them in another order mixes up its
// micro-batches.
TEST(PipelineTest, MicroBatchesInTheWrongOrder) {
  Program program = pipeline();
  std::vector<Loop*> loops;
  for (Step& step : program.classes[1].body) {
    if (auto* loop = std::get_if<Loop>(&step.what)) loops.push_back(loop);
  }
  std::swap(loops.at(1)->first, loops.at(1)->last);
  const Verification v = verify(program);
  EXPECT_FALSE(v.equal);
  EXPECT_FALSE(v.stuck);
}

TEST(PipelineTest, EveryDeletionIsFound) {
  Program program = pipeline();
  const std::size_t count = instructions_of(program).size();
  for (std::size_t i = 0; i < count; ++i) {
    Program mutant = program;
    const InstructionPlace place = instructions_of(mutant)[i];
    const InstructionKind kind = place.what().kind;
    place.body->erase(place.body->begin() + static_cast<std::ptrdiff_t>(place.index));
    EXPECT_FALSE(verify(mutant).equal) << i << " " << name_of(kind);
  }
}

TEST(PipelineTest, MessagesThatDoNotMeet) {
  Program lost = pipeline();
  nth(lost, InstructionKind::receive, 1).what().peer = 1;
  EXPECT_NE(verify(lost).stuck.value().find("waits for a message that is never sent"),
            std::string::npos);
  Program nobody = pipeline();
  nth(nobody, InstructionKind::send).what().peer = 2;
  EXPECT_NE(verify(nobody).stuck.value().find("to a device that does not exist"),
            std::string::npos);
  Program twice = pipeline();
  const InstructionPlace send = nth(twice, InstructionKind::send, 1);
  const Step again = (*send.body)[send.index];
  send.body->insert(send.body->begin() + static_cast<std::ptrdiff_t>(send.index), again);
  EXPECT_NE(verify(twice).stuck.value().find("is never received"), std::string::npos);
}

// A norm over its own stage only.
TEST(PipelineTest, ANormOfOneStage) {
  Program program = pipeline();
  for (int n : {0, 1})
    nth(program, InstructionKind::all_reduce, static_cast<std::size_t>(n)).what().among = {n};
  const Verification v = verify(program);
  EXPECT_FALSE(v.equal);
  EXPECT_FALSE(v.stuck) << *v.stuck;
}

}  // namespace
}  // namespace placet
