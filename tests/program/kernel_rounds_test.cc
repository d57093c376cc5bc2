// Kernels as rounds over pieces of a dim, by hand.
#include "program/kernel_rounds.h"

#include <gtest/gtest.h>

#include "program/kernel_text.h"

namespace placet {
namespace {

// Softmax without its shift: numerator and denominator are sums over u, their ratio is the end.
TEST(KernelRoundsTest, SumsArePiecesAndWhatFollowsIsTheEnd) {
  const Kernel attention = kernel_from(
      "kernel f(q[t e], k[u e], v[u e']) -> (o[t e'], l[t]) {\n"
      "  w[t u] = exp_dot(q[t e], k[u e]; whole e; at t u)\n"
      "  l[t] = w[t u]\n"
      "  n[t e'] = w[t u] * v[u e']\n"
      "  o[t e'] = ratio(n[t e'], l[t])\n"
      "}");
  const int u = attention.tensors[1].dims[0];
  const auto rounds = rounds_over(attention, u);
  ASSERT_TRUE(rounds.has_value());
  EXPECT_EQ(to_text(rounds->piece.kernel),
            to_text(kernel_from("kernel f-piece(q[t e], k[u e], v[u e']) -> (l[t], n[t e']) {\n"
                                "  w[t u] = exp_dot(q[t e], k[u e]; whole e; at t u)\n"
                                "  l[t] = w[t u]\n"
                                "  n[t e'] = w[t u] * v[u e']\n"
                                "}")));
  ASSERT_TRUE(rounds->end.has_value());
  EXPECT_EQ(to_text(rounds->end->kernel),
            to_text(kernel_from("kernel f-end(n[t e'], l[t]) -> (o[t e']) {\n"
                                "  o[t e'] = ratio(n[t e'], l[t])\n"
                                "}")));
}

// A sink s is in the denominator alone, once: with the end of all rounds.
TEST(KernelRoundsTest, WhatHasNothingToDoWithPiecesIsMadeInTheEnd) {
  const Kernel attention = kernel_from(
      "kernel f(q[t e], k[u e], s[]) -> (l[t], d[]) {\n"
      "  z[] = exp(s[])\n"
      "  w[t u] = exp_dot(q[t e], k[u e]; whole e; at t u)\n"
      "  m[t] = w[t u]\n"
      "  l[t] = m[t] + z[]\n"
      "  d[] = z[] * z[]\n"
      "}");
  const auto rounds = rounds_over(attention, attention.tensors[1].dims[0]);
  ASSERT_TRUE(rounds.has_value());
  EXPECT_EQ(to_text(rounds->piece.kernel),
            to_text(kernel_from("kernel f-piece(q[t e], k[u e], s[]) -> (m[t]) {\n"
                                "  w[t u] = exp_dot(q[t e], k[u e]; whole e; at t u)\n"
                                "  m[t] = w[t u]\n"
                                "}")));
  ASSERT_TRUE(rounds->end.has_value());
  EXPECT_EQ(to_text(rounds->end->kernel),
            to_text(kernel_from("kernel f-end(s[], m[t]) -> (l[t], d[]) {\n"
                                "  z[] = exp(s[])\n"
                                "  l[t] = m[t] + z[]\n"
                                "  d[] = z[] * z[]\n"
                                "}")));
}

// The pieces make z as well where they read it.
TEST(KernelRoundsTest, WhatPiecesReadTheyMakeThemselves) {
  const Kernel kernel = kernel_from(
      "kernel f(a[t], b[u], s[]) -> (y[t], d[]) {\n"
      "  z[] = exp(s[])\n"
      "  y[t] = a[t] * b[u] * z[]\n"
      "  d[] = z[]\n"
      "}");
  const auto rounds = rounds_over(kernel, kernel.tensors[1].dims[0]);
  ASSERT_TRUE(rounds.has_value() && rounds->end.has_value());
  EXPECT_EQ(rounds->piece.kernel.statements.size(), 2U);
  EXPECT_EQ(rounds->end->kernel.statements.size(), 2U);
}

// Each piece gives its part of y and a summand of s: nothing is left for an end.
TEST(KernelRoundsTest, PiecesOfAResultNeedNoEnd) {
  const Kernel kernel = kernel_from(
      "kernel f(a[t], b[u]) -> (y[u], s[t]) {\n"
      "  y[u] = a[t] * b[u]\n"
      "  s[t] = a[t] * b[u]\n"
      "}");
  const auto rounds = rounds_over(kernel, kernel.tensors[1].dims[0]);
  ASSERT_TRUE(rounds.has_value());
  EXPECT_FALSE(rounds->end.has_value());
  EXPECT_EQ(rounds->piece.kernel.statements, kernel.statements);
}

TEST(KernelRoundsTest, WhatNoPieceGivesHasNoRounds) {
  const auto splits = [](const std::string& statements) {
    const Kernel kernel = kernel_from("kernel f(a[t], b[u]) -> (y[t]) {\n" + statements + "}");
    return rounds_over(kernel, kernel.tensors[1].dims[0]).has_value();
  };
  EXPECT_TRUE(splits("y[t] = a[t] * b[u]\n"));
  // A term that is of no piece would be added once for each.
  EXPECT_FALSE(splits("y[t] = a[t] * b[u] + a[t]\n"));
  EXPECT_FALSE(splits("y[t] = max u of f(a[t], b[u])\n"));
  EXPECT_FALSE(splits("g[t u] = f(a[t], b[u]; whole u)\n y[t] = g[t u]\n"));
  // What follows from the sum goes through all pieces once more.
  EXPECT_FALSE(splits("s[] = b[u]\n g[u] = ratio(b[u], s[])\n y[t] = a[t] * g[u]\n"));
}

}  // namespace
}  // namespace placet
