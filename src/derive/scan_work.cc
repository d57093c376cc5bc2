#include "derive/scan_work.h"

namespace placet {
namespace {

constexpr double kStateBytes = 12;
constexpr double kStateBytesBackward = 34;
constexpr double kChannelBytes = 3 * 2;
constexpr double kChannelBytesBackward = 11 * 2;

}  // namespace

double scan_flops(const ScanShape& shape, bool backward) {
  const auto p = static_cast<double>(shape.head_size);
  const auto n = static_cast<double>(shape.state);
  const auto q = static_cast<double>(shape.chunk);
  const auto tokens = static_cast<double>(shape.tokens);
  const double per_head = backward ? 10 * p * n + 3 * q * p : 4 * p * n + q * p;
  const double per_group = backward ? 6 * q * n : 2 * q * n;
  return tokens * (static_cast<double>(shape.heads) * per_head +
                   static_cast<double>(shape.groups) * per_group);
}

double scan_bytes(const ScanShape& shape, bool backward) {
  const double states =
      shape.channels() * static_cast<double>(shape.state) / static_cast<double>(shape.chunk);
  return states * (backward ? kStateBytesBackward : kStateBytes) +
         shape.channels() * (backward ? kChannelBytesBackward : kChannelBytes);
}

}  // namespace placet
