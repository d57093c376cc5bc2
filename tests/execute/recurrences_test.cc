// Convolutions and recurrences: values and gradients of PyTorch, and what they are at other sizes.
// pytorch_recurrences.py printed the figures (torch 2.14.1, CPU) from matrix forms of the formulas.
// They are those of the transformers library's own functions (5.24.0) within 4e-7: binary32.
#include "execute/recurrences.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace placet::execute {
namespace {

constexpr std::int64_t kTokens = 5;
using Vectors = std::vector<std::vector<double>>;

/// Entry i of operand n: sin(1.3 i + n + 0.7).
Vectors operands(const std::vector<std::size_t>& sizes) {
  Vectors all;
  for (std::size_t n = 0; n < sizes.size(); ++n) {
    std::vector<double>& one = all.emplace_back();
    for (std::size_t i = 0; i < sizes[n]; ++i) {
      one.push_back(std::sin(1.3 * static_cast<double>(i) + static_cast<double>(n) + 0.7));
    }
  }
  return all;
}

double weight(std::size_t entry, std::size_t number) {
  return std::cos(0.9 * static_cast<double>(entry) + static_cast<double>(number));
}

std::vector<double> values(const std::string& name, const Vectors& x, const FunctionPlace& place) {
  std::vector<double> out;
  values_of({}, meant(name, "test"), x, place, out);
  return out;
}

/// The gradient by operand n of the weighted sum of the result, as a weighted sum.
double slope(const std::string& name, const Vectors& x, const FunctionPlace& place, std::size_t n) {
  const std::vector<double> all = values(name + "'" + std::to_string(n), x, place);
  const std::size_t entries = x[n].size();
  double sum = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    sum += all[k] * weight(k / entries, 0) * weight(k % entries, n + 1);
  }
  return sum;
}

struct Figures {
  std::string function;
  std::vector<std::size_t> sizes;  // of operands
  std::int64_t channels = 0;       // of the result; 0: it has none
  std::vector<double> values;
  std::vector<double> slopes;
};

class PyTorchRecurrence : public ::testing::TestWithParam<Figures> {};

TEST_P(PyTorchRecurrence, HasItsValuesAndGradients) {
  const Figures& f = GetParam();
  const Vectors x = operands(f.sizes);
  FunctionPlace place{.given = {kTokens, f.channels}};
  place.positions[0] = 2;  // the third head
  const std::vector<double> found = values(f.function, x, place);
  ASSERT_EQ(found.size(), f.values.size());
  for (std::size_t k = 0; k < found.size(); ++k) EXPECT_NEAR(found[k], f.values[k], 4e-15) << k;
  ASSERT_EQ(x.size(), f.slopes.size());
  for (std::size_t n = 0; n < x.size(); ++n) {
    EXPECT_NEAR(slope(f.function, x, place, n), f.slopes[n], 1e-14) << n;
  }
}

const Figures kConvolution{
    .function = "convolution",
    .sizes = {5, 3, 1},
    .channels = 0,
    .values = {-0.16283042066485676, -0.31477544338249785, 1.3390691827839212, 2.2172229162062913,
               0.47325240877275554},
    .slopes = {-0.010318724176215488, -2.808531606720868, 0.4023554083741027}};

const Figures kSelectiveScan{
    .function = "selective_scan",
    .sizes = {5, 5, 10, 10, 2, 1},
    .channels = 0,
    .values = {0.06568072029479788, -0.6414160726459124, 0.008042934399295404, 0.5122241869618718,
               -0.006872010218704289},
    .slopes = {-0.5644197390052107, -0.03546702947984872, 0.7954312434780209, -0.1527024756303839,
               0.11860192900477978, 2.380196449623776}};

const Figures kHeadScan{.function = "head_scan",
                        .sizes = {50, 10, 2, 2, 2},
                        .channels = 6,
                        .values = {-1.4170467439977217, -2.0001266396981534,  0.346983677557545,
                                   0.5924729050198421,  0.222918183742365,    -0.47321219895943556,
                                   -1.7863501237209722, -1.7138141964544293,  0.8694635436574767,
                                   0.6994891397871414,  0.09523709008701041,  -0.6485375197073626,
                                   -2.244427538111948,  -0.9600506238022203,  1.7308027035371514,
                                   0.8874888602715613,  -0.29704179715455814, -1.046405525854334,
                                   -2.4515888128279437, -0.11203345227187281, 2.3916511783289516,
                                   0.8582738463964681,  -0.587545302942809,   -1.1726092069986263,
                                   -2.2603105353153414, 0.8634461363567889,   2.7222521954270698,
                                   0.4867079290412411,  -1.3214119523722534,  -1.1936602278214523},
                        .slopes = {-1.636578307520364, 2.5006173087646295, -0.2053268132105135,
                                   0.8035840179777352, 0.03407292701443499}};

const Figures kDeltaRule{
    .function = "delta_rule",
    .sizes = {50, 20, 2, 2},
    .channels = 4,
    .values = {-0.24913141578486336, 0.11434306563340581,  0.2276912199273117,
               0.03791314524752738,  -0.23534242484680648, 0.25945289099356017,
               0.40728385781411336,  -0.06867061721234746, -0.08667030917593216,
               0.26067654068179025,  0.3915872355963732,   -0.23886025942780784,
               0.01629778710267686,  0.21580642566657277,  0.2634433837693202,
               -0.3251285120195475,  0.12147504430596363,  0.2413054940694198,
               0.12324601359109051,  -0.33363210589665115},
    .slopes = {-0.8220496547244754, 0.10852007161334018, -0.041100743264225005,
               -0.026350005856183557}};

const Figures kChannelDeltaRule{
    .function = "channel_delta_rule",
    .sizes = {15, 15, 10, 15, 5, 3, 1},
    .channels = 2,
    .values = {0.03960200535047676, -0.07012706459658546, -0.1548487623126233, 0.07583280354704654,
               0.26458131421103653, 0.020584228270996773, -0.25596943678736, -0.11576810854645689,
               0.10464463981534905, 0.15606032149985619},
    .slopes = {0.6043569925271696, -0.5220413487216874, -0.7961405480516202, 0.06468013679800211,
               -0.12065097440910158, 0.05519973410663095, 0.09405456581332844}};

const Figures kLinearAttention{
    .function = "linear_attention.4",
    .sizes = {45},
    .channels = 3,
    .values = {-0.1387186451731997, 0.037794305353254544, 0.06764744653942278,
               -0.017982029848176484, -0.06491952872357129, -0.007013941433645587,
               0.187841603506761, -0.23388596611447482, -0.1306106747205863, 0.27291034474931986,
               -0.224079281010747, -0.2638317370545166, 0.16621812855020812, 0.029478822551217553,
               -0.20099448117748017},
    .slopes = {-1.0534197609508658}};

INSTANTIATE_TEST_SUITE_P(OfEachKind, PyTorchRecurrence,
                         ::testing::Values(kConvolution, kSelectiveScan, kHeadScan, kDeltaRule,
                                           kChannelDeltaRule, kLinearAttention),
                         [](const auto& which) {
                           return which.param.function.substr(0, which.param.function.find('.'));
                         });

// Decays and strengths that come apart are those that come side by side, strengths first.
TEST(RecurrenceTest, DeltaRulesTakeTheirStepsJoinedOrApart) {
  const Vectors joined = operands({kTokens * 10, kTokens * 4, 2, 2});
  Vectors apart{joined[0], {}, {}, joined[2], joined[3]};
  for (std::size_t k = 0; k < joined[1].size(); ++k) {
    apart[k % 4 < 2 ? 1 : 2].push_back(joined[1][k]);
  }
  const FunctionPlace place{.given = {kTokens, 4}};
  EXPECT_EQ(values("delta_rule", joined, place), values("delta_rule", apart, place));
}

// softplus(0) = log 2, exp(-1 log 2) = 1/2: the state halves. Of x = 1, 0 with B = C = 1 and D = 0:
// log 2, then half of it.
TEST(RecurrenceTest, StatesDecay) {
  const std::vector<double> y =
      values("selective_scan", {{1, 0}, {0, 0}, {1, 1}, {1, 1}, {0}, {0}}, {.given = {2}});
  EXPECT_NEAR(y[0], std::log(2.0), 1e-15);
  EXPECT_NEAR(y[1], std::log(2.0) / 2, 1e-15);
}

// Small jobs shorten dims one by one: a stream of two channels is value, key and query at once.
TEST(RecurrenceTest, AreDefinedAtAnySizes) {
  const std::vector<Figures> small = {
      {.function = "convolution", .sizes = {2, 3}},
      {.function = "selective_scan", .sizes = {2, 2, 4, 2, 3, 1}},
      {.function = "head_scan", .sizes = {4, 6, 2, 1, 3}, .channels = 2},
      {.function = "delta_rule", .sizes = {4, 4, 2, 2}, .channels = 2},
      {.function = "delta_rule", .sizes = {6, 4, 2, 3, 2}, .channels = 3},
      {.function = "channel_delta_rule", .sizes = {4, 6, 4, 2, 2, 3, 1}, .channels = 3},
      {.function = "linear_attention.64", .sizes = {4}, .channels = 2}};
  for (const Figures& f : small) {
    const Vectors x = operands(f.sizes);
    const FunctionPlace place{.given = {2, f.channels}};
    const std::size_t entries = values(f.function, x, place).size();
    EXPECT_EQ(entries, static_cast<std::size_t>(f.channels == 0 ? 2 : 2 * f.channels));
    for (std::size_t n = 0; n < x.size(); ++n) {
      EXPECT_NE(slope(f.function, x, place, n), 0) << f.function << " " << n;
    }
  }
}

// A token sees those before it alone.
TEST(RecurrenceTest, SeeNoLaterTokens) {
  const Vectors x = operands({kTokens * 10, kTokens * 2, 2, 2, 2});
  const std::vector<double> all = values("head_scan'0", x, {.given = {kTokens, 6}});
  for (std::size_t k = 0; k < all.size(); ++k) {
    const std::size_t from = k % 50 / 10;
    const std::size_t to = k / 50 / 6;
    EXPECT_TRUE(from <= to || all[k] == 0) << from << " " << to;
  }
}

}  // namespace
}  // namespace placet::execute
