// What an update gathers, copies in and runs off the device.
#include "derive/update_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "derive/derive.h"
#include "derive/traffic.h"

namespace placet {
namespace {

Bytes alive(const MemoryClass& memory, std::string_view what) {
  Bytes sum;
  for (const MemoryTerm& term : memory.terms) {
    if (term.what == what) sum += term.bytes;
  }
  return sum;
}

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

}  // namespace
}  // namespace placet
