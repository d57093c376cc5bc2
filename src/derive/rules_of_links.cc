// The rule about links: the busiest axes belong on the fastest ones. Judges figures that were
// derived, unlike the other rules, which judge the job alone.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>

#include "derive/rule_parts.h"

namespace placet {
namespace {

/// Axes of a placement by position, outermost first.
using AxisOrder = std::vector<std::size_t>;

/// Where the groups over a set of axes stand if the mesh were written in this order.
RankBlock block_in(const Placement& placement, const AxisOrder& order, AxisMask axes) {
  RankBlock block;
  std::int64_t stride = 1;
  for (const std::size_t axis : order | std::views::reverse) {
    const std::int64_t degree = placement.axes[axis].degree;
    const bool included = (axes & axis_bit(static_cast<int>(axis))) != 0;
    if (included) block.span += (degree - 1) * stride;
    stride *= degree;
    if (included) block.size = stride;
  }
  return block;
}

/// The figures of one job, and what they would be in another order of its axes.
class LinkOrder {
 public:
  LinkOrder(const Job& job, std::span<const AxesBytes> sent)
      : job_(job), sent_(sent), written_(job.placement.axes.size()) {
    std::iota(written_.begin(), written_.end(), std::size_t{0});
  }

  std::vector<Finding> advise() const {
    Pair best;
    for (std::size_t outer = 0; outer < written_.size(); ++outer) {
      for (std::size_t inner = outer + 1; inner < written_.size(); ++inner) {
        const Pair pair = judge(outer, inner);
        if (pair.saved > best.saved) best = pair;
      }
    }
    if (best.saved <= 0) return {};
    return {finding(best)};
  }

 private:
  /// An axis, one further in, and the seconds saved by writing the first after the second.
  struct Pair {
    std::size_t outer = 0;
    std::size_t inner = 0;
    double saved = 0;
  };

  const Level& level(const AxisOrder& order, AxisMask axes) const {
    return level_of(*job_.cluster, block_in(job_.placement, order, axes));
  }

  const Level& level_of_axis(std::size_t axis) const {
    return level(written_, axis_bit(static_cast<int>(axis)));
  }

  /// Seconds of all messages one after the other, by bytes and bandwidth alone.
  double seconds(const AxisOrder& order) const {
    double sum = 0;
    for (const AxesBytes& one : sent_) {
      if (one.axes != 0) sum += in_seconds(one.sent / level(order, one.axes).bandwidth);
    }
    return sum;
  }

  /// What goes over `axis` without `other`: messages over both stay as they are when the two change
  /// places.
  Bytes sent_without(std::size_t axis, std::size_t other) const {
    Bytes sum;
    for (const AxesBytes& one : sent_) {
      const bool over = (one.axes & axis_bit(static_cast<int>(axis))) != 0;
      const bool both = (one.axes & axis_bit(static_cast<int>(other))) != 0;
      if (over && !both) sum += one.sent;
    }
    return sum;
  }

  Pair judge(std::size_t outer, std::size_t inner) const {
    const bool faster = level_of_axis(outer).bandwidth < level_of_axis(inner).bandwidth;
    if (!faster || sent_without(outer, inner) <= sent_without(inner, outer)) return {};
    AxisOrder moved = written_;
    const auto begin = moved.begin() + static_cast<std::ptrdiff_t>(outer);
    std::rotate(begin, begin + 1, moved.begin() + static_cast<std::ptrdiff_t>(inner) + 1);
    const double saved = seconds(written_) - seconds(moved);
    return {.outer = outer, .inner = inner, .saved = std::isfinite(saved) ? saved : 0};
  }

  /// "90.0 GB", rounded to tenths; small amounts in smaller units.
  static std::string in_words(Bytes amount) {
    struct Unit {
      std::int64_t size;
      const char* name;
    };
    constexpr std::array kUnits = {Unit{1'000'000'000, " GB"}, Unit{1'000'000, " MB"}};
    for (const auto& [size, name] : kUnits) {
      const std::int64_t tenth = size / 10;
      const std::int64_t tenths =
          in_bytes(amount) / tenth + (in_bytes(amount) % tenth * 2 >= tenth);
      if (tenths >= 10)
        return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + name;
    }
    return std::to_string(in_bytes(amount)) + " bytes";
  }

  Finding finding(const Pair& pair) const {
    const AxisPlacement& slow = job_.placement.axes[pair.outer];
    const AxisPlacement& fast = job_.placement.axes[pair.inner];
    const std::string slow_name(slow.axis.text());
    const std::string fast_name(fast.axis.text());
    return {.rule = "link-order",
            .severity = Severity::advice,
            .where = place_of(slow),
            .message = slow_name + " sends " + in_words(sent_without(pair.outer, pair.inner)) +
                       " per device and step over " + level_of_axis(pair.outer).link + ", " +
                       fast_name + " only " + in_words(sent_without(pair.inner, pair.outer)) +
                       " over the faster " + level_of_axis(pair.inner).link,
            .cure = "write " + slow_name + " after " + fast_name};
  }

  const Job& job_;
  std::span<const AxesBytes> sent_;
  AxisOrder written_;
};

}  // namespace

std::vector<Finding> advise_link_order(const Job& job, std::span<const AxesBytes> sent) {
  if (!job.cluster || job.cluster->groups.empty()) return {};
  if (devices_of(*job.cluster) != devices_of(job.placement)) return {};
  return LinkOrder(job, sent).advise();
}

}  // namespace placet
