#include "algebra/kernel_run.h"

#include <gtest/gtest.h>

#include "program/kernel_text.h"
#include "units/error.h"

namespace placet::algebra {
namespace {

using Tensor = std::vector<Element>;

/// What a kernel with one output makes of these inputs.
Tensor made(const std::string& text, const std::vector<std::int64_t>& extents,
            std::vector<Tensor> tensors, std::size_t size,
            const std::vector<std::int64_t>& begins = {}) {
  const Kernel kernel = kernel_from(text);
  const KernelCode code = compile(kernel, extents);
  tensors.push_back(Tensor(size, 99));
  std::vector<Element*> places;
  for (Tensor& t : tensors) places.push_back(t.data());
  KernelRunner runner;
  EXPECT_TRUE(
      runner.run(code, places.data(),
                 {.hash = KeyedHash(3), .begins = begins.empty() ? nullptr : begins.data()}));
  return tensors.back();
}

// [1 2; 3 4] [5; 6] = [17; 39], less half of [2; 4].
TEST(KernelRunTest, ASumOfProducts) {
  EXPECT_EQ(made("kernel k(x[s h], w[h], b[s]) -> (y[s]) {\n y[s] = x[s h] * w[h] - 1/2 * b[s]\n}",
                 {2, 2}, {{1, 2, 3, 4}, {5, 6}, {2, 4}}, 2),
            (Tensor{16, 37}));
}

// More terms than fit into 128 bits at once: 200 (p - 1)^2 = 200.
TEST(KernelRunTest, ALongSum) {
  EXPECT_EQ(made("kernel k(x[h], w[h]) -> (y[]) {\n y[] = x[h] * w[h]\n}", {200},
                 {Tensor(200, kPrime - 1), Tensor(200, kPrime - 1)}, 1),
            Tensor{200});
}

TEST(KernelRunTest, TheLargestAndTheSum) {
  EXPECT_EQ(made("kernel k(x[s h]) -> (m[s]) {\n m[s] = max h of id(x[s h])\n}", {2, 3},
                 {{1, 7, 3, 9, 2, 4}}, 2),
            (Tensor{7, 9}));
  EXPECT_EQ(made("kernel k(x[s h]) -> (m[s]) {\n m[s] = sum h of id(x[s h])\n}", {2, 3},
                 {{1, 7, 3, 9, 2, 4}}, 2),
            (Tensor{11, 15}));
}

// Positions 4 and 5 of a cut dim: the id 5 is at the second of them.
TEST(KernelRunTest, PositionsAreGlobal) {
  const std::string text = "kernel k(i[s], w[v]) -> (y[s v]) {\n y[s v] = onehot(i[s]; at v)\n}";
  EXPECT_EQ(made(text, {2, 2}, {{5, 1}, {0, 0}}, 4, {0, 4}), (Tensor{0, 1, 0, 0}));
  EXPECT_EQ(made(text, {2, 2}, {{5, 1}, {0, 0}}, 4), (Tensor{0, 0, 0, 1}));
}

// Softmax does not depend on the shift, and sees keys up to the query only.
TEST(KernelRunTest, SoftmaxIsExact) {
  const std::string text =
      "kernel k(z[h], m[]) -> (y[h]) {\n e[h] = exp_shift(z[h], m[])\n l[] = e[h]\n"
      " y[h] = ratio(e[h], l[])\n}";
  const Tensor a = made(text, {3}, {{11, 12, 13}, {13}}, 3);
  EXPECT_EQ(a, made(text, {3}, {{11, 12, 13}, {5}}, 3));
  EXPECT_EQ(add(add(a[0], a[1]), a[2]), 1U);
  const std::string causal =
      "kernel k(q[t e], k[u e]) -> (w[t u]) {\n"
      " w[t u] = exp_dot(q[t e], k[u e]; whole e; at t u)\n}";
  const Tensor w = made(causal, {2, 1, 2}, {{3, 4}, {5, 6}}, 4);
  EXPECT_EQ(w[1], 0U);
  EXPECT_NE(w[0], 0U);
  // Query 1 with the key that stands at 1, on a device that has this one key.
  const Tensor part = made(causal, {1, 1, 1}, {{4}, {6}}, 1, {1, 0, 1});
  EXPECT_EQ(part[0], w[3]);
  const std::string window =
      "kernel k(q[t e], k[u e]) -> (w[t u]) {\n"
      " w[t u] = exp_dot.1(q[t e], k[u e]; whole e; at t u)\n}";
  EXPECT_EQ(made(window, {2, 1, 2}, {{3, 4}, {5, 6}}, 4), (Tensor{w[0], 0, 0, w[3]}));
}

TEST(KernelRunTest, UnknownFunctionsDependOnTheirOperandsAlone) {
  const Tensor y = made("kernel k(x[h]) -> (y[h]) {\n y[h] = act(x[h])\n}", {3}, {{8, 9, 8}}, 3);
  EXPECT_EQ(y[0], y[2]);
  EXPECT_NE(y[0], y[1]);
  const std::string whole = "kernel k(x[h]) -> (y[h]) {\n y[h] = spread(x[h]; whole h)\n}";
  const Tensor a = made(whole, {3}, {{8, 9, 8}}, 3);
  EXPECT_NE(a[0], a[2]);  // another entry is asked for
  EXPECT_NE(a[0], made(whole, {3}, {{8, 9, 7}}, 3)[0]);
}

// The two largest of four, by all three functions alike.
TEST(KernelRunTest, ChoicesAgree) {
  const std::vector<Tensor> z{{5, 9, 1, 7}};
  EXPECT_EQ(made("kernel k(z[e]) -> (m[e]) {\n m[e] = chosen.2(z[e]; whole e)\n}", {4}, z, 4),
            (Tensor{0, 1, 0, 1}));
  const Tensor g = made("kernel k(z[e]) -> (g[e]) {\n g[e] = route.2(z[e]; whole e)\n}", {4}, z, 4);
  EXPECT_EQ(g[0], 0U);
  EXPECT_NE(g[1], 0U);
  EXPECT_NE(g[1], g[3]);
  const Tensor d =
      made("kernel k(z[e]) -> (d[f e]) {\n dim f like e\n d[f e] = route.2'0(z[e]; whole e)\n}",
           {4, 4}, z, 16);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(d[i] != 0, i / 4 == 1 || i / 4 == 3) << i;
}

// A device that makes entries 2 and 3 of the vector makes those of the whole.
TEST(KernelRunTest, IndicesOfVectorsAreGlobal) {
  const std::string text =
      "kernel k(z[e]) -> (g[f]) {\n dim f like e\n g[f] = route.2(z[e]; whole e)\n}";
  const std::vector<Tensor> z{{5, 9, 1, 7}};
  const Tensor all = made(text, {4, 4}, z, 4);
  EXPECT_EQ(made(text, {4, 2}, z, 2, {0, 2}), (Tensor{all[2], all[3]}));
}

TEST(KernelRunTest, ADivisionByZeroIsReported) {
  const KernelCode code = compile(kernel_from("kernel k(x[]) -> (y[]) {\n y[] = inv(x[])\n}"), {});
  Element x = 0;
  Element y = 0;
  Element* const places[] = {&x, &y};
  KernelRunner runner;
  EXPECT_FALSE(runner.run(code, places, {}));
}

TEST(KernelRunTest, AnOperandWithADimThatIsNotAskedForIsRefused) {
  EXPECT_THROW(compile(kernel_from("kernel k(x[s h]) -> (y[s]) {\n y[s] = act(x[s h])\n}"), {2, 2}),
               InputError);
}

}  // namespace
}  // namespace placet::algebra
