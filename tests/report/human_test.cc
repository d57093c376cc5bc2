#include "report/human.h"

#include <gtest/gtest.h>

namespace placet {
namespace {

// The ZeRO paper's table for 7.5e9 parameters on 64 devices: 120, 31.4, 16.6 and 1.88 GB.
TEST(HumanBytesTest, ThreeDigitsOfDecimalUnits) {
  EXPECT_EQ(human_bytes(gigabytes(120)), "120 GB");
  EXPECT_EQ(human_bytes(bytes(31'406'250'000)), "31.4 GB");
  EXPECT_EQ(human_bytes(bytes(16'640'625'000)), "16.6 GB");
  EXPECT_EQ(human_bytes(bytes(1'875'000'000)), "1.88 GB");
  EXPECT_EQ(human_bytes(bytes(0)), "0 B");
  EXPECT_EQ(human_bytes(bytes(999)), "999 B");
  EXPECT_EQ(human_bytes(bytes(1000)), "1.00 kB");
  EXPECT_EQ(human_bytes(gigabytes(1120)), "1.12 TB");
}

TEST(HumanBytesTest, RoundingGoesToTheNextUnit) {
  EXPECT_EQ(human_bytes(bytes(999'499)), "999 kB");
  EXPECT_EQ(human_bytes(bytes(999'600)), "1.00 MB");
  EXPECT_EQ(human_bytes(bytes(9'996)), "10.0 kB");
  EXPECT_EQ(human_bytes(bytes(INT64_MAX)), "9.22 EB");
}

TEST(HumanTest, CountsRatiosAndWidths) {
  EXPECT_EQ(human_count(70'553'706'496), "70.6 B");
  EXPECT_EQ(human_count(930), "930");
  EXPECT_EQ(grouped(70'553'706'496), "70,553,706,496");
  EXPECT_EQ(grouped(-1000), "-1,000");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(human_ratio(bytes(3), bytes(2)), "1.50x");
  EXPECT_EQ(human_ratio(bytes(3), bytes(0)), "-");
  EXPECT_EQ(human_gibibytes(gibibytes(80)), "80.0 GiB");
  EXPECT_EQ(columns_of("a·█"), 3U);
}

}  // namespace
}  // namespace placet
