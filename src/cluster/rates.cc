#include "cluster/rates.h"

#include <algorithm>
#include <cmath>

namespace placet {

double value_at(const Curve& curve, double x) {
  if (curve.points.empty()) return 0;
  if (x <= curve.points.front().x) return curve.points.front().y;
  if (x >= curve.points.back().x) return curve.points.back().y;
  const auto right = std::ranges::upper_bound(curve.points, x, {}, &Curve::Point::x);
  const auto left = right - 1;
  const double part = std::log2(x / left->x) / std::log2(right->x / left->x);
  return left->y + part * (right->y - left->y);
}

std::string_view name_of(MatmulFormat format) {
  switch (format) {
    case MatmulFormat::bf16:
      return "bf16";
    case MatmulFormat::fp16:
      return "fp16";
    case MatmulFormat::fp8:
      return "fp8";
    case MatmulFormat::fp4:
      return "fp4";
    case MatmulFormat::fp32:
      return "fp32";
  }
  return "";
}

FlopsPerSecond matmul_rate(const DeviceRates& rates, MatmulFormat format) {
  const auto of = [&](MatmulFormat f) { return rates.matmul[static_cast<std::size_t>(f)]; };
  if (of(format) > FlopsPerSecond()) return of(format);
  switch (format) {
    case MatmulFormat::fp4:
      return matmul_rate(rates, MatmulFormat::fp8);
    case MatmulFormat::fp8:
      return matmul_rate(rates, MatmulFormat::bf16);
    case MatmulFormat::bf16:
      return of(MatmulFormat::fp16);
    case MatmulFormat::fp16:
      return of(MatmulFormat::bf16);
    case MatmulFormat::fp32:
      // Without a figure of its own: a sixteenth of the half formats' rate.
      return matmul_rate(rates, MatmulFormat::bf16) / 16.0;
  }
  return {};
}

const AttentionRates* attention_rates(const DeviceRates& rates, std::string_view kernel) {
  const auto found = std::ranges::find(rates.attention, kernel, &AttentionRates::kernel);
  return found == rates.attention.end() ? nullptr : &*found;
}

double attention_tflops(const AttentionRates& rates, std::int64_t size, std::int64_t length,
                        bool backward) {
  if (rates.heads.empty()) return 0;
  auto head = std::ranges::lower_bound(rates.heads, size, {}, &AttentionRates::Head::size);
  if (head == rates.heads.end()) --head;
  const double filled = std::min(1.0, static_cast<double>(size) / static_cast<double>(head->size));
  const Curve& curve = backward ? head->backward : head->forward;
  return filled * value_at(curve, static_cast<double>(length));
}

}  // namespace placet
