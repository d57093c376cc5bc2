#include "model/dtype.h"

#include <array>
#include <string_view>
#include <utility>

#include "units/checked.h"
#include "units/error.h"
#include "units/shares.h"

namespace placet {
namespace {

using Spelling = std::pair<std::string_view, Dtype>;

// The first spelling of a format is the one printed.
constexpr std::array<Spelling, 22> kSpellings{{
    {"fp32", Dtype::fp32},     {"bf16", Dtype::bf16},         {"fp16", Dtype::fp16},
    {"fp8", Dtype::fp8},       {"int64", Dtype::int64},       {"int32", Dtype::int32},
    {"int8", Dtype::int8},     {"uint8", Dtype::uint8},       {"nf4", Dtype::nf4},
    {"fp4", Dtype::fp4},       {"float32", Dtype::fp32},      {"float", Dtype::fp32},
    {"bfloat16", Dtype::bf16}, {"float16", Dtype::fp16},      {"half", Dtype::fp16},
    {"float8", Dtype::fp8},    {"float8_e4m3fn", Dtype::fp8}, {"long", Dtype::int64},
    {"int", Dtype::int32},     {"fp64", Dtype::fp64},         {"int4", Dtype::int4},
    {"float64", Dtype::fp64},
}};

}  // namespace

Bytes bytes_of(std::int64_t elements, Dtype dtype) {
  ensure(elements >= 0, "a number of elements is not negative");
  const std::int64_t bits = bits_of(dtype);
  // Whole groups of eight elements take `bits` bytes each, so nothing needs more than 64 bits.
  const std::int64_t rest = ((elements % 8) * bits + 7) / 8;
  return bytes(checked_add(checked_multiply(elements / 8, bits, "bytes"), rest, "bytes"));
}

Bytes bytes_of(std::int64_t elements, const std::vector<BlockConstants>& constants) {
  Bytes sum;
  for (const BlockConstants& each : constants) {
    sum += bytes_of(largest_share(elements, each.elements), each.dtype);
  }
  return sum;
}

std::string_view name_of(Dtype dtype) {
  for (const auto& [name, value] : kSpellings) {
    if (value == dtype) return name;
  }
  fail_internally("every format has a spelling");
}

std::optional<Dtype> dtype_named(std::string_view name) {
  for (const auto& [spelling, value] : kSpellings) {
    if (spelling == name) return value;
  }
  return std::nullopt;
}

}  // namespace placet
