// The rules of program/adjoint.h against the derivative itself: with tangents dx of the inputs and
// dy = J dx of the outputs worked out here, entry by entry,
//   <g, J dx> = <J^T g, dx>
// holds exactly in F_p for all g. Derivatives of unknown functions are unknown functions too.
#include "program/adjoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "algebra/kernel_run.h"
#include "program/kernel_text.h"
#include "units/at.h"

namespace placet::algebra {
namespace {

using Tensor = std::vector<Element>;
using Index = std::vector<std::int64_t>;  // by dim of the kernel

const KeyedHash kHash(7);

/// Extents by the first letter of a dim's name: small, and no two the same.
std::vector<std::int64_t> extents_of(const Kernel& kernel) {
  std::vector<std::int64_t> extents;
  for (const Kernel::LocalDim& d : kernel.dims) {
    const std::string letters = "stehou";
    extents.push_back(static_cast<std::int64_t>(letters.find(d.name[0])) % 4 + 2);
    if (d.name[0] == 'u') extents.back() = 3;  // keys: as many as queries
  }
  return extents;
}

class TangentRun {
 public:
  explicit TangentRun(const Kernel& kernel) : kernel_(kernel), extents_(extents_of(kernel)) {
    // All tensors are outputs, to be seen.
    kernel_.outputs = static_cast<int>(kernel_.tensors.size()) - kernel_.inputs;
    for (const Kernel::Tensor& t : kernel_.tensors) {
      values_.push_back(Tensor(size_of(t.dims), 0));
      tangents_.push_back(Tensor(size_of(t.dims), 0));
    }
    for (int i = 0; i < kernel_.inputs; ++i) fill(values_[at(i)], 100U + at(i));
    values_ = run(kernel_, values_, extents_);
  }

  static void fill(Tensor& tensor, std::uint64_t seed) {
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      tensor[i] = KeyedHash::element(kHash.step(kHash.start(seed), i));
    }
  }

  static std::vector<Tensor> run(const Kernel& kernel, std::vector<Tensor> tensors,
                                 const std::vector<std::int64_t>& extents) {
    const KernelCode code = compile(kernel, extents);
    std::vector<Element*> places;
    for (Tensor& t : tensors) places.push_back(t.data());
    KernelRunner runner;
    EXPECT_TRUE(runner.run(code, places.data(), {.hash = kHash}));
    return tensors;
  }

  /// <g, J dx> with random dx for the inputs `to` and random g for the outputs `from`.
  Element forward(const std::vector<int>& from, const std::vector<int>& to) {
    for (int t : to) fill(tangents_[at(t)], 200U + at(t));
    for (const Statement& s : kernel_.statements) differentiate(s);
    Element sum = 0;
    for (int t : from) sum = add(sum, inner(cotangent(t), tangents_[at(t)]));
    return sum;
  }

  /// <J^T g, dx> by the adjoint kernel.
  Element backward(const Adjoint& adjoint) {
    std::vector<Tensor> tensors;
    for (int t : adjoint.from) tensors.push_back(cotangent(t));
    for (int t : adjoint.reads) tensors.push_back(values_[at(t)]);
    for (int t : adjoint.to) tensors.push_back(Tensor(values_[at(t)].size(), 0));
    tensors = run(adjoint.kernel, std::move(tensors), extents_of(adjoint.kernel));
    Element sum = 0;
    const std::size_t first = adjoint.from.size() + adjoint.reads.size();
    for (std::size_t i = 0; i < adjoint.to.size(); ++i) {
      sum = add(sum, inner(tensors[first + i], tangents_[at(adjoint.to[i])]));
    }
    return sum;
  }

 private:
  std::size_t size_of(const std::vector<int>& dims) const {
    std::size_t size = 1;
    for (int d : dims) size *= static_cast<std::size_t>(extents_[at(d)]);
    return size;
  }

  Tensor cotangent(int tensor) const {
    Tensor g(values_[at(tensor)].size());
    fill(g, 300U + at(tensor));
    return g;
  }

  static Element inner(const Tensor& a, const Tensor& b) {
    Element sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum = add(sum, multiply(a[i], b[i]));
    return sum;
  }

  std::size_t place(const std::vector<int>& dims, const Index& index) const {
    std::int64_t place = 0;
    for (int d : dims) place = place * extents_[at(d)] + index[at(d)];
    return static_cast<std::size_t>(place);
  }
  Element value(const Operand& o, const Index& index) const {
    return values_[at(o.tensor)][place(o.dims, index)];
  }
  Element tangent(const Operand& o, const Index& index) const {
    return tangents_[at(o.tensor)][place(o.dims, index)];
  }

  void for_each_index(const std::vector<int>& dims, const std::function<void(const Index&)>& visit,
                      Index index) const {
    if (dims.empty()) return visit(index);
    const std::vector<int> rest(dims.begin() + 1, dims.end());
    for (std::int64_t i = 0; i < extents_[at(dims[0])]; ++i) {
      index[at(dims[0])] = i;
      for_each_index(rest, visit, index);
    }
  }

  static void add_dims(std::vector<int>& dims, const std::vector<int>& more) {
    for (int d : more) {
      if (std::ranges::find(dims, d) == dims.end()) dims.push_back(d);
    }
  }

  void differentiate(const Statement& s) {
    Tensor& out = tangents_[at(s.result.tensor)];
    const auto give = [&](const std::vector<int>& dims,
                          const std::function<Element(const Index&)>& term) {
      for_each_index(
          dims,
          [&](const Index& index) {
            Element& entry = out[place(s.result.dims, index)];
            entry = add(entry, term(index));
          },
          Index(extents_.size(), 0));
    };
    for (const Product& p : s.products) {
      std::vector<int> dims = s.result.dims;
      for (const Operand& o : p.operands) add_dims(dims, o.dims);
      give(dims, [&](const Index& index) { return product_rule(p, index); });
    }
    if (s.is_linear() || s.combine == Combine::max || is_constant(s.function)) return;
    std::vector<int> dims = s.result.dims;
    add_dims(dims, s.reduced);
    if (s.function == "exp_dot") {
      add_dims(dims, s.whole);
      const Product dot{.operands = s.operands};
      return give(
          dims, [&](const Index& i) { return multiply(value(s.result, i), product_rule(dot, i)); });
    }
    if (s.function == "exp_shift") {
      return give(dims, [&](const Index& i) {
        return multiply(value(s.result, i), tangent(s.operands[0], i));
      });
    }
    if (s.function == "ratio") {
      return give(dims, [&](const Index& i) {
        const Element b = inverse(value(s.operands[1], i));
        const Element y = multiply(value(s.operands[0], i), b);
        return multiply(
            b, subtract(tangent(s.operands[0], i), multiply(y, tangent(s.operands[1], i))));
      });
    }
    for (std::size_t i = 0; i < s.operands.size(); ++i) add_unknown(s, i, out);
  }

  Element product_rule(const Product& p, const Index& index) const {
    Element sum = 0;
    for (std::size_t i = 0; i < p.operands.size(); ++i) {
      Element term = element_of(p.factor);
      for (std::size_t j = 0; j < p.operands.size(); ++j) {
        const Operand& o = p.operands[j];
        term = multiply(term, i == j ? tangent(o, index) : value(o, index));
      }
      sum = add(sum, term);
    }
    return sum;
  }

  /// The matrix of the derivative with respect to operand i from a kernel of its own: by the entry
  /// of the result, and by that of the operand along whole dims.
  void add_unknown(const Statement& s, std::size_t i, Tensor& out) {
    Kernel k;
    k.dims = kernel_.dims;
    Statement derivative = s;
    derivative.function += "'" + std::to_string(i);
    derivative.reduced.clear();
    std::vector<int> dims = s.result.dims;
    add_dims(dims, s.reduced);
    const std::vector<int> entry = dims;
    std::vector<int> given = s.operands[i].dims;
    std::vector<std::int64_t> extents = extents_;
    for (int& d : given) {
      if (std::ranges::find(s.whole, d) == s.whole.end()) continue;
      if (std::ranges::find(entry, d) != entry.end()) {
        k.dims.push_back({.name = k.dims[at(d)].name + "*", .like = d});
        extents.push_back(extents_[at(d)]);
        d = static_cast<int>(k.dims.size()) - 1;
      }
      dims.push_back(d);
    }
    std::vector<Tensor> tensors;
    for (std::size_t o = 0; o < s.operands.size(); ++o) {
      k.tensors.push_back({.name = "x" + std::to_string(o), .dims = s.operands[o].dims});
      derivative.operands[o].tensor = static_cast<int>(o);
      tensors.push_back(values_[at(s.operands[o].tensor)]);
    }
    k.inputs = static_cast<int>(s.operands.size());
    k.outputs = 1;
    k.tensors.push_back({.name = "y", .dims = dims});
    derivative.result = {k.inputs, dims};
    k.statements = {derivative};
    std::swap(extents, extents_);
    tensors.push_back(Tensor(size_of(dims), 0));
    tensors = run(k, std::move(tensors), extents_);
    for_each_index(
        dims,
        [&](const Index& index) {
          const Element slope = tensors.back()[place(dims, index)];
          const Element dx = tangents_[at(s.operands[i].tensor)][place(given, index)];
          Element& y = out[place(s.result.dims, index)];
          y = add(y, multiply(slope, dx));
        },
        Index(extents_.size(), 0));
    std::swap(extents, extents_);
  }

  Kernel kernel_;
  std::vector<std::int64_t> extents_;
  std::vector<Tensor> values_;
  std::vector<Tensor> tangents_;
};

/// Gradients of all outputs with respect to the inputs `to`.
void expect_adjoint(const std::string& text, const std::vector<int>& to) {
  const Kernel kernel = kernel_from(text);
  std::vector<int> from;
  for (int o = 0; o < kernel.outputs; ++o) from.push_back(kernel.inputs + o);
  const std::optional<Adjoint> adjoint = adjoint_of(kernel, from, to);
  ASSERT_TRUE(adjoint) << text;
  EXPECT_EQ(adjoint->to, to) << text;
  TangentRun run(kernel);
  const Element forward = run.forward(from, to);
  EXPECT_NE(forward, 0U) << text;
  EXPECT_EQ(forward, run.backward(*adjoint)) << text << to_text(adjoint->kernel);
}

TEST(AdjointTest, SumsOfProducts) {
  expect_adjoint(
      "kernel k(x[s t h], w[o h], b[o]) -> (y[s t o]) {\n"
      " y[s t o] = x[s t h] * w[o h] - 1/2 * b[o]\n}",
      {0, 1, 2});
  expect_adjoint("kernel k(x[s h]) -> (q[s]) {\n q[s] = 3 * x[s h] * x[s h] * x[s h]\n}", {0});
}

TEST(AdjointTest, StatementsInARow) {
  expect_adjoint(
      "kernel k(x[s h], w[o h]) -> (y[s o], q[s]) {\n"
      " z[s o] = x[s h] * w[o h]\n y[s o] = z[s o] * z[s o] + z[s o]\n"
      " q[s] = y[s o] * z[s o]\n}",
      {0, 1});
}

// The same tensor under two names of its dim: a Gram matrix.
TEST(AdjointTest, ATensorReadUnderTwoNames) {
  expect_adjoint(
      "kernel k(x[s t e]) -> (y[s t u]) {\n dim u like t\n"
      " y[s t u] = x[s t e] * x[s u e]\n}",
      {0});
}

TEST(AdjointTest, UnknownFunctionsEntryByEntry) {
  expect_adjoint("kernel k(x[s h], y[s h]) -> (z[s h]) {\n z[s h] = mix(x[s h], y[s h])\n}",
                 {0, 1});
  expect_adjoint(
      "kernel k(x[s h], w[h]) -> (y[s h]) {\n q[s] = sum h of power(x[s h])\n"
      " n[s h] = normal(x[s h], q[s])\n y[s h] = n[s h] * w[h]\n}",
      {0, 1});
}

TEST(AdjointTest, FunctionsOfWholeVectors) {
  expect_adjoint("kernel k(x[s e]) -> (y[s e]) {\n y[s e] = spread(x[s e]; whole e)\n}", {0});
  expect_adjoint("kernel k(x[s e], b[e]) -> (y[s]) {\n y[s] = gist(x[s e], b[e]; whole e)\n}",
                 {0, 1});
  expect_adjoint("kernel k(z[s t e]) -> (g[s t e]) {\n g[s t e] = route.2(z[s t e]; whole e)\n}",
                 {0});
}

TEST(AdjointTest, Attention) {
  expect_adjoint(
      "kernel k(q[s h t e], k[s h u e], v[s h u o]) -> (y[s h t o], l[s h t]) {\n"
      " w[s h t u] = exp_dot(q[s h t e], k[s h u e]; whole e; at t u)\n"
      " l[s h t] = w[s h t u]\n n[s h t o] = w[s h t u] * v[s h u o]\n"
      " y[s h t o] = ratio(n[s h t o], l[s h t])\n}",
      {0, 1, 2});
}

// The scale of scores may depend on parameters too.
TEST(AdjointTest, AttentionWithAScale) {
  expect_adjoint(
      "kernel k(q[s h t e], k[s h u e], v[s h u o], c[h]) -> (y[s h t o], l[s h t]) {\n"
      " w[s h t u] = exp_dot(q[s h t e], k[s h u e], c[h]; whole e; at t u)\n"
      " l[s h t] = w[s h t u]\n n[s h t o] = w[s h t u] * v[s h u o]\n"
      " y[s h t o] = ratio(n[s h t o], l[s h t])\n}",
      {0, 1, 2, 3});
}

// No gradient flows through the shift, which changes nothing.
TEST(AdjointTest, CrossEntropy) {
  expect_adjoint(
      "kernel k(z[s e], m[s], i[s]) -> (l[s]) {\n"
      " x[s e] = exp_shift(z[s e], m[s])\n t[s] = x[s e]\n g[s] = log(t[s])\n"
      " o[s e] = onehot(i[s]; at e)\n p[s] = o[s e] * z[s e]\n l[s] = g[s] - p[s]\n}",
      {0});
}

TEST(AdjointTest, OfTwoKernelsAsOne) {
  const Kernel first = kernel_from(
      "kernel a(x[s h], w[o h]) -> (y[s o]) {\n z[s o] = x[s h] * w[o h]\n y[s o] = act(z[s "
      "o])\n}");
  const Kernel second =
      kernel_from("kernel b(y[s o], v[e o]) -> (r[s e]) {\n r[s e] = y[s o] * v[e o]\n}");
  expect_adjoint(to_text(fuse(first, second, {0, -1}, {0})), {0, 1, 2});
}

TEST(AdjointTest, NothingFlowsThroughChoicesAndTheLargest) {
  const Kernel chosen =
      kernel_from("kernel k(z[s e]) -> (m[s e]) {\n m[s e] = chosen.2(z[s e]; whole e)\n}");
  EXPECT_FALSE(adjoint_of(chosen, {1}, {0}));
  const Kernel largest =
      kernel_from("kernel k(z[s e]) -> (m[s]) {\n m[s] = max e of id(z[s e])\n}");
  EXPECT_FALSE(adjoint_of(largest, {1}, {0}));
}

}  // namespace
}  // namespace placet::algebra
