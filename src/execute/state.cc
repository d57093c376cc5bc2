#include "execute/state.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "execute/machine.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

constexpr std::int64_t kWordBytes = 8;
constexpr std::int64_t kHalfBytes = 2;

void put_word(std::uint64_t word, std::int64_t bytes, std::vector<std::byte>& to) {
  for (std::int64_t k = 0; k < bytes; ++k) {
    to.push_back(static_cast<std::byte>(word >> static_cast<unsigned>(8 * k) & 0xffU));
  }
}

std::uint64_t word_at(const std::vector<std::byte>& from, std::int64_t place, std::int64_t bytes) {
  std::uint64_t word = 0;
  for (std::int64_t k = bytes; k-- > 0;) {
    word = word << 8U | std::to_integer<std::uint64_t>(from[at(place + k)]);
  }
  return word;
}

constexpr int kHalfMantissa = 10;
constexpr int kHalfBias = 15;
constexpr unsigned kHalfSign = 0x8000;
constexpr unsigned kHalfInfinite = 0x7c00;

/// The bits of a number that fp16 has.
std::uint64_t half_bits(double x) {
  const unsigned sign = std::signbit(x) ? kHalfSign : 0;
  if (std::isnan(x)) return sign | kHalfInfinite | 1U;
  if (std::isinf(x)) return sign | kHalfInfinite;
  if (x == 0) return sign;
  const int exponent = std::max(std::ilogb(x), 1 - kHalfBias);
  const auto scaled = static_cast<unsigned>(std::ldexp(std::fabs(x), kHalfMantissa - exponent));
  // Of subnormal numbers the leading bit is missing, and with it the exponent is one less.
  const auto biased = static_cast<unsigned>(exponent + kHalfBias - 1);
  return sign | ((biased << kHalfMantissa) + scaled);
}

double half_from(std::uint64_t bits) {
  const auto magnitude = static_cast<int>(bits & 0x7fffU);
  const double sign = (bits & kHalfSign) != 0 ? -1 : 1;
  const int exponent = magnitude >> kHalfMantissa;
  const int mantissa = magnitude & ((1 << kHalfMantissa) - 1);
  if (magnitude >= static_cast<int>(kHalfInfinite)) return mantissa == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - kHalfBias - kHalfMantissa);
  return sign * std::ldexp(mantissa + (1 << kHalfMantissa), exponent - kHalfBias - kHalfMantissa);
}

/// The bits of a number that bf16 has: the upper half of binary32, where a NaN stays one.
std::uint64_t brain_bits(float x) {
  constexpr std::uint64_t kBrainNan = 0x7fc0;
  return std::isnan(x) ? kBrainNan : std::bit_cast<std::uint32_t>(x) >> 16U;
}
float brain_from(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

[[noreturn]] void refuse_encoding() {
  throw InputError({.where = "state",
                    .problem = "holds numbers of another mode than that of the run",
                    .allowed = "the mode in which it was saved"});
}

bool all_are(const float* numbers, std::int64_t count, Dtype format) {
  return std::all_of(numbers, numbers + count, [&](float x) {
    const double wide = static_cast<double>(x);
    return std::isnan(x) || rounded_to(format, wide) == wide;
  });
}

StateSlice slice_of(const Program& program, const ranks::ProgramPlan& plan, const ranks::Mesh& mesh,
                    const ranks::Region& region) {
  const ranks::Listing& listing = *plan.listings[at(plan.classes[at(region.rank)])];
  const ranks::Form& form = listing.forms[at(region.buffer.form)];
  const BufferType& type = program.families[at(form.family)].type;
  ProgramCoordinates coordinates = mesh.at(region.rank);
  coordinates.back() = form.micro_batch;
  const ranks::LocalShape shape = ranks::shape_of(program, type, coordinates);
  const ranks::LocalPiece& local = shape.pieces.at(at(region.buffer.piece));
  StateSlice slice{.tensor = region.tensor->name,
                   .kind = region.kind,
                   .whole = region.tensor->extents,
                   .rank = region.rank,
                   .format = type.dtype,
                   .begins = local.begins,
                   .extents = local.extents,
                   .first = std::max(shape.flat.begin - local.row, std::int64_t{0})};
  for (const ranks::Run& run : region.runs) slice.count += run.length;
  return slice;
}

bool is_carried(const ranks::Region& region) {
  const StateRef::Kind kind = region.kind;
  return region.tensor != nullptr && !region.runs.empty() &&
         (kind == StateRef::Kind::parameter || kind == StateRef::Kind::state ||
          kind == StateRef::Kind::number);
}

}  // namespace

bool StateSlice::is_replica_of(const StateSlice& other) const {
  return tensor == other.tensor && format == other.format && begins == other.begins &&
         extents == other.extents && first == other.first && count == other.count;
}

std::int64_t bytes_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::fixed:
      return 2 * kWordBytes;
    case Encoding::long_fixed:
      return (2 + static_cast<std::int64_t>(kParts)) * kWordBytes;
    case Encoding::f64:
      return kWordBytes;
    case Encoding::f32:
      return sizeof(float);
    case Encoding::bf16:
    case Encoding::f16:
      return kHalfBytes;
  }
  fail_internally("every encoding has a length");
}

std::vector<PlacedSlice> placed_slices(const Program& program, const ranks::ProgramPlan& plan,
                                       const ranks::Mesh& mesh) {
  std::vector<PlacedSlice> all;
  for (const ranks::Region& region : plan.once) {
    if (!is_carried(region)) continue;
    all.push_back({.slice = slice_of(program, plan, mesh, region),
                   .address = region.runs.front().to,
                   .region = &region});
  }
  std::ranges::stable_sort(all, {}, [](const PlacedSlice& one) { return one.slice.rank; });
  return all;
}

EncodedSlice encoded(const Number* numbers, std::int64_t count, Dtype) {
  const bool is_short =
      std::all_of(numbers, numbers + count, [](const Number& x) { return x.is_short(); });
  EncodedSlice out{.encoding = is_short ? Encoding::fixed : Encoding::long_fixed};
  out.bytes.reserve(at(count * bytes_of(out.encoding)));
  for (const Number* x = numbers; x != numbers + count; ++x) {
    put_word(static_cast<std::uint64_t>(x->high), kWordBytes, out.bytes);
    put_word(static_cast<std::uint64_t>(x->high >> 64), kWordBytes, out.bytes);
    if (is_short) continue;
    for (const std::int64_t part : x->parts) {
      put_word(static_cast<std::uint64_t>(part), kWordBytes, out.bytes);
    }
  }
  return out;
}

EncodedSlice encoded(const float* numbers, std::int64_t count, Dtype format) {
  const bool is_half =
      (format == Dtype::bf16 || format == Dtype::fp16) && all_are(numbers, count, format);
  EncodedSlice out{.encoding = Encoding::f32};
  if (is_half) out.encoding = format == Dtype::bf16 ? Encoding::bf16 : Encoding::f16;
  const std::int64_t bytes = bytes_of(out.encoding);
  out.bytes.reserve(at(count * bytes));
  for (const float* x = numbers; x != numbers + count; ++x) {
    std::uint64_t bits = std::bit_cast<std::uint32_t>(*x);
    if (out.encoding == Encoding::bf16) bits = brain_bits(*x);
    if (out.encoding == Encoding::f16) bits = half_bits(static_cast<double>(*x));
    put_word(bits, bytes, out.bytes);
  }
  return out;
}

EncodedSlice encoded(const double* numbers, std::int64_t count, Dtype) {
  EncodedSlice out{.encoding = Encoding::f64};
  out.bytes.reserve(at(count * kWordBytes));
  for (const double* x = numbers; x != numbers + count; ++x) {
    put_word(std::bit_cast<std::uint64_t>(*x), kWordBytes, out.bytes);
  }
  return out;
}

void decode(const EncodedSlice& from, Number* to, std::int64_t count) {
  if (from.encoding != Encoding::fixed && from.encoding != Encoding::long_fixed) refuse_encoding();
  const std::int64_t bytes = bytes_of(from.encoding);
  const double most = std::ldexp(kMostNumber, kHighBits);
  for (std::int64_t k = 0; k < count; ++k) {
    Number x;
    const std::int64_t place = k * bytes;
    const auto upper = static_cast<Wide>(
        static_cast<std::int64_t>(word_at(from.bytes, place + kWordBytes, kWordBytes)));
    x.high = upper * (static_cast<Wide>(1) << 64) +
             static_cast<Wide>(word_at(from.bytes, place, kWordBytes));
    bool fits = std::fabs(static_cast<double>(x.high)) < most;
    for (std::size_t p = 0; p < kParts && from.encoding == Encoding::long_fixed; ++p) {
      const auto word =
          word_at(from.bytes, place + (2 + static_cast<std::int64_t>(p)) * kWordBytes, kWordBytes);
      fits = fits && word <= static_cast<std::uint64_t>(kPartMask);
      x.parts[p] = static_cast<std::int64_t>(word & static_cast<std::uint64_t>(kPartMask));
    }
    if (!fits) {
      throw InputError({.where = "state",
                        .value = "entry " + std::to_string(k) + " of a slice",
                        .problem = "is beyond the numbers of canonical mode",
                        .allowed = "below 2^46"});
    }
    to[k] = x;
  }
}

void decode(const EncodedSlice& from, float* to, std::int64_t count) {
  const std::int64_t bytes = bytes_of(from.encoding);
  for (std::int64_t k = 0; k < count; ++k) {
    const std::uint64_t bits = word_at(from.bytes, k * bytes, bytes);
    if (from.encoding == Encoding::f32) {
      to[k] = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    } else if (from.encoding == Encoding::bf16) {
      to[k] = brain_from(bits);
    } else if (from.encoding == Encoding::f16) {
      to[k] = static_cast<float>(half_from(bits));
    } else {
      refuse_encoding();
    }
  }
}

void decode(const EncodedSlice& from, double* to, std::int64_t count) {
  if (from.encoding != Encoding::f64) refuse_encoding();
  for (std::int64_t k = 0; k < count; ++k) {
    to[k] = std::bit_cast<double>(word_at(from.bytes, k * kWordBytes, kWordBytes));
  }
}

}  // namespace placet::execute
