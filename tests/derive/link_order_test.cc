#include <gtest/gtest.h>

#include "derive/rule_jobs.h"
#include "derive/rules.h"

namespace placet {
namespace {

TEST(LinkOrderTest, BusyAxesBelongOnFastLinks) {
  Job inner = job("dp=8:batch(R,R,R,R) tp=8:tensor(S,S,S,R)");
  const std::vector<AxesBytes> good = {{0b01, gigabytes(10)}, {0b10, gigabytes(90)}};
  EXPECT_TRUE(advise_link_order(inner, good).empty());
  const std::vector<AxesBytes> bad = {{0b01, gigabytes(90)}, {0b10, gigabytes(10)}};
  const std::vector<Finding> advice = advise_link_order(inner, bad);
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].rule, "link-order");
  EXPECT_EQ(advice[0].severity, Severity::advice);
  EXPECT_EQ(
      advice[0].message,
      "dp sends 90.0 GB per device and step over across, tp only 10.0 GB over the faster inside");
  EXPECT_EQ(advice[0].cure, "write dp after tp");
  inner.cluster.reset();
  EXPECT_TRUE(advise_link_order(inner, bad).empty());
}

// Messages over both axes cross hosts in either order: moving one of the two gains nothing.
TEST(LinkOrderTest, MessagesOverBothAxesAreNoReason) {
  const Job both = job("out=8:batch(R,R,R,R) in=8:batch(R,R,R,R)");
  const std::vector<AxesBytes> together = {{0b11, gigabytes(90)}, {0b10, gigabytes(1)}};
  EXPECT_TRUE(advise_link_order(both, together).empty());
}

// 20 devices, hosts of 8: an axis of 5 written innermost crosses hosts anyway (ranks 5 to 9).
TEST(LinkOrderTest, AnOrderThatHelpsNothingIsNotAdvised) {
  Job odd = job("a=5:batch(R,R,R,R) b=4:batch(R,R,R,R)");
  const std::vector<AxesBytes> sent = {{0b01, gigabytes(90)}, {0b10, gigabytes(10)}};
  EXPECT_TRUE(advise_link_order(odd, sent).empty());
}

// A mesh that is not the cluster's has another finding.
TEST(LinkOrderTest, AMeshThatIsNotTheClustersHasNoLinks) {
  Job wrong = job("dp=8:batch(R,R,R,R) tp=8:tensor(S,S,S,R)");
  wrong.cluster = cluster_of(128);
  const std::vector<AxesBytes> sent = {{0b01, gigabytes(90)}, {0b10, gigabytes(10)}};
  EXPECT_TRUE(advise_link_order(wrong, sent).empty());
}

}  // namespace
}  // namespace placet
