#include "report/human.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

namespace placet {
namespace {

struct Scaled {
  double value = 0;
  std::size_t unit = 0;
};

// Three significant digits, after rounding: 999.6 is 1000 and goes to the next unit.
Scaled scale(double value, std::size_t units) {
  Scaled scaled{value, 0};
  while (scaled.value >= 999.5 && scaled.unit + 1 < units) {
    scaled.value /= 1000;
    ++scaled.unit;
  }
  return scaled;
}

std::string three_digits(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  if (value >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string with_unit(double value, std::span<const char* const> units) {
  const Scaled scaled = scale(value, units.size());
  if (scaled.unit == 0 && value == std::floor(value))
    return fmt::format("{:.0f} {}", value, units[0]);
  return three_digits(scaled.value) + " " + units[scaled.unit];
}

}  // namespace

std::string human_bytes(Bytes amount) {
  constexpr std::array units = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  if (amount < Bytes()) return "-" + human_bytes(Bytes() - amount);
  return with_unit(static_cast<double>(in_bytes(amount)), units);
}

std::string human_gibibytes(Bytes amount) {
  return fmt::format("{:.1f} GiB", in_gibibytes(amount));
}

std::string human_count(std::int64_t n) {
  constexpr std::array units = {"", "K", "M", "B", "T", "Q"};
  std::string text = with_unit(static_cast<double>(n), units);
  if (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string human_flops(double flops) {
  constexpr std::array units = {"FLOP",  "KFLOP", "MFLOP", "GFLOP",
                                "TFLOP", "PFLOP", "EFLOP", "ZFLOP"};
  return with_unit(flops, units);
}

std::string grouped(std::int64_t n) {
  std::string digits = std::to_string(n < 0 ? -n : n);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return n < 0 ? "-" + digits : digits;
}

std::string human_ratio(Bytes value, Bytes base) {
  if (base == Bytes()) return value == Bytes() ? "1x" : "-";
  return three_digits(value / base) + "x";
}

std::string human_rate(BytesPerSecond rate) {
  constexpr std::array units = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  return with_unit(in_bytes_per_second(rate), units);
}

std::string spaced(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    if (c == '_' || c == '-') c = ' ';
  }
  return text;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
    columns += continues ? 0 : 1;
  }
  return columns;
}

std::string utilisation_text(double part) {
  return part > 0 ? fmt::format("{:.1f} %", part * 100) : "-";
}

}  // namespace placet
