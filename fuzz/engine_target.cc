// Engine profiles, and a small job derived under what they say.
#include "catalog/catalog.h"
#include "catalog/profile_catalog.h"
#include "derive/derive.h"
#include "derive/reserve.h"
#include "model/build.h"
#include "target.h"

namespace placet::fuzz {
namespace {

AxisPlacement axis(const char* name, std::int64_t degree, Cut cut, Modes modes) {
  AxisPlacement out;
  out.axis = AxisName(name);
  out.degree = degree;
  out.how.cut = cut;
  out.how.modes = modes;
  return out;
}

Job small_job() {
  const Norm norm{.kind = NormKind::rms, .names = {.weight = "norm"}};
  Attention attention{.heads = 4, .kv_heads = 2, .head_size = 4, .value_head_size = 4};
  attention.query.weight = "q";
  attention.key.weight = "k";
  attention.value.weight = "v";
  attention.output.weight = "o";
  Mlp mlp{.width = 32, .gated = true};
  mlp.gate.weight = "gate";
  mlp.up.weight = "up";
  mlp.down.weight = "down";
  Branch first{.norm = norm};
  first.mixer = attention;
  Branch second{.norm = norm};
  second.mixer = mlp;
  Architecture architecture;
  architecture.name = "small";
  architecture.hidden = 16;
  architecture.embedding = {.vocabulary = 50, .width = 16, .tokens = "embed"};
  architecture.shapes = {{Sublayer{.branches = {first}}, Sublayer{.branches = {second}}}};
  architecture.order.assign(6, 0);
  architecture.head.norm = norm;
  architecture.head.output.weight = "lm_head";
  Job job;
  job.model = build_model(architecture);
  using enum Mode;
  job.placement.axes = {axis("pp", 2, Cut::layer, {sharded, sharded, sharded, sharded}),
                        axis("dp", 3, Cut::batch, {sharded_gather, sharded, sharded, replicated}),
                        axis("tp", 2, Cut::tensor, {sharded, sharded, sharded, sharded_gather})};
  job.attention.resize(3);
  job.batch = {.sequence = 64, .global = 12, .micro = 2};
  return job;
}

}  // namespace

std::string_view target_name() { return "engine"; }

void read_one(std::string_view text) {
  static const Catalog kCatalog = find_catalog();
  static Job job = small_job();
  const std::string path = write_scratch("fuzz@1.json", text).string();
  job.profile = load_profile(kCatalog, path, "--engine");
  job.precision = job.profile.precision;
  derive(job);
  reserve(job);
}

}  // namespace placet::fuzz
