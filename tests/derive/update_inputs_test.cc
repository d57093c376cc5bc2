// What an update gathers, copies in and runs off the device.
#include "derive/update_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "derive/alive.h"
#include "derive/derive.h"
#include "derive/traffic.h"

namespace placet {
namespace {

Bytes at_update(const MemoryClass& memory) {
  const auto found = std::ranges::find(memory.instants, Instant::update, &InstantBytes::instant);
  return found == memory.instants.end() ? Bytes() : found->bytes;
}

MemoryClass memory_of(Model model, const std::string& placement) {
  return derive(written_job(std::move(model), placement, 1, 8)).memory.front();
}

// 800 elements over 4 devices. At rest 1600 of parameters, 12 x 200 = 2400 of state, 2 x 200 = 400
// of gradients; the update sees 2 x 800 = 1600 of gradients and 12 x 800 = 9600 of state.
TEST(UpdateInputs, StateThatOnlyRestsDividedIsWholeAtTheUpdate) {
  const MemoryClass memory = memory_of(bare_model(800, 1), "dp=4:batch(R,S*,S,R)");
  EXPECT_EQ(at_update(memory), bytes(1600 + 2400 + 400 + 1600 + 9600));
  EXPECT_EQ(memory.peak, at_update(memory));
  EXPECT_EQ(alive(memory, "gradients gathered for the update"), bytes(1600));
  EXPECT_EQ(alive(memory, "optimizer state gathered for the update"), bytes(9600));
}

// The same in 4 units of 200 elements, one after the other: (2 + 12) x 200 more than at rest.
TEST(UpdateInputs, OneUnitIsUpdatedAtATime) {
  const MemoryClass memory = memory_of(bare_model(800, 4), "dp=4:batch(R,S*,S,R)");
  EXPECT_EQ(at_update(memory), bytes(4400 + 14 * 200));
}

// State on the host, update on the device: 12 x 800 beside parameters and gradients, 4 x 800.
TEST(UpdateInputs, StateOnTheHostComesInForAnUpdateOnTheDevice) {
  const MemoryClass memory =
      memory_of(bare_model(800, 1), "dp=2:ddp+offload(optimizer)+update(device)");
  EXPECT_EQ(at_update(memory), bytes(3200 + 9600));
  EXPECT_EQ(alive(memory, "optimizer state copied in for the update"), bytes(9600));
}

// Half of the state on the host is updated there: 12 x 400 rest on the device, nothing comes in.
TEST(UpdateInputs, WhatIsUpdatedOnTheHostStaysThere) {
  const MemoryClass memory = memory_of(bare_model(800, 1), "dp=2:ddp+offload(optimizer=1/2)");
  EXPECT_EQ(at_update(memory), bytes(3200 + 4800));
}

// Gradients of 400 elements on the host, updated on the device: 800 bytes come in.
TEST(UpdateInputs, GradientsOnTheHostComeInForAnUpdateOnTheDevice) {
  const MemoryClass memory = memory_of(bare_model(800, 1), "dp=2:batch(R,S,O,R)");
  EXPECT_EQ(at_update(memory), bytes(1600 + 4800 + 800));
}

// One block has 16 x 16 of queries and outputs, 8 x 16 of keys and values, 3 of 16 x 32: 2304
// elements, whole in 2 bytes while the optimizer sees matrices.
TEST(UpdateInputs, MatricesThatACutTearsAreWholeAtTheUpdate) {
  Job job = written_job(build_model(wide_architecture(2)), "tp=2:tensor(S,S,S,R)", 4, 1);
  const Bytes by_elements = at_update(derive(job).memory.front());
  job.optimizer.region = UpdateRegion::matrix;
  EXPECT_EQ(at_update(derive(job).memory.front()), by_elements + bytes(2 * 2304));
}

// --- parts beside the whole

Bytes at(const MemoryClass& memory, Instant instant) {
  const auto found = std::ranges::find(memory.instants, instant, &InstantBytes::instant);
  return found == memory.instants.end() ? Bytes() : found->bytes;
}

MemoryClass apart(const std::string& placement, Dtype reduce = Dtype::bf16, bool clips = false) {
  Job job = written_job(bare_model(800, 4), placement, 1, 8);
  job.profile.parts_stand_apart = true;
  job.precision.reduce = reduce;
  job.clips_by_global_norm = clips;
  return derive(job).memory.front();
}

// 4 units of 200 elements over 4 devices: 2 x 800 of parameters, 12 x 200 of state and 2 x 800 of
// gradients rest. Reductions leave 2 x 50 of each unit; then one unit after the other has 2 x 50
// updated elements on their way, while the parts of all four are still there for the first.
TEST(UpdateInputs, PartsStandBesideTheWhole) {
  const MemoryClass memory = apart("dp=4:zero1");
  EXPECT_EQ(at(memory, Instant::reduction), bytes(1600 + 2400 + 1600 + 4 * 100));
  EXPECT_EQ(at(memory, Instant::update), bytes(1600 + 2400 + 1600 + 4 * 100 + 100));
}

// Sums in fp32 of gradients that rest in bf16: 4 x 200 while a unit is reduced.
TEST(UpdateInputs, GradientsAreSummedInTheirFormat) {
  const MemoryClass memory = apart("dp=4:ddp", Dtype::fp32);
  EXPECT_EQ(at(memory, Instant::reduction), bytes(16 * 800 + 4 * 200));
  EXPECT_EQ(at(memory, Instant::update), bytes(16 * 800));
}

// Gradients rest in parts of 50 elements, state is whole: 2 x 200 of a unit are gathered for its
// update, those of all four where the norm must be known before.
TEST(UpdateInputs, ALimitOfTheNormGathersAllGradientsFirst) {
  const Bytes rest = bytes(2 * 800 + 12 * 800 + 2 * 200);
  EXPECT_EQ(at(apart("dp=4:batch(R,R,S,R)"), Instant::update), rest + bytes(400));
  EXPECT_EQ(at(apart("dp=4:batch(R,R,S,R)", Dtype::bf16, true), Instant::update),
            rest + bytes(4 * 400));
}

// --- a fraction on the host

Lines copies(const std::string& placement) {
  return traffic(written_job(bare_model(800, 1), placement, 1, 2),
                 [](const CommunicationTerm& t) { return t.collective == Collective::host_copy; });
}

// 400 elements of a device: of a quarter, a half and all of them gradients go down and parameters
// come up, 2 bytes each.
TEST(UpdateInputs, AFractionOnTheHostMovesThatFraction) {
  const auto expected = [](const std::string& bytes) {
    return Lines{"update host_copy bf16 - " + bytes + "x1 gradients to host",
                 "update host_copy bf16 - " + bytes + "x1 updated parameters from host"};
  };
  EXPECT_EQ(copies("dp=2:zero1"), Lines{});
  EXPECT_EQ(copies("dp=2:zero1+offload(optimizer=1/4)"), expected("200"));
  EXPECT_EQ(copies("dp=2:zero1+offload(optimizer=1/2)"), expected("400"));
  EXPECT_EQ(copies("dp=2:zero1+offload(optimizer)"), expected("800"));
}

// Told to run on the device, the update has a quarter of the state, 12 x 100, come in and go back;
// an axis that says nothing of it changes nothing.
TEST(UpdateInputs, AnUpdateGoesWhereItIsTold) {
  const Lines expected = {"update host_copy uint8 - 1200x1 optimizer state from host",
                          "update host_copy uint8 - 1200x1 optimizer state to host"};
  EXPECT_EQ(copies("dp=2:zero1+offload(optimizer=1/4)+update(device)"), expected);
  EXPECT_EQ(copies("dp=2:zero1+offload(optimizer=1/4)+update(device) tp=1:tp"), expected);
  EXPECT_EQ(copies("dp=2:zero1+offload(optimizer=1/4)+update(host)"),
            copies("dp=2:zero1+offload(optimizer=1/4)"));
}

// All gradients on the host, a quarter of the update there: three quarters, 600 bytes, come back.
// Half of the parameters on the host: the quarter updated beside it goes down, 200 bytes.
TEST(UpdateInputs, StatesMeetWhereTheUpdateRuns) {
  EXPECT_EQ(copies("dp=2:zero2+offload(gradients)+offload(optimizer=1/4)"),
            (Lines{"backward host_copy bf16 - 800x1 gradients to host",
                   "update host_copy bf16 - 600x1 gradients from host",
                   "update host_copy bf16 - 200x1 updated parameters from host"}));
  const Lines both = copies("dp=2:zero3+offload(parameters=1/2)+offload(optimizer=1/4)");
  EXPECT_EQ(std::ranges::count(both, "update host_copy bf16 - 200x1 updated parameters to host"),
            1);
}

}  // namespace
}  // namespace placet
