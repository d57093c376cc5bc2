#include "derive/reserve.h"

#include <gtest/gtest.h>

#include "derive/derive.h"
#include "derive/small_llama.h"

namespace placet {
namespace {

// The replay makes and frees what the walk counts: the most alive is the same figure, up to the
// rounding of each request to 512 bytes. Sizes large enough that rounding stays below a hundredth.
TEST(Reserve, TheReplayHasAsMuchAliveAsTheDerivation) {
  Architecture architecture = small_architecture(6);
  architecture.hidden = 1024;
  architecture.embedding = {.vocabulary = 4096, .width = 1024, .tokens = "embed"};
  auto& attention = std::get<Attention>(architecture.shapes[0][0].branches[0].mixer);
  attention.heads = 8;
  attention.kv_heads = 4;
  attention.head_size = attention.value_head_size = attention.rotary_size = 128;
  std::get<Mlp>(architecture.shapes[0][1].branches[0].mixer).width = 4096;
  const Model model = build_model(architecture);
  const std::vector<std::vector<AxisPlacement>> placements = {
      {},
      {axis("dp", 4, Cut::batch)},
      {axis("dp", 4, Cut::batch, kOptimizerSharded)},
      {axis("tp", 2, Cut::tensor, kTensorWhole)},
      {axis("pp", 3, Cut::layer, kStages), axis("dp", 2, Cut::batch)},
  };
  for (const auto& axes : placements) {
    const Job job = plain_job(model, axes, 2048, 16);
    const Derivation derivation = derive(job);
    const std::vector<Reservation> reserved = reserve(job);
    ASSERT_EQ(reserved.size(), derivation.memory.size());
    for (std::size_t s = 0; s < reserved.size(); ++s) {
      EXPECT_NEAR(reserved[s].alive / derivation.memory[s].peak, 1.0, 0.01) << "stage " << s;
      EXPECT_GE(reserved[s].reserved, reserved[s].alive);
    }
  }
}

}  // namespace
}  // namespace placet
