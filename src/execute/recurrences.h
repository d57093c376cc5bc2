// Convolutions and recurrences over the tokens of one sample, for one piece of the channels
// (docs/theory.md §6.11). At a model's own sizes they are those of the papers named below; places
// in vectors count on from the beginning at their end, so that all are defined at other sizes too.
#pragma once

#include <vector>

#include "execute/elementary.h"
#include "execute/meanings.h"

namespace placet::execute {

/// Whether the function is one of those below.
bool is_recurrence(Function function);

/// Numbers of the result, channels of a token side by side. The function's own dims
/// (`place.given`) are tokens, then channels; without channels there is one.
///
///   convolution(x, w[, b]): y_t = b + sum over k of w_k x_(t - K + 1 + k), K taps.
///   selective_scan(x, d, B, C, L, D): the state h has an entry for each of B;
///     h_n <- exp(-exp(L_n) s) h_n + s B_n x, s = softplus(d); y = sum over n of C_n h_n + D x
///     (Gu, Dao, arXiv 2312.00752, algorithm 2).
///   head_scan(z, d, b, L, D): z is x, B and C side by side; for each channel x of a head
///     h_n <- exp(-exp(L) s) h_n + s B_n x, s = softplus(d + b); y = sum of C_n h_n + D x
///     (Dao, Gu, arXiv 2405.21060, section 7).
///   delta_rule(z, r, a, b, L) or (z, ra, b, L): z is q, k and v side by side, a and r (ra: r, then
///     a) a number per head; with unit q / sqrt(K) and unit k, for each channel v of a head
///     h <- exp(-exp(L) softplus(a + b)) h; h <- h + k sigmoid(r) (v - k.h); y = q.h
///     (Yang, Kautz, Hatamizadeh, arXiv 2412.06464, section 3.1).
///   channel_delta_rule(q, k, v, a, r, b, L): likewise, with an a and a b for each entry of k
///     (Kimi team, arXiv 2510.26692, section 3).
///   linear_attention.H(z; at head): z is q, k and v side by side, all through silu;
///     h <- exp(-2^(-8 (head + 1) / H)) h + k v; y = q.h (Qin et al., arXiv 2401.04658, section 3;
///     rates: Press, Smith, Lewis, arXiv 2108.12409, section 3).
template <class T>
std::vector<T> recurrence_value(const MeantFunction& f, const std::vector<std::vector<T>>& x,
                                const FunctionPlace& place);

extern template std::vector<double> recurrence_value(const MeantFunction&,
                                                     const std::vector<std::vector<double>>&,
                                                     const FunctionPlace&);
extern template std::vector<Dual> recurrence_value(const MeantFunction&,
                                                   const std::vector<std::vector<Dual>>&,
                                                   const FunctionPlace&);

}  // namespace placet::execute
