#include "catalog/training_catalog.h"

#include <gtest/gtest.h>

#include "catalog/catalog_files.h"

namespace placet {
namespace {

PrecisionChoice read(const std::string& text) {
  return read_precision(repository_catalog(), text, Precision{}, "--precision");
}

// Bytes of all states per parameter, element-wise ones only.
std::int64_t bytes_per_parameter(const Precision& precision, const Optimizer& optimizer) {
  std::int64_t bits = bits_of(precision.parameters) + bits_of(precision.gradients);
  if (optimizer.keeps_master && precision.master) bits += bits_of(*precision.master);
  for (const OptimizerState& state : optimizer.states) {
    if (state.extent == OptimizerState::Extent::element) bits += bits_of(state.dtype);
  }
  return bits / 8;
}

TEST(PrecisionTest, EveryFileOfTheCatalogueReads) {
  for (const std::string& name : names_in(repository_catalog(), "precisions")) {
    EXPECT_EQ(load_precision(repository_catalog(), name, {}, "test").precision.name, name);
  }
}

// ZeRO, section 3.1: 2 + 2 + 12 bytes. Pure fp32 Adam: 4 + 4 + 8.
TEST(PrecisionTest, MixedAdamIsSixteenBytes) {
  const Optimizer adam = load_optimizer(repository_catalog(), "adam", "test");
  EXPECT_EQ(bytes_per_parameter(read("mixed").precision, adam), 16);
  EXPECT_EQ(bytes_per_parameter(read("fp32").precision, adam), 16);
  EXPECT_EQ(bytes_per_parameter(read("mixed-fp32-gradients").precision, adam), 18);
  EXPECT_EQ(read("mixed").precision, Precision{}) << "the default is the file";
}

TEST(PrecisionTest, ClassesOverrideANameOrTheBase) {
  const PrecisionChoice choice = read("mixed,gradients=fp32,experts=fp8,frozen=nf4");
  EXPECT_EQ(choice.precision.gradients, Dtype::fp32);
  EXPECT_EQ(choice.precision.parameters, Dtype::bf16);
  ASSERT_EQ(choice.parameters_at_rest.size(), 1U);
  EXPECT_EQ(choice.parameters_at_rest[0],
            std::pair(TensorClass::experts, StorageFormat{Dtype::fp8}));
  // An fp32 constant per 64 numbers: half a bit each.
  EXPECT_EQ(choice.frozen_at_rest, (StorageFormat{Dtype::nf4, {{Dtype::fp32, 64}}}));
  EXPECT_EQ(read("master=none").precision.master, std::nullopt);
}

TEST(PrecisionTest, HalfPrecisionScalesItsLoss) {
  EXPECT_TRUE(read("mixed-fp16").scales_loss_dynamically);
  EXPECT_FALSE(read("mixed").scales_loss_dynamically);
}

TEST(PrecisionTest, WrongWordsAreExplained) {
  const auto complaint = [](const std::string& text) { return message_of([&] { read(text); }); };
  EXPECT_NE(complaint("mixd").find("'mixd' is not a known precision"), std::string::npos);
  EXPECT_NE(complaint("mixd").find("did you mean 'mixed'?"), std::string::npos);
  EXPECT_NE(complaint("gradient=fp32").find("did you mean 'gradients'?"), std::string::npos);
  EXPECT_EQ(complaint("gradients=fp31").substr(0, 47),
            "--precision: 'fp31' is not a number format; exp");
  EXPECT_EQ(complaint("mixed,fp32"),
            "--precision: 'fp32' is a second name; expected one name, then CLASS=DTYPE,...");
}

TEST(ApplyFormatsTest, SetsParametersOfAClassAndFrozenOnes) {
  Model model;
  model.kinds.push_back({.name = "block",
                         .parameters = {{.name = "e", .classes = bit_of(TensorClass::experts)},
                                        {.name = "n", .classes = bit_of(TensorClass::norms)},
                                        {.name = "f", .trainable = false}}});
  apply_formats(read("experts=fp8,frozen=nf4"), model);
  EXPECT_EQ(model.kinds[0].parameters[0].dtype, Dtype::fp8);
  EXPECT_EQ(model.kinds[0].parameters[1].dtype, std::nullopt);
  EXPECT_EQ(model.kinds[0].parameters[2].dtype, Dtype::nf4);
}

// A class wins over `frozen`, in either order; an adapter of attention is an adapter only.
TEST(ApplyFormatsTest, ClassesOfFrozenTensorsWinAndLeaveAdaptersAlone) {
  const ClassSet attention = bit_of(TensorClass::attention);
  const ClassSet adapter = attention | bit_of(TensorClass::adapters);
  const auto formats = [&](const std::string& text) {
    Model model;
    model.kinds.push_back(
        {.parameters = {
             {.name = "e", .classes = bit_of(TensorClass::embedding), .trainable = false},
             {.name = "q", .classes = attention, .trainable = false},
             {.name = "a", .classes = adapter}}});
    apply_formats(read(text), model);
    std::vector<std::optional<Dtype>> found;
    for (const Parameter& p : model.kinds[0].parameters) found.push_back(p.dtype);
    return found;
  };
  using Formats = std::vector<std::optional<Dtype>>;
  EXPECT_EQ(formats("frozen=nf4,embedding=bf16"), (Formats{Dtype::bf16, Dtype::nf4, std::nullopt}));
  EXPECT_EQ(formats("embedding=bf16,frozen=nf4"), (Formats{Dtype::bf16, Dtype::nf4, std::nullopt}));
  EXPECT_EQ(formats("attention=nf4"), (Formats{std::nullopt, Dtype::nf4, std::nullopt}));
  EXPECT_EQ(formats("attention=nf4,adapters=fp32"),
            (Formats{std::nullopt, Dtype::nf4, Dtype::fp32}));
}

// QLoRA, section 3: 8/64 + 32/(64 x 256) bits per parameter with double quantisation, 0.127.
TEST(FormatTest, EveryFileOfTheCatalogueReads) {
  for (const std::string& name : names_in(repository_catalog(), "formats")) {
    EXPECT_FALSE(load_format(repository_catalog(), name, "test").constants.empty()) << name;
  }
  const StorageFormat twice = load_format(repository_catalog(), "nf4-double", "test");
  EXPECT_EQ(bytes_of(16'384, twice.constants), bytes(256 + 4));
  EXPECT_EQ(load_format(repository_catalog(), "fp8", "test"), StorageFormat{Dtype::fp8});
}

TEST(OptimizerTest, EveryFileOfTheCatalogueReads) {
  for (const std::string& name : names_in(repository_catalog(), "optimizers")) {
    EXPECT_EQ(load_optimizer(repository_catalog(), name, "test").name, name);
  }
}

// 2 + 2 + 4 master and 1 + 1 for the moments.
TEST(OptimizerTest, StatesAreAsPublished) {
  const auto load = [](const char* name) {
    return load_optimizer(repository_catalog(), name, "test");
  };
  EXPECT_EQ(bytes_per_parameter(Precision{}, load("adam-8bit")), 10);
  EXPECT_EQ(bytes_per_parameter(Precision{}, load("momentum")), 12);
  EXPECT_EQ(bytes_per_parameter(Precision{}, load("sgd")), 8);
  EXPECT_EQ(bytes_per_parameter(Precision{}, load("none")), 4);
  EXPECT_EQ(load("adafactor").states[0].extent, OptimizerState::Extent::row_and_column);
  EXPECT_EQ(load("muon").region, UpdateRegion::matrix);
  EXPECT_EQ(load("muon").other_states.size(), 2U);
  EXPECT_EQ(load("muon").other_classes, bit_of(TensorClass::embedding) | bit_of(TensorClass::head));
  EXPECT_EQ(load("adam-8bit").block, 256);
}

// Five iterations of three products in bf16 of whole matrices; AdamW of all else.
TEST(OptimizerTest, CostsAreReadFromTheFile) {
  const auto load = [](const char* name) {
    return load_optimizer(repository_catalog(), name, "test");
  };
  EXPECT_FALSE(load("none").updates);
  EXPECT_EQ(load("adamw").cost, (UpdateCost{.words_in_steps = 20, .flops = 16}));
  EXPECT_EQ(load("adafactor").cost.gradient_reads, 3);
  EXPECT_EQ(load("adafactor").cost.parameter_reads, 2);
  const Optimizer muon = load("muon");
  EXPECT_EQ(muon.other_cost, load("adamw").cost);
  EXPECT_EQ(
      muon.matrices,
      (MatrixUpdate{.iterations = 5,
                    .products = {MatrixProduct::gram, MatrixProduct::square, MatrixProduct::apply},
                    .dtype = Dtype::bf16,
                    .passes = 5}));
  EXPECT_EQ(load("adamw").matrices, MatrixUpdate{});
}

TEST(OptimizerTest, WrongFilesAreRefused) {
  const TestFolder folder;
  const auto complaint = [&](const std::string& rest) {
    folder.write("optimizers/x.json",
                 R"({"schema": "placet.optimizer/1", "name": "x", "title": "t", "source": "s", )" +
                     rest + "}");
    return message_of([&] { load_optimizer(Catalog{folder.path()}, "x", "test"); }, folder.path());
  };
  EXPECT_EQ(complaint(R"("states": [], "region": "element")"),
            "optimizers/x.json: the key 'keeps_master' is missing");
  EXPECT_EQ(complaint(R"("states": [], "region": "block", "keeps_master": true)"),
            "optimizers/x.json: the key 'block' is missing");
  EXPECT_EQ(complaint(R"("states": [{"what": "m"}], "region": "element", "keeps_master": true)"),
            "optimizers/x.json: states[0]: the key 'dtype' is missing");
  EXPECT_EQ(complaint(R"("states": [], "region": "elements", "keeps_master": true)"),
            "optimizers/x.json: region: 'elements' is not known; expected element, block, "
            "row_and_column or matrix; did you mean 'element'?");
  const std::string whole = R"("states": [], "region": "element", "keeps_master": true, )";
  EXPECT_EQ(complaint(whole + R"("cost": {"source": "s"})"),
            "optimizers/x.json: cost: the key 'flops' is missing");
  EXPECT_EQ(complaint(whole + R"("cost": {"flops": 1})"),
            "optimizers/x.json: cost: the key 'source' is missing");
  EXPECT_NE(complaint(whole + R"("matrices": {})").find("sees no matrix whole"), std::string::npos);
}

}  // namespace
}  // namespace placet
