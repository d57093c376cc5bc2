// Products in fewer bits than the stream (docs/theory.md §3.11): what backward keeps of their
// inputs, and what their matrices rest in. The model of small_llama.h, 6 tokens: a value of the
// stream is 48 numbers, one of the MLP 96, of 16 bits.
#include "derive/narrow_products.h"

#include <gtest/gtest.h>

#include <map>

#include "catalog/catalog.h"
#include "catalog/cluster_catalog.h"
#include "derive/derive.h"
#include "derive/kept_tensors.h"
#include "derive/small_llama.h"
#include "derive/traffic.h"
#include "profile/products.h"

namespace placet {
namespace {

const ProductFormat kFp8{
    .name = "fp8", .numbers = {.dtype = Dtype::fp8, .constants = {}}, .units = Dtype::fp8};
const ProductFormat kMx{
    .name = "mxfp8",
    .numbers = {.dtype = Dtype::fp8, .constants = {{.dtype = Dtype::uint8, .elements = 32}}},
    .units = Dtype::fp4};

Job small_job(std::optional<ProductFormat> products) {
  Job job = plain_job(build_model(small_architecture(1)), {axis("dp", 1, Cut::batch, {})}, 6, 1);
  job.precision.products = std::move(products);
  return job;
}

/// Bytes of what the block keeps, by name.
std::map<std::string, std::int64_t> kept_by_block(const Job& job) {
  std::map<std::string, std::int64_t> kept;
  for (const KeptTensor& tensor : kept_tensors(job, derive(job).memory.front())) {
    if (tensor.unit == "block") kept[tensor.what] = in_bytes(tensor.bytes);
  }
  return kept;
}

std::int64_t sum_of(const std::map<std::string, std::int64_t>& kept) {
  std::int64_t sum = 0;
  for (const auto& [what, bytes] : kept) sum += bytes;
  return sum;
}

// A norm's result and the activation's are read by products alone: 1 byte a number for 2. The
// attention keeps its own result in 16 bits, and the product behind it a copy.
TEST(NarrowProducts, InputsAreKeptInTheProductsFormat) {
  const auto wide = kept_by_block(small_job({}));
  const auto narrow = kept_by_block(small_job(kFp8));
  EXPECT_EQ(wide.at("attention.norm.output"), 96);
  EXPECT_FALSE(narrow.contains("attention.norm.output"));
  EXPECT_EQ(narrow.at("attention.norm.output in fp8"), 48) << "one copy for query, key and value";
  EXPECT_EQ(narrow.at("mlp.norm.output in fp8"), 48);
  EXPECT_EQ(wide.at("mlp.activation.output"), 192);
  EXPECT_FALSE(narrow.contains("mlp.activation.output"));
  EXPECT_EQ(narrow.at("mlp.activation.output in fp8"), 96);
  EXPECT_EQ(narrow.at("attention.context"), 96);
  EXPECT_EQ(narrow.at("attention.context in fp8"), 48);
  // 2 x 48 + 96 less, 48 more.
  EXPECT_EQ(sum_of(wide) - sum_of(narrow), 144);
}

// What attention keeps anyway need not be kept twice; with scales of earlier steps it is.
TEST(NarrowProducts, TheAttentionsResultMayBeKeptOnce) {
  Job job = small_job(kFp8);
  job.profile.keeps_attention_result_once = true;
  const auto kept = kept_by_block(job);
  EXPECT_EQ(kept.at("attention.context"), 96);
  EXPECT_FALSE(kept.contains("attention.context in fp8"));
  EXPECT_EQ(kept.at("mlp.activation.output in fp8"), 96);
  job.precision.products->scales_from_before = true;
  EXPECT_EQ(kept_by_block(job), kept_by_block(small_job(kFp8)));
}

// One byte per 32 numbers, the last block filled up: 48 + 2 and 96 + 3 bytes.
TEST(NarrowProducts, ScalesOfBlocksAreKeptToo) {
  const auto kept = kept_by_block(small_job(kMx));
  EXPECT_EQ(kept.at("attention.context in fp8"), 50);
  EXPECT_EQ(kept.at("mlp.activation.output in fp8"), 99);
  EXPECT_EQ(sum_of(kept_by_block(small_job({}))) - sum_of(kept), 2 * 46 + 93 - 50);
}

TEST(NarrowProducts, AnEngineMayKeepInputsAsTheyCame) {
  Job job = small_job(kFp8);
  job.profile.keeps_wide_inputs = true;
  EXPECT_EQ(kept_by_block(job), kept_by_block(small_job({})));
}

// Products in the format of the stream are the plain ones, whatever they are called.
TEST(NarrowProducts, SixteenBitsAreNoNarrowFormat) {
  const Derivation plain = derive(small_job({}));
  const Derivation same = derive(small_job(
      ProductFormat{.name = "bf16", .numbers = {.dtype = Dtype::bf16}, .units = Dtype::bf16}));
  ASSERT_EQ(plain.memory.size(), same.memory.size());
  for (std::size_t c = 0; c < plain.memory.size(); ++c) {
    EXPECT_EQ(plain.memory[c].peak, same.memory[c].peak);
    EXPECT_EQ(plain.memory[c].at_peak, same.memory[c].at_peak);
    EXPECT_EQ(plain.memory[c].at_rest, same.memory[c].at_rest);
  }
}

// Recomputed as a whole a block keeps its input; the copies live while its backward runs.
TEST(NarrowProducts, CopiesAreMadeAgainWhereTheBlockIs) {
  Job job = small_job(kFp8);
  job.recompute.kind = Recompute::Kind::full;
  EXPECT_EQ(kept_by_block(job), (std::map<std::string, std::int64_t>{{"input", 96}}));
}

// Products of routers, embeddings and, unless the engine says so, the head are those of the stream.
TEST(NarrowProducts, TheHeadMultipliesAsTheStream) {
  Job job = small_job(kFp8);
  const UnitKind& head = job.model.kinds.back();
  const auto products = [&](const UnitKind& kind) {
    std::int64_t narrow = 0;
    for (const Operator& op : kind.operators) narrow += has_products_format(job, kind, op) ? 1 : 0;
    return narrow;
  };
  ASSERT_EQ(head.role, UnitRole::head);
  EXPECT_EQ(products(head), 0);
  EXPECT_EQ(products(job.model.kinds[1]), 7) << "q k v o gate up down";
  job.profile.timing.narrow_head = true;
  EXPECT_EQ(products(head), 1);
}

// 64 + 32 + 32 + 64 + 3 x 128 = 576 numbers in matrices of the block; norms, embedding and head
// rest as before. Scales: 2 + 1 + 1 + 2 + 3 x 4 = 18 per copy.
TEST(NarrowProducts, MatricesRestInTheProductsFormat) {
  const auto parameters = [](const Job& job) {
    return in_bytes(derive(job).memory.front().at_rest[0]);
  };
  const std::int64_t plain = parameters(small_job({}));
  const auto with = [&](const ProductFormat& format, std::int64_t copies) {
    Job job = small_job(format);
    job.weight_copies.in_place = copies;
    return parameters(job);
  };
  EXPECT_EQ(with(kFp8, 1), plain - 576);
  EXPECT_EQ(with(kFp8, 2), plain);
  EXPECT_EQ(with(kMx, 2), plain + 2 * 18);
  Job beside = small_job(kMx);
  beside.weight_copies.beside = 2;
  EXPECT_EQ(parameters(beside), plain + 2 * (576 + 18));
}

TEST(WeightCopies, FollowFormatEngineAndDevices) {
  const Catalog catalog = find_catalog();
  const auto on = [&](const char* cluster) { return load_cluster(catalog, cluster, {}, "test"); };
  Profile profile;
  const auto copies = [&](const ProductFormat& format, std::optional<Cluster> cluster) {
    Precision precision;
    precision.products = format;
    const WeightCopies sets = weight_copies(precision, profile, cluster);
    EXPECT_TRUE(sets.in_place == 0 || sets.beside == 0);
    return sets.in_place;
  };
  EXPECT_EQ(copies(kFp8, on("8xh100-sxm")), 0) << "the engine leaves them as they are";
  profile.weights_rest_in = {"fp8", "mxfp8"};
  EXPECT_EQ(copies(kFp8, on("8xh100-sxm")), 2) << "a transposed copy";
  EXPECT_EQ(copies(kFp8, on("8xb200-sxm")), 1);
  EXPECT_EQ(copies(kFp8, on("8xb200-sxm,8xh100-sxm")), 2);
  EXPECT_EQ(copies(kFp8, {}), 2);
  EXPECT_EQ(copies(kMx, on("8xb200-sxm")), 2) << "blocks run along one dim";
  profile.weights_rest_in = {"mxfp8"};
  EXPECT_EQ(copies(kFp8, on("8xb200-sxm")), 0);
  profile.keeps_weight_copies = true;
  Precision precision;
  precision.products = kFp8;
  EXPECT_EQ(weight_copies(precision, profile, on("8xh100-sxm")), (WeightCopies{.beside = 2}));
}

/// Bytes of all calls of the block's messages over two tensor ranks that divide the stream, by
/// phase, collective and name.
std::map<std::string, std::int64_t> sent_by_block(std::optional<ProductFormat> products) {
  Job job = written_job(build_model(small_architecture(1)), "tp=2:tp+sp", 6, 1);
  job.profile.gathered_input = GatheredInput::shard;
  job.precision.products = std::move(products);
  std::map<std::string, std::int64_t> sent;
  const Derivation derivation = derive(job);
  for (const CommunicationTerm& term : derivation.communication.front().terms) {
    const bool of_block = term.unit == "block" && term.state == State::activations;
    const std::string name = std::string(name_of(term.phase)) + " " +
                             std::string(name_of(term.collective)) + " " + std::string(term.what);
    if (of_block) sent[name] += in_bytes(term.payload) * term.count;
  }
  return sent;
}

// 48 numbers of a norm's result are gathered for products, forward and once more for the gradient
// of their matrices; backward the gradient of what row-cut products made. All are cast before they
// go: 48 bytes for 96, with scales of blocks 50. What is summed goes as it is.
TEST(NarrowProducts, GathersForProductsAreOfTheirFormat) {
  const auto wide = sent_by_block({});
  const auto narrow = sent_by_block(kFp8);
  const auto blocks = sent_by_block(kMx);
  ASSERT_EQ(wide.size(), narrow.size());
  int gathers = 0;
  for (const auto& [name, bytes] : wide) {
    const bool is_gather = name.find("all_gather") != std::string::npos;
    EXPECT_EQ(narrow.at(name), is_gather ? bytes / 2 : bytes) << name;
    EXPECT_EQ(blocks.at(name), is_gather ? bytes / 2 + bytes / 96 * 2 : bytes) << name;
    gathers += is_gather ? 1 : 0;
  }
  EXPECT_EQ(wide.at("forward all_gather attention.norm.output"), 96);
  EXPECT_EQ(narrow.at("backward all_gather mlp.norm.output"), 48);
  EXPECT_EQ(gathers, 6) << "two norms' results both ways, two products' gradients";
}

TEST(NarrowProducts, WhatOthersReadTooGoesAsItIs) {
  Job job = written_job(build_model(small_architecture(1)), "tp=2:tp+sp", 6, 1);
  job.precision.products = kFp8;
  const UnitKind& block = job.model.kinds[1];
  const auto read_by = [&](OpKind kind) {
    return std::ranges::find(block.operators, kind, &Operator::kind)->inputs.front();
  };
  EXPECT_NE(gathered_in(job, block, read_by(OpKind::linear)), nullptr);
  EXPECT_EQ(gathered_in(job, block, read_by(OpKind::attention)), nullptr);
  job.profile.keeps_wide_inputs = true;
  EXPECT_EQ(gathered_in(job, block, read_by(OpKind::linear)), nullptr);
}

/// Bytes that the block's matrices are gathered with after the update, by format.
std::map<Dtype, std::int64_t> gathered_after_update(const ProductFormat& products,
                                                    const std::vector<std::string>& resting) {
  Job job = written_job(build_model(small_architecture(1)), "dp=2:zero1", 6, 2);
  job.precision.products = products;
  job.profile.weights_rest_in = resting;
  job.weight_copies = weight_copies(job.precision, job.profile, job.cluster);
  std::map<Dtype, std::int64_t> sent;
  const Derivation derivation = derive(job);
  for (const CommunicationTerm& term : derivation.communication.front().terms) {
    const bool updated = term.unit == "block" && term.what == "updated parameters";
    if (updated) sent[term.dtype] += in_bytes(term.payload) * term.count;
  }
  return sent;
}

// The block has 576 numbers in matrices, and 2 x 8 in norms, which rest in 16 bits. Matrices go in
// one byte a number where they rest so, and have no scales of blocks to be made from them.
TEST(NarrowProducts, MatricesThatRestNarrowAreGatheredSo) {
  using Sent = std::map<Dtype, std::int64_t>;
  EXPECT_EQ(gathered_after_update(kFp8, {"fp8"}), (Sent{{Dtype::bf16, 32}, {Dtype::fp8, 576}}));
  EXPECT_EQ(gathered_after_update(kFp8, {}), (Sent{{Dtype::bf16, 32 + 1152}}));
  EXPECT_EQ(gathered_after_update(kMx, {"mxfp8"}), (Sent{{Dtype::bf16, 32 + 1152}}));
}

}  // namespace
}  // namespace placet
