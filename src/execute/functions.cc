// The functions of programs over any type of numbers: over Dual they give their derivatives.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>

#include "execute/meanings.h"
#include "execute/orthogonal.h"
#include "execute/processors.h"
#include "execute/recurrences.h"
#include "program/known_functions.h"
#include "ranks/numbers.h"
#include "units/error.h"

namespace placet::execute {
namespace {

constexpr double kRootTwoOverPi = 0.79788456080286535588;
constexpr double kRootHalf = 0.70710678118654752440;
constexpr double kCubicOfGelu = 0.044715;  // Hendrycks and Gimpel, 2016, section 2

using Operands = std::span<const double>;

struct Stem {
  std::string_view name;
  Function function;
};
constexpr std::array<Stem, 45> kStems = {{
    {"act", Function::act},
    {"silu", Function::silu},
    {"sigmoid", Function::sigmoid},
    {"power", Function::power},
    {"entry", Function::entry},
    {"normal", Function::normal},
    {"power-of-head", Function::power_of_head},
    {"normal-of-head", Function::normal_of_head},
    {"log", Function::log},
    {"inv", Function::inverse},
    {"ratio", Function::ratio},
    {"id", Function::identity},
    {"exp_dot", Function::exp_dot},
    {"attention_scale", Function::attention_scale},
    {"exp", Function::exp},
    {"exp_seen", Function::exp_seen},
    {"exp_shift", Function::exp_shift},
    {"capped", Function::capped},
    {"onehot", Function::onehot},
    {"position", Function::position},
    {"rotation", Function::rotation},
    {"kept", Function::kept},
    {"chosen", Function::chosen},
    {"route", Function::route},
    {"affinity", Function::affinity},
    {"convolution", Function::convolution},
    {"selective_scan", Function::selective_scan},
    {"head_scan", Function::head_scan},
    {"delta_rule", Function::delta_rule},
    {"channel_delta_rule", Function::channel_delta_rule},
    {"linear_attention", Function::linear_attention},
    {"moment0", Function::moment},
    {"moment1", Function::moment},
    {"direction", Function::direction},
    {"orthogonal", Function::orthogonal},
    {"stepped", Function::stepped},
    {"limited", Function::limited},
    {"nonfinite", Function::nonfinite},
    {"rescaled", Function::rescaled},
    {"counted", Function::counted},
    {"unless", Function::unless},
    {"balance_weight", Function::balance_weight},
    {"prediction_weight", Function::prediction_weight},
    {"compressed", Function::compressed},
    {"masked", Function::masked},
}};

template <class T>
T gelu_tanh(T x) {
  const T inner = T(kRootTwoOverPi) * (x + T(kCubicOfGelu) * x * x * x);
  return x * T(0.5) * (T(1) + tanh_of(inner));
}

template <class T>
T gelu(T x) {
  return x * T(0.5) * (T(1) + erf_of(x * T(kRootHalf)));
}

template <class T>
T rectified(T x) {
  return value_of(x) > 0 ? x : T(0);
}

template <class T, class All>
void activations(Meanings::Activation kind, const All& entries) {
  using Entry = std::span<const T>;
  switch (kind) {
    case Meanings::Activation::gelu:
      return entries.template each<1>([](Entry x) { return gelu(x[0]); });
    case Meanings::Activation::gelu_tanh:
      return entries.template each<1>([](Entry x) { return gelu_tanh(x[0]); });
    case Meanings::Activation::silu:
      return entries.template each<1>([](Entry x) { return silu_of(x[0]); });
    case Meanings::Activation::relu:
      return entries.template each<1>([](Entry x) { return rectified(x[0]); });
    case Meanings::Activation::relu_squared:
      return entries.template each<1>([](Entry x) { return rectified(x[0]) * rectified(x[0]); });
  }
  fail_internally("every activation is known");
}

bool is_gate(Function function) {
  return function == Function::act || function == Function::silu || function == Function::sigmoid;
}

template <class T, class All>
void gates(const Meanings& m, Function function, const All& entries) {
  if (function == Function::act) return activations<T>(m.activation, entries);
  if (function == Function::silu) return activations<T>(Meanings::Activation::silu, entries);
  entries.template each<1>([](std::span<const T> x) { return sigmoid_of(x[0]); });
}

/// An entry by the mean of the squares; with a sum of the entries, by mean and deviation.
template <class T>
T normal(const Meanings& m, std::span<const T> x, double count) {
  const T n = T(count);
  if (x.size() < 3) return x[0] / root_of(x.back() / n + T(m.norm_epsilon));
  const T mean = x[1] / n;
  return (x[0] - mean) / root_of(x[2] / n - mean * mean + T(m.norm_epsilon));
}

/// The state of a rule after a gradient.
template <class T>
T moment(const Meanings& m, const MeantFunction& f, std::span<const T> x) {
  const T& old = x[0];
  const T& g = x[1];
  switch (m.updates.at(static_cast<std::size_t>(f.rule))) {
    case Meanings::Update::adam: {
      const double decay = f.number == 0 ? m.first_decay : m.second_decay;
      return T(decay) * old + T(1 - decay) * (f.number == 0 ? g : g * g);
    }
    case Meanings::Update::momentum:
      return T(m.first_decay) * old + g;
    case Meanings::Update::signs:
      return T(m.second_decay) * old + T(1 - m.second_decay) * g;
    case Meanings::Update::sgd:
      break;
  }
  fail_internally("a rule without states makes none");
}

double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

/// What all entries of a step of Adam have in common.
template <class Real>
struct AdamStep {
  Real kept = 1;
  Real rate = 0;
  Real second = 1;
  Real epsilon = 0;

  AdamStep(const Meanings& m, std::int64_t step)
      : kept(static_cast<Real>(1 - m.learning_rate * m.weight_decay)),
        rate(static_cast<Real>(m.learning_rate / (1 - whole_power_of(m.first_decay, step)))),
        second(static_cast<Real>(std::sqrt(1 - whole_power_of(m.second_decay, step)))),
        epsilon(static_cast<Real>(m.update_epsilon)) {}

  /// Of a parameter and its moments.
  Real operator()(std::span<const Real> x) const {
    return x[0] * kept - rate * (x[1] / (root_of(x[2]) / second + epsilon));
  }
};

/// The parameter after the step, from itself, the new states and the gradient. Decoupled decay:
/// Loshchilov and Hutter, 2019, algorithm 2.
double stepped(const Meanings& m, const MeantFunction& f, Operands x, std::int64_t step) {
  const double kept = x[0] * (1 - m.learning_rate * m.weight_decay);
  switch (m.updates.at(static_cast<std::size_t>(f.rule))) {
    case Meanings::Update::adam:
      return AdamStep<double>(m, step)(x);
    case Meanings::Update::momentum:
      return kept - m.learning_rate * x[1];
    case Meanings::Update::signs: {
      // Chen et al., 2023, algorithm 2: the direction is of the old momentum.
      const double old = (x[1] - (1 - m.second_decay) * x.back()) / m.second_decay;
      const double towards = m.first_decay * old + (1 - m.first_decay) * x.back();
      return kept - m.learning_rate * sign_of(towards);
    }
    case Meanings::Update::sgd:
      return kept - m.learning_rate * x.back();
  }
  fail_internally("every update is known");
}

/// The factor of all gradients: of their squared norm, and of the scale of the loss.
double limited(const Meanings& m, Operands x) {
  constexpr double kTiny = 1e-6;  // as in torch.nn.utils.clip_grad_norm_
  const double scale = x.size() > 1 ? x[1] : 1;
  return std::min(1.0, m.clip / (std::sqrt(x[0]) / scale + kTiny)) / scale;
}

double rescaled(const Meanings& m, Operands x) {
  if (x[2] > 0) return x[0] / 2;
  return x[1] + 1 >= static_cast<double>(m.scale_interval) ? x[0] * 2 : x[0];
}

double counted(const Meanings& m, Operands x) {
  return x[1] > 0 || x[0] + 1 >= static_cast<double>(m.scale_interval) ? 0 : x[0] + 1;
}

/// Rounded to eight bits, as a message in bf16 is.
double compressed(double x) {
  constexpr int kBits = 8;
  int exponent = 0;
  const double part = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(part, kBits)), exponent - kBits);
}

/// One number of four, by its bits; the others are lost.
double masked(double x) {
  constexpr std::uint64_t kFour = 4;
  return ranks::mixed(std::bit_cast<std::uint64_t>(x)) % kFour == 0 ? x : 0;
}

/// Of the scores of heads of so many entries (Vaswani et al., 2017, section 3.2.1).
double attention_scale(const Meanings& m, std::int64_t size) {
  return m.scales_attention ? 1 / std::sqrt(static_cast<double>(size)) : 1;
}

double kept(const Meanings& m, const FunctionPlace& place) {
  std::uint64_t h = ranks::mixed(place.draw + m.seed);
  for (std::int64_t p : place.positions) {
    h = ranks::mixed(h ^ static_cast<std::uint64_t>(p)) + 0x9e3779b97f4a7c15U;
  }
  const double uniform = std::ldexp(static_cast<double>(ranks::mixed(h) >> 11U), -53);
  return uniform < m.dropout ? 0 : 1 / (1 - m.dropout);
}

template <class Real>
  requires std::is_floating_point_v<Real>
Real part_of(Real value) {
  return value;
}
template <class Real>
Real part_of(DualOf<Real> value) {
  return value.d;
}

/// one(operands) for each entry of a row: over numbers, or over such as give the derivative.
template <std::size_t kWidth, class T, class Real, class One>
void for_each_entry_of(const FunctionRow<Real>& row, int derivative, Real* values, const One& one) {
  const auto operands = row.operands;
  for (std::size_t k = 0; k < row.count; ++k) {
    std::array<T, kWidth> x{};
    for (std::size_t o = 0; o < kWidth; ++o) {
      x[o] = T(operands[o][k]);
      if constexpr (!std::is_same_v<T, Real>) x[o].d = static_cast<int>(o) == derivative ? 1 : 0;
    }
    values[k] = part_of(one(std::span<const T>(x)));
  }
}

/// A row with its place among the functions.
template <class T, class Real>
struct Entries {
  const FunctionRow<Real>& row;
  int derivative = -1;
  Real* values = nullptr;

  /// The number of operands is known to the compiler, which computes entries side by side.
  template <std::size_t kWidth, class One>
  void each(const One& one) const {
    for_each_entry_of<kWidth, T>(row, derivative, values, one);
  }
};

/// T: numbers of the format, or such as give the derivative.
template <class T, class Real>
void smooth_values(const Meanings& m, const MeantFunction& f, const FunctionRow<Real>& row,
                   Real* values) {
  using Entry = std::span<const T>;
  const Entries<T, Real> entries{row, f.derivative, values};
  const Function kind = f.function;
  if (is_gate(kind)) return gates<T>(m, kind, entries);
  if (kind == Function::power) return entries.template each<1>([](Entry x) { return x[0] * x[0]; });
  if (kind == Function::entry) return entries.template each<1>([](Entry x) { return x[0]; });
  if (kind == Function::identity) return entries.template each<1>([](Entry x) { return x[0]; });
  if (kind == Function::capped) {
    const T cap = T(f.number == 0 ? m.score_cap : m.logit_cap);
    return entries.template each<1>([&](Entry x) { return cap * tanh_of(x[0] / cap); });
  }
  if (kind == Function::exp) return entries.template each<1>([](Entry x) { return exp_of(x[0]); });
  if (kind == Function::log) return entries.template each<1>([](Entry x) { return log_of(x[0]); });
  if (kind == Function::inverse)
    return entries.template each<1>([](Entry x) { return T(1) / x[0]; });
  if (kind == Function::ratio) return entries.template each<2>([](Entry x) { return x[0] / x[1]; });
  if (kind == Function::exp_shift) {
    return entries.template each<2>([](Entry x) { return exp_of(x[0] - x[1]); });
  }
  if (kind == Function::moment) {
    return entries.template each<2>([&](Entry x) { return moment(m, f, x); });
  }
  ensure(kind == Function::normal, "every smooth function of numbers is known");
  const double count = row.place.count;
  if (row.width < 3) return entries.template each<2>([&](Entry x) { return normal(m, x, count); });
  entries.template each<3>([&](Entry x) { return normal(m, x, count); });
}

/// Functions that have no derivative, by meaning.
struct Plain {
  Function function;
  double (*value)(const Meanings&, const MeantFunction&, Operands, const FunctionPlace&);
};
constexpr std::array<Plain, 16> kPlain = {{
    {Function::stepped, [](const Meanings& m, const MeantFunction& f, Operands x,
                           const FunctionPlace& p) { return stepped(m, f, x, p.step); }},
    {Function::exp_seen,
     [](const Meanings&, const MeantFunction& f, Operands x, const FunctionPlace& p) {
       const std::int64_t back = p.positions[0] - p.positions[1];
       return back >= 0 && (f.number <= 0 || back < f.number) ? exp_of(x[0]) : 0.0;
     }},
    {Function::direction, [](const Meanings& m, const MeantFunction&, Operands x,
                             const FunctionPlace&) { return x.back() + m.first_decay * x[0]; }},
    {Function::limited, [](const Meanings& m, const MeantFunction&, Operands x,
                           const FunctionPlace&) { return limited(m, x); }},
    {Function::nonfinite, [](const Meanings&, const MeantFunction&, Operands x,
                             const FunctionPlace&) { return std::isfinite(x[0]) ? 0.0 : 1.0; }},
    {Function::rescaled, [](const Meanings& m, const MeantFunction&, Operands x,
                            const FunctionPlace&) { return rescaled(m, x); }},
    {Function::counted, [](const Meanings& m, const MeantFunction&, Operands x,
                           const FunctionPlace&) { return counted(m, x); }},
    {Function::unless, [](const Meanings&, const MeantFunction&, Operands x,
                          const FunctionPlace&) { return x[2] > 0 ? x[0] : x[1]; }},
    {Function::attention_scale, [](const Meanings& m, const MeantFunction& f, Operands,
                                   const FunctionPlace&) { return attention_scale(m, f.number); }},
    {Function::balance_weight, [](const Meanings& m, const MeantFunction&, Operands,
                                  const FunctionPlace&) { return m.balance_weight; }},
    {Function::prediction_weight, [](const Meanings& m, const MeantFunction&, Operands,
                                     const FunctionPlace&) { return m.prediction_weight; }},
    {Function::compressed, [](const Meanings&, const MeantFunction&, Operands x,
                              const FunctionPlace&) { return compressed(x[0]); }},
    {Function::masked, [](const Meanings&, const MeantFunction&, Operands x,
                          const FunctionPlace&) { return masked(x[0]); }},
    {Function::kept, [](const Meanings& m, const MeantFunction&, Operands,
                        const FunctionPlace& p) { return kept(m, p); }},
    {Function::onehot,
     [](const Meanings&, const MeantFunction&, Operands x, const FunctionPlace& p) {
       return x[0] == static_cast<double>(p.positions[0]) ? 1.0 : 0.0;
     }},
    {Function::position,
     [](const Meanings&, const MeantFunction&, Operands, const FunctionPlace& p) {
       return p.positions[0] == p.positions[1] ? 1.0 : 0.0;
     }},
}};

bool is_step_of_adam(const Meanings& m, const MeantFunction& f) {
  return f.function == Function::stepped &&
         m.updates.at(static_cast<std::size_t>(f.rule)) == Meanings::Update::adam;
}

/// One entry by itself, whatever stands beside it.
bool is_plain(const MeantFunction& f) {
  return f.function == Function::rotation ||
         std::ranges::find(kPlain, f.function, &Plain::function) != kPlain.end();
}

/// The places of the `count` largest, of equal ones the first.
template <class T>
std::vector<char> largest(const std::vector<std::vector<T>>& x, std::int64_t count) {
  const std::size_t n = x[0].size();
  std::vector<double> scores(n, 0);
  for (const std::vector<T>& operand : x) {
    for (std::size_t e = 0; e < n; ++e) scores[e] += value_of(operand[e]);
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<char> in(n, 0);
  for (std::size_t i = 0; i < std::min(n, static_cast<std::size_t>(count)); ++i) in[order[i]] = 1;
  return in;
}

/// Softmax over the entries that are `in`; 0 for all others.
template <class T>
std::vector<T> softmax(const std::vector<T>& z, const std::vector<char>& in) {
  double most = -1e300;
  for (std::size_t e = 0; e < z.size(); ++e) {
    if (in[e] != 0) most = std::max(most, value_of(z[e]));
  }
  std::vector<T> out(z.size(), T(0));
  T sum(0);
  for (std::size_t e = 0; e < z.size(); ++e) {
    if (in[e] == 0) continue;
    out[e] = exp_of(z[e] - T(most));
    sum = sum + out[e];
  }
  for (T& one : out) one = one / sum;
  return out;
}

template <class T>
std::vector<T> routed(const Meanings& m, const MeantFunction& f,
                      const std::vector<std::vector<T>>& x) {
  const std::vector<char> in = largest(x, std::max<std::int64_t>(f.number, 1));
  const std::vector<char> all(in.size(), 1);
  std::vector<T> weights = softmax(x[0], m.routes_among_chosen ? in : all);
  for (std::size_t e = 0; e < in.size(); ++e) {
    if (in[e] == 0) weights[e] = T(0);
  }
  return weights;
}

/// Heads lie side by side along the entries: those of the head at the first position.
template <class T>
std::vector<T> power_of_head(const std::vector<std::vector<T>>& x, const FunctionPlace& place) {
  const std::size_t size = x[0].size() / static_cast<std::size_t>(place.sizes[0]);
  const std::size_t first = static_cast<std::size_t>(place.positions[0]) * size;
  T sum(0);
  for (std::size_t e = first; e < first + size; ++e) sum = sum + x[0][e] * x[0][e];
  return {sum};
}

template <class T>
std::vector<T> normal_of_head(const Meanings& m, const std::vector<std::vector<T>>& x,
                              const FunctionPlace& place) {
  const auto heads = static_cast<std::int64_t>(x[1].size());
  const std::int64_t size = place.sizes[0] / heads;
  const std::int64_t entry = place.positions[0] % size;
  const std::int64_t head = place.positions[0] / size;
  T y = x[0][0] / root_of(x[1][static_cast<std::size_t>(head)] / T(static_cast<double>(size)) +
                          T(m.norm_epsilon));
  for (std::size_t p = 2; p < x.size(); ++p) {
    const T& w = x[p][static_cast<std::size_t>(entry) % x[p].size()];
    y = p == 2 ? y * w : y + w;
  }
  return {y};
}

/// The first of the dims that it sees whole, as many as its name says, are the rows of the matrix.
std::size_t rows_of(const MeantFunction& f, const FunctionPlace& place) {
  std::int64_t rows = 1;
  for (std::int64_t d = 0; d < f.number; ++d) rows *= place.given.at(static_cast<std::size_t>(d));
  return static_cast<std::size_t>(rows);
}

template <class T>
std::vector<T> vector_value(const Meanings& m, const MeantFunction& f,
                            const std::vector<std::vector<T>>& x, const FunctionPlace& place) {
  const Function kind = f.function;
  if (kind == Function::route) return routed(m, f, x);
  if (kind == Function::affinity) return softmax(x[0], std::vector<char>(x[0].size(), 1));
  if (kind == Function::power_of_head) return power_of_head(x, place);
  if (kind == Function::normal_of_head) return normal_of_head(m, x, place);
  if (is_recurrence(kind)) return recurrence_value(f, x, place);
  ensure(kind == Function::chosen, "a function of vectors is known");
  std::vector<T> out;
  for (const char in : largest(x, std::max<std::int64_t>(f.number, 1))) out.push_back(T(in));
  return out;
}

}  // namespace

MeantFunction meant(const std::string& function, const std::string& kernel) {
  const FunctionName name = function_name(function);
  const auto* stem = std::ranges::find(kStems, name.stem, &Stem::name);
  if (stem == kStems.end()) {
    std::string all;
    for (const Stem& s : kStems) all += (all.empty() ? "" : ", ") + std::string(s.name);
    throw InputError({.where = "kernel " + kernel,
                      .value = function,
                      .problem = "is a function that has no meaning on real numbers here",
                      .allowed = all});
  }
  MeantFunction out{.name = function,
                    .function = stem->function,
                    .number = name.number,
                    .derivative = name.derivative};
  if (out.function == Function::moment || out.function == Function::stepped) {
    out.rule = static_cast<int>(name.number);
    out.number = name.stem == "moment1" ? 1 : 0;
  }
  return out;
}

namespace {

/// Functions of single entries, one after the other.
template <class Real>
void plain_values(const Meanings& m, const MeantFunction& f, const FunctionRow<Real>& row,
                  Real* values) {
  const bool turns = f.function == Function::rotation;
  const auto* plain = std::ranges::find(kPlain, f.function, &Plain::function);
  FunctionPlace place = row.place;
  std::array<double, kMostFunctionOperands> x{};
  for (std::size_t k = 0; k < row.count; ++k) {
    for (std::size_t o = 0; o < row.width; ++o) x[o] = static_cast<double>(row.operands[o][k]);
    values[k] = static_cast<Real>(turns ? rotation_of(m, place, row.positions)
                                        : plain->value(m, f, Operands(x.data(), row.width), place));
    for (std::size_t p = 0; p < row.positions; ++p) place.positions[p] += row.ahead[p];
  }
}

template <class Real>
void smooth_rows(const Meanings& m, const MeantFunction& f, const FunctionRow<Real>& row,
                 Real* values) {
  if (f.derivative >= 0) return smooth_values<DualOf<Real>>(m, f, row, values);
  if (is_step_of_adam(m, f)) {
    const Entries<Real, Real> entries{row, -1, values};
    return entries.template each<3>(AdamStep<Real>(m, row.place.step));
  }
  smooth_values<Real>(m, f, row, values);
}

PLACET_FOR_PROCESSORS
void smooth_rows_of_doubles(const Meanings& m, const MeantFunction& f,
                            const FunctionRow<double>& row, double* values) {
  smooth_rows(m, f, row, values);
}

PLACET_FOR_PROCESSORS
void smooth_rows_of_floats(const Meanings& m, const MeantFunction& f, const FunctionRow<float>& row,
                           float* values) {
  smooth_rows(m, f, row, values);
}

bool is_smooth(const Meanings& m, const MeantFunction& f) {
  return f.derivative >= 0 || is_step_of_adam(m, f) || !is_plain(f);
}

}  // namespace

void values_of(const Meanings& m, const MeantFunction& f, const FunctionRow<double>& row,
               double* values) {
  if (is_smooth(m, f)) return smooth_rows_of_doubles(m, f, row, values);
  plain_values(m, f, row, values);
}

void values_of(const Meanings& m, const MeantFunction& f, const FunctionRow<float>& row,
               float* values) {
  if (is_smooth(m, f)) return smooth_rows_of_floats(m, f, row, values);
  plain_values(m, f, row, values);
}

PLACET_FOR_PROCESSORS
void make_exponentials(double* x, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) x[k] = exp_of(x[k]);
}

PLACET_FOR_PROCESSORS
void make_exponentials(float* x, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) x[k] = exp_of(x[k]);
}

double value_of(const Meanings& m, const MeantFunction& f, const std::vector<double>& x,
                const FunctionPlace& place) {
  ensure(x.size() <= kMostFunctionOperands, "a function has few operands");
  FunctionRow<double> row{.count = 1, .width = x.size(), .place = place};
  for (std::size_t o = 0; o < x.size(); ++o) row.operands[o] = &x[o];
  double value = 0;
  values_of(m, f, row, &value);
  return value;
}

bool sees_vectors(Function function) {
  return function == Function::route || function == Function::affinity ||
         function == Function::chosen || function == Function::power_of_head ||
         function == Function::normal_of_head || function == Function::orthogonal ||
         is_recurrence(function);
}

void values_of(const Meanings& m, const MeantFunction& f, const std::vector<std::vector<double>>& x,
               const FunctionPlace& place, std::vector<double>& values) {
  if (f.derivative < 0) {
    const bool matrix = f.function == Function::orthogonal;
    values = matrix ? orthogonal(x[0], rows_of(f, place)) : vector_value(m, f, x, place);
    return;
  }
  std::vector<std::vector<Dual>> seeded;
  seeded.reserve(x.size());
  for (const std::vector<double>& operand : x) seeded.emplace_back(operand.begin(), operand.end());
  std::vector<Dual>& by = seeded.at(static_cast<std::size_t>(f.derivative));
  values.clear();
  for (std::size_t j = 0; j < by.size(); ++j) {
    by[j].d = 1;
    const std::vector<Dual> all = vector_value(m, f, seeded, place);
    by[j].d = 0;
    values.resize(all.size() * by.size());
    for (std::size_t o = 0; o < all.size(); ++o) values[o * by.size() + j] = all[o].d;
  }
}

}  // namespace placet::execute
