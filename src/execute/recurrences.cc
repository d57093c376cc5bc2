#include "execute/recurrences.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "units/error.h"

namespace placet::execute {
namespace {

constexpr double kUnitEpsilon = 1e-6;  // below the root of a vector's squares, as the field has it

template <class T>
using Vector = std::vector<T>;

/// How long the dims of the result are.
struct ResultSize {
  std::size_t tokens = 1;
  std::size_t channels = 1;
};

ResultSize size_of_result(const FunctionPlace& place) {
  ResultSize out;
  for (std::size_t d = 0; d < place.given.size(); ++d) {
    if (place.given[d] < 1) continue;
    (d == 0 ? out.tokens : out.channels) *= static_cast<std::size_t>(place.given[d]);
  }
  return out;
}

/// Numbers of each token side by side.
template <class T>
class TokenRows {
 public:
  TokenRows(const Vector<T>& all, std::size_t tokens)
      : all_(all), width_(std::max<std::size_t>(1, all.size() / tokens)) {}

  std::size_t width() const { return width_; }
  const T& at(std::size_t token, std::size_t entry) const {
    return all_[(token * width_ + entry % width_) % all_.size()];
  }
  /// `count` entries of a token.
  Vector<T> part(std::size_t token, std::size_t first, std::size_t count) const {
    Vector<T> out;
    out.reserve(count);
    for (std::size_t e = 0; e < count; ++e) out.push_back(at(token, first + e));
    return out;
  }

 private:
  const Vector<T>& all_;
  std::size_t width_;
};

/// Entry of a parameter.
template <class T>
const T& entry_of(const Vector<T>& all, std::size_t entry) {
  return all[entry % all.size()];
}

/// What a token does to the state of one channel, and what it reads of it.
template <class T>
struct TokenStep {
  Vector<T> decay;  // one, or one for each entry
  Vector<T> key;
  Vector<T> query;
};

enum class StateUpdate : std::uint8_t { adds, corrects };

/// The state decays, the value is written under the key, and the query reads. A state that is
/// corrected gets a part of what the value differs from what it says already.
template <class T>
T step(Vector<T>& state, const TokenStep<T>& token, T value, StateUpdate update = StateUpdate::adds,
       T strength = T(1)) {
  for (std::size_t n = 0; n < state.size(); ++n) state[n] = entry_of(token.decay, n) * state[n];
  if (update == StateUpdate::corrects) {
    T said(0);
    for (std::size_t n = 0; n < state.size(); ++n) said = said + token.key[n] * state[n];
    value = strength * (value - said);
  }
  T read(0);
  for (std::size_t n = 0; n < state.size(); ++n) {
    state[n] = state[n] + token.key[n] * value;
    read = read + token.query[n] * state[n];
  }
  return read;
}

/// exp(-exp(log_rate) time)
template <class T>
T decay_of(const T& log_rate, const T& time) {
  return exp_of(-(exp_of(log_rate) * time));
}

/// A vector of length one in its direction, times a number.
template <class T>
Vector<T> unit_vector(Vector<T> x, double times) {
  T squares(0);
  for (const T& e : x) squares = squares + e * e;
  const T length = root_of(squares + T(kUnitEpsilon));
  for (T& e : x) e = e / length * T(times);
  return x;
}

/// The entries of keys of a stream with two of them beside `channels` others.
std::size_t keys_beside(std::size_t width, std::size_t channels) {
  return width > channels + 2 ? (width - channels) / 2 : 1;
}

/// Channel by channel, each with a state of so many entries that begins with zeros:
/// one(state, token, channel).
template <class T, class One>
Vector<T> by_channel(ResultSize size, std::size_t entries, const One& one) {
  Vector<T> out(size.tokens * size.channels);
  for (std::size_t c = 0; c < size.channels; ++c) {
    Vector<T> state(entries, T(0));
    for (std::size_t t = 0; t < size.tokens; ++t) out[t * size.channels + c] = one(state, t, c);
  }
  return out;
}

template <class T>
Vector<T> convolved(const Vector<Vector<T>>& x, ResultSize size) {
  const TokenRows<T> stream(x[0], size.tokens);
  const std::size_t taps = std::max<std::size_t>(1, x[1].size() / size.channels);
  return by_channel<T>(size, 0, [&](const Vector<T>&, std::size_t t, std::size_t c) {
    T sum = x.size() > 2 ? entry_of(x[2], c) : T(0);
    const std::size_t before = t + 1 < taps ? taps - t - 1 : 0;  // the first token
    for (std::size_t k = before; k < taps; ++k) {
      sum = sum + entry_of(x[1], c * taps + k) * stream.at(t + k + 1 - taps, c);
    }
    return sum;
  });
}

template <class T>
Vector<T> selective_scan(const Vector<Vector<T>>& x, ResultSize size) {
  const TokenRows<T> values(x[0], size.tokens);
  const TokenRows<T> times(x[1], size.tokens);
  const TokenRows<T> keys(x[2], size.tokens);
  const TokenRows<T> queries(x[3], size.tokens);
  const std::size_t entries = keys.width();
  return by_channel<T>(size, entries, [&](Vector<T>& state, std::size_t t, std::size_t c) {
    const T time = softplus_of(times.at(t, c));
    TokenStep<T> token{
        .decay = {}, .key = keys.part(t, 0, entries), .query = queries.part(t, 0, entries)};
    for (std::size_t n = 0; n < entries; ++n) {
      token.decay.push_back(decay_of(entry_of(x[4], c * entries + n), time));
    }
    const T& value = values.at(t, c);
    return step(state, token, T(time * value)) + entry_of(x[5], c) * value;
  });
}

template <class T>
Vector<T> head_scan(const Vector<Vector<T>>& x, ResultSize size) {
  const TokenRows<T> mixed(x[0], size.tokens);
  const TokenRows<T> times(x[1], size.tokens);
  const std::size_t heads = times.width();
  const std::size_t entries = keys_beside(mixed.width(), size.channels);
  return by_channel<T>(size, entries, [&](Vector<T>& state, std::size_t t, std::size_t c) {
    const std::size_t head = c * heads / size.channels;
    const T time = softplus_of(times.at(t, head) + entry_of(x[2], head));
    const TokenStep<T> token{.decay = {decay_of(entry_of(x[3], head), time)},
                             .key = mixed.part(t, size.channels, entries),
                             .query = mixed.part(t, size.channels + entries, entries)};
    const T& value = mixed.at(t, c);
    return step(state, token, T(time * value)) + entry_of(x[4], head) * value;
  });
}

/// Queries and keys of unit length, those of queries over the root of their size.
template <class T>
TokenStep<T> unit_step(Vector<T> query, Vector<T> key) {
  const double scale = 1 / std::sqrt(static_cast<double>(query.size()));
  return {.decay = {},
          .key = unit_vector(std::move(key), 1),
          .query = unit_vector(std::move(query), scale)};
}

/// Strengths and decays come as two streams, or side by side in one.
template <class T>
Vector<T> delta_rule(const Vector<Vector<T>>& x, ResultSize size) {
  const bool apart = x.size() > 4;
  const TokenRows<T> mixed(x[0], size.tokens);
  const TokenRows<T> strengths(x[1], size.tokens);
  const TokenRows<T> times(x[apart ? 2 : 1], size.tokens);
  const Vector<T>& bias = x[x.size() - 2];
  const std::size_t heads = bias.size();
  const std::size_t entries = keys_beside(mixed.width(), size.channels);
  return by_channel<T>(size, entries, [&](Vector<T>& state, std::size_t t, std::size_t c) {
    const std::size_t head = c * heads / size.channels;
    TokenStep<T> token = unit_step(mixed.part(t, 0, entries), mixed.part(t, entries, entries));
    const T& time = times.at(t, apart ? head : heads + head);
    token.decay = {decay_of(entry_of(x.back(), head), softplus_of(time + bias[head]))};
    return step(state, token, mixed.at(t, 2 * entries + c), StateUpdate::corrects,
                sigmoid_of(strengths.at(t, head)));
  });
}

template <class T>
Vector<T> channel_delta_rule(const Vector<Vector<T>>& x, ResultSize size) {
  const TokenRows<T> queries(x[0], size.tokens);
  const TokenRows<T> keys(x[1], size.tokens);
  const TokenRows<T> values(x[2], size.tokens);
  const TokenRows<T> times(x[3], size.tokens);
  const TokenRows<T> strengths(x[4], size.tokens);
  const std::size_t entries = keys.width();
  return by_channel<T>(size, entries, [&](Vector<T>& state, std::size_t t, std::size_t c) {
    TokenStep<T> token = unit_step(queries.part(t, 0, entries), keys.part(t, 0, entries));
    for (std::size_t n = 0; n < entries; ++n) {
      const T time = softplus_of(times.at(t, n) + entry_of(x[5], n));
      token.decay.push_back(decay_of(x[6][0], time));
    }
    return step(state, token, values.at(t, c), StateUpdate::corrects,
                sigmoid_of(strengths.at(t, 0)));
  });
}

template <class T>
Vector<T> linear_attention(const MeantFunction& f, const Vector<Vector<T>>& x, ResultSize size,
                           std::int64_t head) {
  const auto heads = static_cast<double>(std::max<std::int64_t>(1, f.number));
  const double rate = power_of(2, -8 * static_cast<double>(head + 1) / heads);
  Vector<T> activated;
  for (const T& e : x[0]) activated.push_back(silu_of(e));
  const TokenRows<T> mixed(activated, size.tokens);
  const std::size_t entries = keys_beside(mixed.width(), size.channels);
  return by_channel<T>(size, entries, [&](Vector<T>& state, std::size_t t, std::size_t c) {
    const TokenStep<T> token{.decay = {T(exp_of(-rate))},
                             .key = mixed.part(t, entries, entries),
                             .query = mixed.part(t, 0, entries)};
    return step(state, token, mixed.at(t, 2 * entries + c));
  });
}

}  // namespace

bool is_recurrence(Function function) {
  return function == Function::convolution || function == Function::selective_scan ||
         function == Function::head_scan || function == Function::delta_rule ||
         function == Function::channel_delta_rule || function == Function::linear_attention;
}

template <class T>
std::vector<T> recurrence_value(const MeantFunction& f, const std::vector<std::vector<T>>& x,
                                const FunctionPlace& place) {
  const ResultSize size = size_of_result(place);
  if (f.function == Function::convolution) return convolved(x, size);
  if (f.function == Function::selective_scan) return selective_scan(x, size);
  if (f.function == Function::head_scan) return head_scan(x, size);
  if (f.function == Function::delta_rule) return delta_rule(x, size);
  if (f.function == Function::channel_delta_rule) return channel_delta_rule(x, size);
  ensure(f.function == Function::linear_attention, "a recurrence is known");
  return linear_attention(f, x, size, place.positions[0]);
}

template std::vector<double> recurrence_value(const MeantFunction&,
                                              const std::vector<std::vector<double>>&,
                                              const FunctionPlace&);
template std::vector<Dual> recurrence_value(const MeantFunction&,
                                            const std::vector<std::vector<Dual>>&,
                                            const FunctionPlace&);

}  // namespace placet::execute
