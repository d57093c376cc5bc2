// Sums of products as kernels run them, beside plain loops over all dims.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "execute/kernel_run.h"
#include "execute/matrix_product.h"
#include "program/kernel_text.h"
#include "ranks/kernel_code.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

using Extents = std::vector<std::int64_t>;

std::size_t entries_of(const std::vector<int>& dims, const Extents& extents) {
  std::size_t entries = 1;
  for (const int d : dims) entries *= placet::at(extents[placet::at(d)]);
  return entries;
}

std::size_t place_of(const std::vector<int>& dims, const Extents& extents, const Extents& index) {
  std::size_t place = 0;
  for (const int d : dims)
    place = place * placet::at(extents[placet::at(d)]) + placet::at(index[placet::at(d)]);
  return place;
}

bool next(Extents& index, const Extents& extents) {
  for (std::size_t d = index.size(); d-- > 0;) {
    if (++index[d] < extents[d]) return true;
    index[d] = 0;
  }
  return false;
}

/// A product of the statement over all its dims, one after the other; those it lacks count once.
void add_plainly(const Statement& s, const Product& p, const Extents& all,
                 std::map<int, std::vector<double>>& tensors) {
  Extents extents(all.size(), 1);
  for (const int d : s.result.dims) extents[placet::at(d)] = all[placet::at(d)];
  for (const Operand& o : p.operands) {
    for (const int d : o.dims) extents[placet::at(d)] = all[placet::at(d)];
  }
  const double factor =
      static_cast<double>(p.factor.numerator()) / static_cast<double>(p.factor.denominator());
  Extents index(all.size(), 0);
  do {
    double value = factor;
    for (const Operand& o : p.operands) value *= tensors[o.tensor][place_of(o.dims, all, index)];
    tensors[s.result.tensor][place_of(s.result.dims, all, index)] += value;
  } while (next(index, extents));
}

/// One that is 1 where a position says so, as the program's text means it.
void make_one_hot(const Statement& s, const Extents& extents,
                  std::map<int, std::vector<double>>& tensors) {
  Extents index(extents.size(), 0);
  Extents own(extents.size(), 1);
  for (const int d : s.result.dims) own[placet::at(d)] = extents[placet::at(d)];
  do {
    const std::int64_t last = index[placet::at(s.positions.back())];
    const double told =
        s.function == "position"
            ? static_cast<double>(index[placet::at(s.positions[0])])
            : tensors[s.operands[0].tensor][place_of(s.operands[0].dims, extents, index)];
    tensors[s.result.tensor][place_of(s.result.dims, extents, index)] =
        told == static_cast<double>(last) ? 1 : 0;
  } while (next(index, own));
}

struct Case {
  std::string text;
  Extents extents;
};

/// Small whole numbers and quarters, so that every format holds all sums exactly.
std::map<int, std::vector<double>> drawn(const Kernel& kernel, const Extents& extents) {
  std::mt19937 random(static_cast<unsigned>(kernel.tensors.size()));
  std::uniform_int_distribution<int> few(-8, 8);
  std::map<int, std::vector<double>> tensors;
  for (std::size_t t = 0; t < kernel.tensors.size(); ++t) {
    std::vector<double>& numbers = tensors[static_cast<int>(t)];
    numbers.assign(entries_of(kernel.tensors[t].dims, extents), 0);
    const bool ids = kernel.tensors[t].name == "ids";
    for (double& x : numbers) {
      if (t < placet::at(kernel.inputs)) x = ids ? std::abs(few(random)) : few(random) / 4.0;
    }
  }
  return tensors;
}

Number stored(double x, const Number*) {
  bool fits = true;
  return number_of_real(x, fits);
}
template <class Real>
Real stored(double x, const Real*) {
  return static_cast<Real>(x);
}
double real(const Number& x) { return static_cast<double>(x.high) * 0x1p-80; }
template <class Real>
double real(Real x) {
  return static_cast<double>(x);
}

template <class Numbers>
void expect_as_plainly(const Case& one) {
  using Stored = typename Numbers::Stored;
  const Kernel kernel = kernel_from(one.text);
  auto tensors = drawn(kernel, one.extents);
  std::vector<std::vector<Stored>> memory;
  for (std::size_t t = 0; t < placet::at(kernel.inputs + kernel.outputs); ++t) {
    memory.emplace_back();
    for (const double x : tensors[static_cast<int>(t)]) {
      memory.back().push_back(stored(x, static_cast<const Stored*>(nullptr)));
    }
  }
  // What a result held before does not count.
  for (std::size_t t = placet::at(kernel.inputs); t < memory.size(); ++t) {
    for (Stored& x : memory[t]) x = stored(1e3, static_cast<const Stored*>(nullptr));
  }
  for (const Statement& s : kernel.statements) {
    if (!s.is_linear()) make_one_hot(s, one.extents, tensors);
    for (const Product& p : s.products) add_plainly(s, p, one.extents, tensors);
  }
  FunctionTable functions{Meanings{}};
  functions.add(kernel);
  const KernelCode code = ranks::compile(kernel, one.extents, ranks::Tables::none);
  std::vector<Stored*> places;
  for (std::vector<Stored>& numbers : memory) places.push_back(numbers.data());
  std::vector<Level> levels(code.sizes.size(), 0);
  KernelRunner<Numbers> runner(functions);
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(runner.run(code, places.data(), levels, {})) << one.text;
    for (std::size_t t = placet::at(kernel.inputs); t < memory.size(); ++t) {
      for (std::size_t e = 0; e < memory[t].size(); ++e) {
        ASSERT_EQ(real(memory[t][e]), tensors[static_cast<int>(t)][e])
            << one.text << "\nextents of " << one.extents.size() << " dims, entry " << e;
      }
    }
  }
}

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      // Matrices: as they are, turned, with a single row, column or term.
      {"kernel k(x[s i], w[o i]) -> (y[s o]) {\n y[s o] = x[s i] * w[o i]\n}", {5, 7, 6}},
      {"kernel k(x[s i], w[i o]) -> (y[o s]) {\n y[o s] = 1/2 * x[s i] * w[i o]\n}", {5, 7, 6}},
      {"kernel k(x[s i], w[o i]) -> (y[s o]) {\n y[s o] = x[s i] * w[o i]\n}", {1, 7, 6}},
      {"kernel k(x[s i], w[o i]) -> (y[s o]) {\n y[s o] = x[s i] * w[o i]\n}", {5, 1, 6}},
      {"kernel k(x[s i], w[o i]) -> (y[s o]) {\n y[s o] = x[s i] * w[o i]\n}", {5, 7, 1}},
      {"kernel k(x[i s], w[i]) -> (y[s]) {\n y[s] = x[i s] * w[i]\n}", {7, 5}},
      // Dims that go together, and such as do not.
      {"kernel k(x[b s i], w[o i]) -> (y[b s o]) {\n y[b s o] = x[b s i] * w[o i]\n}",
       {2, 3, 5, 4}},
      {"kernel k(x[b s i], w[o i]) -> (y[s b o]) {\n y[s b o] = x[b s i] * w[o i]\n}",
       {2, 3, 5, 4}},
      {"kernel k(d[b s o], x[b s i]) -> (w[o i]) {\n w[o i] = d[b s o] * x[b s i]\n}",
       {2, 3, 4, 5}},
      {"kernel k(d[b o s], x[b s i]) -> (w[o i]) {\n w[o i] = d[b o s] * x[b s i]\n}",
       {2, 4, 3, 5}},
      // A matrix whose rows and columns both have gaps.
      {"kernel k(x[s i b], w[o i b]) -> (y[s o b]) {\n y[s o b] = x[s i b] * w[o i b]\n}",
       {5, 7, 3, 6}},
      // Of each head of each sample: scores, and what they weigh.
      {"kernel k(q[b s h e], k[b t h e]) -> (w[b s h t]) {\n"
       " w[b s h t] = q[b s h e] * k[b t h e]\n}",
       {2, 3, 2, 4, 5}},
      {"kernel k(w[b s h t], v[b t h e]) -> (o[b s h e]) {\n"
       " o[b s h e] = w[b s h t] * v[b t h e]\n}",
       {2, 3, 2, 4, 5}},
      // Entry by entry, spread, and several products.
      {"kernel k(x[s e], r[s], w[e]) -> (y[s e]) {\n"
       " y[s e] = x[s e] * r[s] * w[e] + x[s e] - 1/4 * w[e]\n}",
       {4, 5}},
      {"kernel k(x[s], y[t]) -> (z[s t]) {\n z[s t] = x[s] * y[t]\n}", {4, 5}},
      {"kernel k(x[s], n[u]) -> (z[s u]) {\n z[s u] = x[s]\n}", {4, 3}},
      // Sums of one, of two, of what only one of them has, of three and four.
      {"kernel k(x[s e t]) -> (y[e]) {\n y[e] = x[s e t]\n}", {3, 4, 5}},
      {"kernel k(d[s e], n[s e]) -> (w[e]) {\n w[e] = d[s e] * n[s e]\n}", {6, 5}},
      {"kernel k(x[s i], w[o i u]) -> (y[s o]) {\n y[s o] = x[s i] * w[o i u]\n}", {3, 4, 5, 2}},
      {"kernel k(x[s e], y[s e], r[s]) -> (z[e]) {\n z[e] = x[s e] * y[s e] * r[s]\n}", {6, 5}},
      {"kernel k(d[s h t], w[s h t], k[t h e], c[]) -> (q[s h e]) {\n"
       " q[s h e] = d[s h t] * w[s h t] * k[t h e] * c[]\n}",
       {3, 2, 4, 5}},
      {"kernel k(x[s], y[s]) -> (z[]) {\n z[] = x[s] * y[s]\n}", {9}},
      // What a factor looks up, forth and back: ids may be too large, which is no entry.
      {"kernel k(ids[b s], w[v e]) -> (y[b s e]) {\n h[b s v] = onehot(ids[b s]; at v)\n"
       " y[b s e] = h[b s v] * w[v e]\n}",
       {2, 3, 7, 4}},
      {"kernel k(ids[b s], d[b s e]) -> (w[v e]) {\n h[b s v] = onehot(ids[b s]; at v)\n"
       " w[v e] = 1/2 * h[b s v] * d[b s e]\n}",
       {2, 3, 4, 7}},
      {"kernel k(x[b s e], p[v e]) -> (y[b s e]) {\n h[s v] = position(; at s v)\n"
       " y[b s e] = x[b s e] + h[s v] * p[v e]\n}",
       {2, 5, 3, 7}},
      {"kernel k(z[b s v], ids[b s]) -> (l[b s]) {\n h[b s v] = onehot(ids[b s]; at v)\n"
       " l[b s] = z[b s v] * h[b s v]\n}",
       {2, 3, 9}},
  };
  return kCases;
}

TEST(KernelSumsTest, DoublesAreThoseOfPlainLoops) {
  for (const Case& one : cases()) expect_as_plainly<PlainNumbers<double>>(one);
}

TEST(KernelSumsTest, SinglesAreThoseOfPlainLoops) {
  for (const Case& one : cases()) expect_as_plainly<PlainNumbers<float>>(one);
}

TEST(KernelSumsTest, ExactNumbersAreThoseOfPlainLoops) {
  for (const Case& one : cases()) expect_as_plainly<CanonicalNumbers>(one);
}

// More terms than come together before they are collected.
TEST(KernelSumsTest, ALongExactSum) {
  expect_as_plainly<CanonicalNumbers>(
      {"kernel k(x[s i], w[i]) -> (y[s]) {\n y[s] = x[s i] * w[i]\n}", {2, 9001}});
}

/// Runs a kernel whose functions are not those of the sums above.
void run_anyhow(const Case& one) {
  const Kernel kernel = kernel_from(one.text);
  FunctionTable functions{Meanings{}};
  functions.add(kernel);
  const KernelCode code = ranks::compile(kernel, one.extents, ranks::Tables::none);
  std::vector<std::vector<float>> memory;
  std::vector<float*> places;
  for (int t = 0; t < code.arguments; ++t) memory.emplace_back(code.sizes[placet::at(t)], 1.0F);
  for (std::vector<float>& numbers : memory) places.push_back(numbers.data());
  std::vector<Level> levels(code.sizes.size(), 0);
  KernelRunner<PlainNumbers<float>>(functions).run(code, places.data(), levels, {});
}

TEST(KernelPlanTest, OperandsThatNoMeaningSpeaksOfAreRefused) {
  for (const char* line :
       {"y[s] = normal(x[s])", "y[s] = exp_shift(x[s])", "y[s] = act()", "y[s] = moment0(x[s])",
        "y[s] = exp_dot'0(x[s], x[s])", "y[s] = limited'0(x[s])", "y[s] = act'1(x[s])",
        "y[s] = power'3(x[s])",
        "y[s] = limited(x[s], x[s], x[s], x[s], x[s], x[s], x[s], x[s], x[s])"}) {
    const std::string text = "kernel k(x[s]) -> (y[s]) {\n " + std::string(line) + "\n}";
    EXPECT_THROW(run_anyhow({text, {3}}), InputError) << line;
  }
}

// Extents whose product is zero in 64 bits, or too many numbers to be kept on the way.
TEST(KernelPlanTest, TensorsWithoutEndAreRefused) {
  const std::int64_t many = std::int64_t{1} << 16U;
  EXPECT_THROW(ranks::compile(kernel_from("kernel k(a[i], b[j], c[k], d[l]) -> (y[]) {\n"
                                          " t[i j k l] = a[i] * b[j] * c[k] * d[l]\n"
                                          " y[] = t[i j k l]\n}"),
                              {many, many, many, many}, ranks::Tables::none),
               InputError);
}

// The two that go together through the fewest entries would still be too many: no room for them.
TEST(KernelSumsTest, ARingOfThreeFactorsNeedsNoRoom) {
  expect_as_plainly<PlainNumbers<double>>(
      {"kernel k(a[i j], b[j k], c[k i]) -> (r[]) {\n r[] = a[i j] * b[j k] * c[k i]\n}",
       {9, 8, 7}});
}

// A part of a vocabulary with one word sums where others look up: with the same bits.
TEST(KernelSumsTest, LookingUpHasTheBitsOfSumming) {
  const std::string text =
      "kernel k(ids[s], a[s], w[v]) -> (y[s]) {\n h[s v] = onehot(ids[s]; at v)\n"
      " y[s] = 1/3 * h[s v] * a[s] * w[v]\n}";
  const Kernel kernel = kernel_from(text);
  FunctionTable functions{Meanings{}};
  functions.add(kernel);
  std::vector<Number> made;
  for (const std::int64_t words : {std::int64_t{1}, std::int64_t{2}}) {
    const KernelCode code = ranks::compile(kernel, {1, words}, ranks::Tables::none);
    const Number odd = stored(1 + 0x1p-23, static_cast<const Number*>(nullptr));
    std::vector<Number> ids(1);
    std::vector<Number> a(1, odd);
    std::vector<Number> w(placet::at(words), odd);
    std::vector<Number> y(1);
    std::array<Number*, 4> places = {ids.data(), a.data(), w.data(), y.data()};
    std::vector<Level> levels(code.sizes.size(), 0);
    KernelRunner<CanonicalNumbers> runner(functions);
    ASSERT_TRUE(runner.run(code, places.data(), levels, {}));
    made.push_back(y[0]);
  }
  EXPECT_EQ(made[0], made[1]);
}

// What was there is kept, or not read: be it no number.
TEST(MatrixProductTest, ResultsAreAddedOrPutInPlace) {
  const std::vector<double> a = {1, 2, 3, 4, 5, 6};
  const std::vector<double> b = {1, 0, 2, 1, 0, 3};
  std::vector<double> c = {10, 10, 10, 10};
  MatrixProduct product{.rows = 2, .columns = 2, .terms = 3, .scale = 2};
  add_product(product, {a.data(), 3, 1}, {b.data(), 2, 1}, Matrix<double*>{c.data(), 2, 1});
  EXPECT_EQ(c, (std::vector<double>{20, 32, 38, 56}));
  product.kept = 0;
  c.assign(4, std::nan(""));
  add_product(product, {a.data(), 3, 1}, {b.data(), 2, 1}, Matrix<double*>{c.data(), 1, 2});
  EXPECT_EQ(c, (std::vector<double>{10, 28, 22, 46}));
}

}  // namespace
}  // namespace placet::execute
