// What a device and a link really reach, apart from their peaks (docs/theory.md §7). All figures
// come from data files with their sources; where a file is silent, the reader says what stands in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "units/quantity.h"

namespace placet {

/// A measured curve: y at x, linear in log2 x between its points, constant beyond its ends.
struct Curve {
  struct Point {
    double x = 0;
    double y = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };
  std::vector<Point> points;  // x rising

  friend bool operator==(const Curve&, const Curve&) = default;
};

/// Case: points (1, 10), (4, 30): 20 at 2, 10 at 0.5, 30 at 100. 0 without points.
double value_at(const Curve& curve, double x);

/// Formats of matrix products.
enum class MatmulFormat : std::uint8_t { bf16, fp16, fp8, fp4, fp32 };
inline constexpr int kMatmulFormatCount = 5;
std::string_view name_of(MatmulFormat format);

/// One way of a matrix library to cut a product: an output tile per multiprocessor.
struct MatmulTile {
  std::int64_t rows = 128;
  std::int64_t columns = 256;
  double efficiency = 1;  // of the sustained rate, while the tile's main loop runs
  friend bool operator==(const MatmulTile&, const MatmulTile&) = default;
};

/// What an attention kernel reaches, by head size: FLOP/s over the length of the sequence, where a
/// causal kernel's work is what lies below the diagonal.
struct AttentionRates {
  struct Head {
    std::int64_t size = 128;
    Curve forward;   // TFLOP/s
    Curve backward;  // TFLOP/s, of 2.5 times the forward's work
    friend bool operator==(const Head&, const Head&) = default;
  };
  std::string kernel;       // "flash-2"
  std::vector<Head> heads;  // sizes rising
  friend bool operator==(const AttentionRates&, const AttentionRates&) = default;
};

struct DeviceRates {
  std::int64_t multiprocessors = 1;
  /// Matrix products of ideal shape, by format; 0 where the device cannot compute in it.
  std::array<FlopsPerSecond, kMatmulFormatCount> matmul{};
  std::vector<MatmulTile> tiles;
  double unaligned = 1;   // of the rate, products whose rows begin at odd elements
  double fill_depth = 0;  // prologue and epilogue of a tile, as so much more depth
  /// A product's results are written while it computes the next tile: what else it reads and writes
  /// there takes time only beside the arithmetic.
  bool overlaps_epilogue = false;
  BytesPerSecond memory{};   // what streaming kernels reach
  Seconds kernel{};          // shortest time that a kernel occupies the device
  double message_share = 0;  // of the multiprocessors, while a collective runs beside
  std::vector<AttentionRates> attention;

  friend bool operator==(const DeviceRates&, const DeviceRates&) = default;
};

/// Rate of a matrix format; where the device lacks it, of the next wider one it has.
FlopsPerSecond matmul_rate(const DeviceRates& rates, MatmulFormat format);

/// The rates of a kernel by name; none if the device has no figures of it.
const AttentionRates* attention_rates(const DeviceRates& rates, std::string_view kernel);

/// FLOP/s of an attention kernel on heads of `size` over `length` tokens: between known sizes those
/// of the next larger one (kernels pad a head to it), scaled by size / that size.
/// Case: known 64 and 128; size 96: the figure of 128 times 96/128.
double attention_tflops(const AttentionRates& rates, std::int64_t size, std::int64_t length,
                        bool backward);

/// Bus bandwidth of a collective among `group` devices over its payload in bytes: GB/s.
struct BusCurve {
  std::int64_t group = 2;
  Curve gigabytes_per_second;
  friend bool operator==(const BusCurve&, const BusCurve&) = default;
};

}  // namespace placet
