// Number formats of stored values, and the bytes they take (docs/theory.md §1).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "units/quantity.h"

namespace placet {

/// Format of a stored number. `nf4` is the 4-bit block format of QLoRA (its block constants are
/// facts of data/formats, not part of the 4 bits).
enum class Dtype : std::uint8_t {
  fp32,
  bf16,
  fp16,
  fp8,
  int64,
  int32,
  int8,
  uint8,
  nf4,
  fp4,
  fp64,
  int4
};

/// Bits one element takes: fp32 32, bf16 and fp16 16, fp8, int8 and uint8 8, int64 64, int32 32,
/// nf4, fp4 and int4 4, fp64 64.
constexpr std::int64_t bits_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::int64:
    case Dtype::fp64:
      return 64;
    case Dtype::fp32:
    case Dtype::int32:
      return 32;
    case Dtype::bf16:
    case Dtype::fp16:
      return 16;
    case Dtype::fp8:
    case Dtype::int8:
    case Dtype::uint8:
      return 8;
    case Dtype::nf4:
    case Dtype::fp4:
    case Dtype::int4:
      return 4;
  }
  return 0;
}

/// Constants of a block format, kept beside its numbers: one per so many of them.
struct BlockConstants {
  Dtype dtype = Dtype::fp32;
  std::int64_t elements = 1;

  friend bool operator==(const BlockConstants&, const BlockConstants&) = default;
};

/// A format at rest: numbers, and the constants of their blocks (data/formats).
struct StorageFormat {
  Dtype dtype = Dtype::bf16;
  std::vector<BlockConstants> constants = {};

  friend bool operator==(const StorageFormat&, const StorageFormat&) = default;
};

/// Bytes of the constants that `elements` numbers in blocks have; a last block may be short.
/// Case: 100 numbers, one fp32 constant per 64: 8 bytes.
Bytes bytes_of(std::int64_t elements, const std::vector<BlockConstants>& constants);

/// Bytes of `elements` numbers stored one after the other, the last byte filled up.
/// Case: 3 elements of nf4 take 2 bytes. Throws std::overflow_error past 2^63.
Bytes bytes_of(std::int64_t elements, Dtype dtype);

/// Spelling used in data files and reports: "bf16".
std::string_view name_of(Dtype dtype);

/// The format spelled `name` ("bf16", also the long spellings "bfloat16", "float32", ...).
std::optional<Dtype> dtype_named(std::string_view name);

}  // namespace placet
