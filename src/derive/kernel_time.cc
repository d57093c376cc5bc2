#include "derive/kernel_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace placet {
namespace {

constexpr std::array<std::int64_t, 4> kDepthCuts = {1, 2, 4, 8};
// A kernel that no figure exists of: flash kernels reach about so much of the products' rate.
constexpr double kAttentionShare = 0.5;
// The same of scans in chunks, forward and backward, about as on H100.
constexpr std::array<double, 2> kScanShares = {0.12, 0.027};
constexpr std::string_view kScanKernel = "chunked-scan";

double ceil_div(std::int64_t a, std::int64_t b) {
  const std::int64_t pieces = (a + b - 1) / b;
  return static_cast<double>(pieces);
}

/// Output tiles of a product.
double tiles_of(const ProductShape& s, const MatmulTile& tile) {
  return static_cast<double>(s.batch) * ceil_div(s.m, tile.rows) * ceil_div(s.n, tile.columns);
}

/// What a tile takes to begin and to end, as depth in this format: a time, which in fewer bits is
/// that of more depth.
double fill_of(const DeviceRates& rates, MatmulFormat format) {
  const double known = in_flops_per_second(matmul_rate(rates, MatmulFormat::bf16));
  if (known == 0) return rates.fill_depth;
  return rates.fill_depth * in_flops_per_second(matmul_rate(rates, format)) / known;
}

/// Seconds x rate of the whole device: FLOPs that the device could have done meanwhile, with so
/// many parts of tiles of so much depth.
double occupied(const DeviceRates& rates, const MatmulTile& tile, double parts, double depth) {
  const double units = static_cast<double>(rates.multiprocessors);
  const double waves = std::ceil(parts / units);
  const double tile_flops =
      2.0 * static_cast<double>(tile.rows) * static_cast<double>(tile.columns) * depth;
  return waves * tile_flops * units / tile.efficiency;
}

/// Parts of the depth are written in fp32, read and added.
double cut_bytes(const ProductShape& s, std::int64_t cut) {
  if (cut == 1) return 0;
  return 8.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n) *
         static_cast<double>(cut) / 2;
}

/// What a kernel with curves of its own reaches, or `share` of the products' rate where the device
/// has none.
FlopsPerSecond rate_of(const DeviceRates& rates, std::string_view library, const KernelWork& kernel,
                       double share) {
  const AttentionRates* known = attention_rates(rates, library);
  if (known == nullptr) return matmul_rate(rates, kernel.format) * share;
  return teraflops_per_second(
      attention_tflops(*known, kernel.head_size, kernel.length, kernel.backward));
}

Seconds scan_time(const DeviceRates& rates, const KernelWork& kernel) {
  const double share = kScanShares.at(kernel.backward ? 1 : 0);
  return flops(kernel.flops) / rate_of(rates, kScanKernel, kernel, share);
}

}  // namespace

double message_share(const Cluster& cluster, const GroupSet& devices) {
  return most_of(cluster, devices,
                 [](const DeviceGroup& group) { return group.device.rates.message_share; });
}

Seconds product_time(const DeviceRates& rates, const KernelWork& kernel) {
  const FlopsPerSecond rate = matmul_rate(rates, kernel.format);
  const double fill = fill_of(rates, kernel.format);
  const Seconds moved = seconds(kernel.bytes / in_bytes_per_second(rates.memory));
  Seconds best = seconds(1e30);
  for (const MatmulTile& tile : rates.tiles) {
    const double tiles = tiles_of(kernel.shape, tile);
    for (const std::int64_t cut : kDepthCuts) {
      if (cut > 1 && kernel.shape.k / cut < 512) break;
      const Seconds added =
          seconds(cut_bytes(kernel.shape, cut) / in_bytes_per_second(rates.memory));
      const double depth = ceil_div(kernel.shape.k, cut) + fill;
      const double parts = tiles * static_cast<double>(cut);
      best = std::min(best, flops(occupied(rates, tile, parts, depth)) / rate + added);
    }
  }
  if (!kernel.aligned) best = best / rates.unaligned;
  const Seconds sums = seconds(kernel.added_bytes / in_bytes_per_second(rates.memory));
  if (rates.overlaps_epilogue) return std::max({best, moved + sums, rates.kernel});
  return std::max({best, moved, rates.kernel}) + sums;
}

Seconds kernel_time(const DeviceRates& rates, const std::string& attention_kernel,
                    const KernelWork& kernel) {
  const Seconds moved = seconds(kernel.bytes / in_bytes_per_second(rates.memory));
  switch (kernel.kind) {
    case KernelWork::Kind::product:
      return product_time(rates, kernel);
    case KernelWork::Kind::attention: {
      const FlopsPerSecond rate = rate_of(rates, attention_kernel, kernel, kAttentionShare);
      return std::max({flops(kernel.flops) / rate, moved, rates.kernel});
    }
    case KernelWork::Kind::stream:
    case KernelWork::Kind::dequantise:
      if (kernel.scan) return std::max(scan_time(rates, kernel), moved);
      return kernel.launches == 0 ? moved : std::max(moved, rates.kernel);
  }
  return {};
}

}  // namespace placet
