#include "units/quantity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <type_traits>

#include "units/error.h"

namespace placet {
namespace {

// One word each, so that passing by value is free.
static_assert(std::is_trivially_copyable_v<Bytes> && sizeof(Bytes) == 8);
static_assert(std::is_trivially_copyable_v<Flops> && sizeof(Flops) == 8);

// What must not compile.
template <class A, class B>
concept AddsUp = requires(A a, B b) { a + b; };
template <class A, class B>
concept Subtracts = requires(A a, B b) { a - b; };
template <class A, class B>
concept Multiplies = requires(A a, B b) { (a * b); };
template <class A, class B>
concept Divides = requires(A a, B b) { a / b; };
template <class A, class B>
concept Compares = requires(A a, B b) { a < b; };
template <class A, class B>
concept Equates = requires(A a, B b) { a == b; };
template <class N>
concept CountsBytes = requires(N n) { gigabytes(n); };

template <class A, class B>
constexpr bool kStrangers =
    !AddsUp<A, B> && !Subtracts<A, B> && !Compares<A, B> && !Equates<A, B> &&
    !std::is_convertible_v<A, B> && !std::is_convertible_v<B, A>;

static_assert(kStrangers<Bytes, Count> && kStrangers<Bytes, Flops> && kStrangers<Bytes, Seconds>);
static_assert(kStrangers<Count, Flops> && kStrangers<Count, Seconds> && kStrangers<Flops, Seconds>);
static_assert(kStrangers<Bytes, BytesPerSecond> && kStrangers<Flops, FlopsPerSecond>);
static_assert(kStrangers<BytesPerSecond, FlopsPerSecond> && kStrangers<Seconds, BytesPerSecond>);
static_assert(kStrangers<Bytes, int> && kStrangers<Count, std::int64_t>);
static_assert(kStrangers<Seconds, double> && kStrangers<Flops, double>);

static_assert(AddsUp<Bytes, Bytes> && Compares<Seconds, Seconds>, "the concepts themselves work");

static_assert(!Multiplies<Bytes, Bytes> && !Multiplies<Count, Count>, "no squares");
static_assert(!Multiplies<Seconds, Seconds> && !Multiplies<Flops, Flops>);
static_assert(!Multiplies<Bytes, double>, "half a byte does not exist");
static_assert(!Divides<Bytes, int> && !Divides<Count, int>, "division is the business of shares");
static_assert(!Divides<Bytes, Flops> && !Divides<Flops, Bytes> && !Divides<Flops, BytesPerSecond>);
static_assert(!Divides<int, Seconds> && !Divides<double, Flops>);
static_assert(!Multiplies<Bytes, BytesPerSecond> && !Multiplies<Flops, Bytes>);

static_assert(CountsBytes<int> && CountsBytes<std::int64_t> && CountsBytes<std::size_t>);
static_assert(!CountsBytes<double>, "a fraction of a gigabyte must be rounded in the open");

// What must come out, known while compiling.
static_assert(gibibytes(80) == bytes(85'899'345'920));  // 80 * 2^30
static_assert(terabytes(1) == gigabytes(1000) && gigabytes(1) == megabytes(1000));
static_assert(tebibytes(1) == gibibytes(1024) && gibibytes(1) == mebibytes(1024));
static_assert(megabytes(1) == kilobytes(1000) && mebibytes(1) == kibibytes(1024));
static_assert(bytes(2) * count(7) == bytes(14) && count(7) * bytes(2) == bytes(14));
static_assert(3 * bytes(5) - bytes(1) == bytes(14));
static_assert(gibibytes(3) / gibibytes(2) == 1.5);
static_assert(Bytes() == bytes(0) && Seconds() == seconds(0));

TEST(BytesTest, AdamStatesOfSeventyBillionParameters) {
  // 2 bytes of parameters, 2 of gradients, 12 of optimizer: 16 * 70e9 = 1120e9.
  const Count parameters = count(70'000'000'000);
  EXPECT_EQ(bytes(2 + 2 + 12) * parameters, gigabytes(1120));
  EXPECT_DOUBLE_EQ(in_gigabytes(bytes(16) * parameters), 1120.0);
}

TEST(BytesTest, NeverWrap) {
  const Bytes most = bytes(std::numeric_limits<std::int64_t>::max());
  EXPECT_THROW(most + bytes(1), InputError);
  EXPECT_THROW(bytes(0) - most - bytes(2), InputError);
  EXPECT_THROW(most * 2, InputError);
  EXPECT_THROW(most * count(2), InputError);
  EXPECT_THROW(tebibytes(std::int64_t{1} << 23), InputError);  // 2^40 * 2^23 = 2^63
  EXPECT_THROW(bytes(std::numeric_limits<std::uint64_t>::max()), InputError);
  EXPECT_EQ(most - bytes(1) + bytes(1), most);
}

TEST(BytesTest, TheErrorNamesTheQuantity) {
  try {
    (void)(count(std::numeric_limits<std::int64_t>::max()) + count(1));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "count: a sum of this job is too large; expected sizes whose totals stay below "
                 "2^63");
  }
}

TEST(BytesTest, RoundUpFromRealNumbers) {
  EXPECT_EQ(round_up_to_bytes(10.0), bytes(10));
  EXPECT_EQ(round_up_to_bytes(10.25), bytes(11));
  EXPECT_THROW(round_up_to_bytes(std::nan("")), InputError);
  EXPECT_THROW(round_up_to_bytes(1e19), InputError);
}

TEST(FlopsTest, HoldAStepThatNoIntegerHolds) {
  // 6 * 1e12 parameters * 16e6 tokens = 9.6e19 > 2^63 = 9.22e18.
  const Flops step = flops(6) * count(1'000'000'000'000) * count(16'000'000);
  EXPECT_DOUBLE_EQ(in_flops(step), 9.6e19);
}

TEST(SecondsTest, AreAmountsOverRates) {
  // 100 GB at 400 Gbit/s = 50 GB/s take 2 s.
  EXPECT_DOUBLE_EQ(in_seconds(gigabytes(100) / gigabits_per_second(400)), 2.0);
  // 1978 TFLOP at 989 TFLOP/s take 2 s.
  EXPECT_DOUBLE_EQ(in_seconds(teraflops(1978) / teraflops_per_second(989)), 2.0);
  // 10 launches of 5 us.
  EXPECT_DOUBLE_EQ(in_milliseconds(microseconds(5) * count(10)), 0.05);
}

TEST(RateTest, IsAmountOverTime) {
  EXPECT_DOUBLE_EQ(in_bytes_per_second(gigabytes(10) / seconds(4)), 2.5e9);
  EXPECT_DOUBLE_EQ(in_flops_per_second(gigaflops(10) / milliseconds(1)), 1e13);
}

TEST(QuantityTest, PrintsItsUnit) {
  std::ostringstream out;
  out << kibibytes(1) << ", " << seconds(0.1) << ", " << flops(6e20) << ", " << count(-3);
  EXPECT_EQ(out.str(), "1024 bytes, 0.1 seconds, 6e+20 FLOPs, -3 count");
}

}  // namespace
}  // namespace placet
