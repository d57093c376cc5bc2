// The functions of programs over any type of numbers: over Dual they give their derivatives.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "execute/meanings.h"
#include "ranks/numbers.h"
#include "units/error.h"

namespace placet::execute {
namespace {

constexpr double kRootTwoOverPi = 0.79788456080286535588;
constexpr double kRootHalf = 0.70710678118654752440;
constexpr double kCubicOfGelu = 0.044715;  // Hendrycks and Gimpel, 2016, section 2

struct Stem {
  std::string_view name;
  Function function;
};
constexpr std::array<Stem, 30> kStems = {{
    {"act", Function::act},
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
    {"exp_shift", Function::exp_shift},
    {"onehot", Function::onehot},
    {"position", Function::position},
    {"rotation", Function::rotation},
    {"kept", Function::kept},
    {"chosen", Function::chosen},
    {"route", Function::route},
    {"affinity", Function::affinity},
    {"moment0", Function::moment},
    {"moment1", Function::moment},
    {"stepped", Function::stepped},
    {"limited", Function::limited},
    {"nonfinite", Function::nonfinite},
    {"rescaled", Function::rescaled},
    {"counted", Function::counted},
    {"unless", Function::unless},
    {"balance_weight", Function::balance_weight},
    {"prediction_weight", Function::prediction_weight},
}};

template <class T>
T activation(Meanings::Activation kind, T x) {
  switch (kind) {
    case Meanings::Activation::gelu:
      return x * T(0.5) * (T(1) + erf_of(x * T(kRootHalf)));
    case Meanings::Activation::gelu_tanh: {
      const T inner = T(kRootTwoOverPi) * (x + T(kCubicOfGelu) * x * x * x);
      return x * T(0.5) * (T(1) + tanh_of(inner));
    }
    case Meanings::Activation::silu:
      return x / (T(1) + exp_of(-x));
    case Meanings::Activation::relu:
      return value_of(x) > 0 ? x : T(0);
    case Meanings::Activation::relu_squared:
      return value_of(x) > 0 ? x * x : T(0);
  }
  fail_internally("every activation is known");
}

/// An entry by the mean of the squares; with a sum of the entries, by mean and deviation.
template <class T>
T normal(const Meanings& m, const std::vector<T>& x, double count) {
  const T n(count);
  if (x.size() < 3) return x[0] / root_of(x.back() / n + T(m.norm_epsilon));
  const T mean = x[1] / n;
  return (x[0] - mean) / root_of(x[2] / n - mean * mean + T(m.norm_epsilon));
}

/// The state of a rule after a gradient.
template <class T>
T moment(const Meanings& m, const MeantFunction& f, const std::vector<T>& x) {
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

/// The parameter after the step, from itself, the new states and the gradient. Decoupled decay:
/// Loshchilov and Hutter, 2019, algorithm 2.
double stepped(const Meanings& m, const MeantFunction& f, const std::vector<double>& x,
               std::int64_t step) {
  const double kept = x[0] * (1 - m.learning_rate * m.weight_decay);
  switch (m.updates.at(static_cast<std::size_t>(f.rule))) {
    case Meanings::Update::adam: {
      const double first = 1 - whole_power_of(m.first_decay, step);
      const double second = 1 - whole_power_of(m.second_decay, step);
      const double below = std::sqrt(x[2]) / std::sqrt(second) + m.update_epsilon;
      return kept - m.learning_rate / first * (x[1] / below);
    }
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
double limited(const Meanings& m, const std::vector<double>& x) {
  constexpr double kTiny = 1e-6;  // as in torch.nn.utils.clip_grad_norm_
  const double scale = x.size() > 1 ? x[1] : 1;
  return std::min(1.0, m.clip / (std::sqrt(x[0]) / scale + kTiny)) / scale;
}

double rescaled(const Meanings& m, const std::vector<double>& x) {
  if (x[2] > 0) return x[0] / 2;
  return x[1] + 1 >= static_cast<double>(m.scale_interval) ? x[0] * 2 : x[0];
}

double counted(const Meanings& m, const std::vector<double>& x) {
  return x[1] > 0 || x[0] + 1 >= static_cast<double>(m.scale_interval) ? 0 : x[0] + 1;
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

/// How much of entry `from` of a head is in entry `to` after a turn by `token` steps.
double turned(const Meanings& m, std::int64_t token, std::int64_t from, std::int64_t to,
              std::int64_t size) {
  const std::int64_t half = size / 2;
  if (from >= 2 * half || to >= 2 * half) return from == to ? 1 : 0;
  const auto plane = [&](std::int64_t e) { return m.rotary_pairs ? e / 2 : e % half; };
  const auto second = [&](std::int64_t e) { return m.rotary_pairs ? e % 2 == 1 : e >= half; };
  if (plane(from) != plane(to)) return 0;
  const double exponent = -2.0 * static_cast<double>(plane(from)) / static_cast<double>(2 * half);
  const double angle = static_cast<double>(token) * power_of(m.rotary_base, exponent);
  if (from == to) return cosine_of(angle);
  return second(to) ? sine_of(angle) : -sine_of(angle);
}

/// At three positions (token, from, to): a turn, to the last entries where there are more of them.
/// At two (from, to): to the first entries.
double rotation(const Meanings& m, const FunctionPlace& place, std::size_t positions) {
  const auto& at = place.positions;
  if (positions == 2) return at[0] == at[1] ? 1 : 0;
  const std::int64_t ahead = place.sizes[2] - place.sizes[1];
  if (at[2] < ahead) return 0;
  return turned(m, at[0], at[1], at[2] - ahead, place.sizes[1]);
}

template <class T>
T smooth_value(const Meanings& m, const MeantFunction& f, const std::vector<T>& x,
               const FunctionPlace& place) {
  const Function kind = f.function;
  if (kind == Function::act) return activation(m.activation, x[0]);
  if (kind == Function::power) return x[0] * x[0];
  if (kind == Function::entry || kind == Function::identity) return x[0];
  if (kind == Function::normal) return normal(m, x, place.count);
  if (kind == Function::log) return log_of(x[0]);
  if (kind == Function::inverse) return T(1) / x[0];
  if (kind == Function::ratio) return x[0] / x[1];
  if (kind == Function::exp_shift) return exp_of(x[0] - x[1]);
  if (kind == Function::moment) return moment(m, f, x);
  fail_internally("'" + f.name + "' is no smooth function of numbers");
}

/// Functions that have no derivative, by meaning.
struct Plain {
  Function function;
  double (*value)(const Meanings&, const MeantFunction&, const std::vector<double>&,
                  const FunctionPlace&);
};
using Operands = std::vector<double>;
constexpr std::array<Plain, 12> kPlain = {{
    {Function::stepped, [](const Meanings& m, const MeantFunction& f, const Operands& x,
                           const FunctionPlace& p) { return stepped(m, f, x, p.step); }},
    {Function::limited, [](const Meanings& m, const MeantFunction&, const Operands& x,
                           const FunctionPlace&) { return limited(m, x); }},
    {Function::nonfinite, [](const Meanings&, const MeantFunction&, const Operands& x,
                             const FunctionPlace&) { return std::isfinite(x[0]) ? 0.0 : 1.0; }},
    {Function::rescaled, [](const Meanings& m, const MeantFunction&, const Operands& x,
                            const FunctionPlace&) { return rescaled(m, x); }},
    {Function::counted, [](const Meanings& m, const MeantFunction&, const Operands& x,
                           const FunctionPlace&) { return counted(m, x); }},
    {Function::unless, [](const Meanings&, const MeantFunction&, const Operands& x,
                          const FunctionPlace&) { return x[2] > 0 ? x[0] : x[1]; }},
    {Function::attention_scale, [](const Meanings& m, const MeantFunction& f, const Operands&,
                                   const FunctionPlace&) { return attention_scale(m, f.number); }},
    {Function::balance_weight, [](const Meanings& m, const MeantFunction&, const Operands&,
                                  const FunctionPlace&) { return m.balance_weight; }},
    {Function::prediction_weight, [](const Meanings& m, const MeantFunction&, const Operands&,
                                     const FunctionPlace&) { return m.prediction_weight; }},
    {Function::kept, [](const Meanings& m, const MeantFunction&, const Operands&,
                        const FunctionPlace& p) { return kept(m, p); }},
    {Function::onehot,
     [](const Meanings&, const MeantFunction&, const Operands& x, const FunctionPlace& p) {
       return x[0] == static_cast<double>(p.positions[0]) ? 1.0 : 0.0;
     }},
    {Function::position,
     [](const Meanings&, const MeantFunction&, const Operands&, const FunctionPlace& p) {
       return p.positions[0] == p.positions[1] ? 1.0 : 0.0;
     }},
}};

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

template <class T>
std::vector<T> vector_value(const Meanings& m, const MeantFunction& f,
                            const std::vector<std::vector<T>>& x, const FunctionPlace& place) {
  const Function kind = f.function;
  if (kind == Function::route) return routed(m, f, x);
  if (kind == Function::affinity) return softmax(x[0], std::vector<char>(x[0].size(), 1));
  if (kind == Function::power_of_head) return power_of_head(x, place);
  if (kind == Function::normal_of_head) return normal_of_head(m, x, place);
  ensure(kind == Function::chosen, "a function of vectors is known");
  std::vector<T> out;
  for (const char in : largest(x, std::max<std::int64_t>(f.number, 1))) out.push_back(T(in));
  return out;
}

}  // namespace

FunctionName function_name(std::string_view name) {
  FunctionName out;
  const std::size_t mark = name.find('\'');
  if (mark != std::string_view::npos) {
    const std::string_view digits = name.substr(mark + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), out.derivative);
    name = name.substr(0, mark);
  }
  const std::size_t point = name.find('.');
  if (point != std::string_view::npos) {
    const std::string_view digits = name.substr(point + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), out.number);
    name = name.substr(0, point);
  }
  out.stem = name;
  return out;
}

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

double value_of(const Meanings& m, const MeantFunction& f, const std::vector<double>& x,
                const FunctionPlace& place) {
  if (f.derivative >= 0) {
    std::vector<Dual> seeded(x.begin(), x.end());
    seeded.at(static_cast<std::size_t>(f.derivative)).d = 1;
    return smooth_value(m, f, seeded, place).d;
  }
  const auto* plain = std::ranges::find(kPlain, f.function, &Plain::function);
  if (plain != kPlain.end()) return plain->value(m, f, x, place);
  return smooth_value(m, f, x, place);
}

double rotation_of(const Meanings& m, const FunctionPlace& place, std::size_t positions) {
  return rotation(m, place, positions);
}

bool sees_vectors(Function function) {
  return function == Function::route || function == Function::affinity ||
         function == Function::chosen || function == Function::power_of_head ||
         function == Function::normal_of_head;
}

void values_of(const Meanings& m, const MeantFunction& f, const std::vector<std::vector<double>>& x,
               const FunctionPlace& place, std::vector<double>& values) {
  if (f.derivative < 0) {
    values = vector_value(m, f, x, place);
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
