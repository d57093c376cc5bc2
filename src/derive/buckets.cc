#include "derive/buckets.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace placet {
namespace {

class BucketFiller {
 public:
  explicit BucketFiller(const BucketRule& rule)
      : rule_(rule), size_(rule.first > 0 ? std::min(rule.first, rule.size) : rule.size) {}

  void add(std::int64_t tensor) {
    const bool overfills = filled_ > 0 && tensor > size_ - filled_;
    if (rule_.end == BucketEnd::before && overfills) close();
    filled_ += tensor;
    if (rule_.end == BucketEnd::after && filled_ >= size_) close();
  }

  template <typename Lists>
  void add_all(const Lists& lists) {
    for (const BucketTensors& list : lists) {
      for (std::int64_t u = 0; u < list.units; ++u) add_unit(list.bytes);
    }
  }

  std::vector<BucketCount> take() {
    if (filled_ > 0) close();
    return std::move(out_);
  }

 private:
  void add_unit(const std::vector<std::int64_t>& tensors) {
    if (rule_.from_first) {
      for (const std::int64_t tensor : tensors) add(tensor);
    } else {
      for (const std::int64_t tensor : std::views::reverse(tensors)) add(tensor);
    }
  }

  void close() {
    const auto known = std::ranges::find(out_, filled_, &BucketCount::bytes);
    if (known != out_.end()) {
      ++known->count;
    } else {
      out_.push_back({.bytes = filled_, .count = 1});
    }
    filled_ = 0;
    size_ = rule_.size;
  }

  const BucketRule& rule_;
  std::int64_t size_ = 0;
  std::int64_t filled_ = 0;
  std::vector<BucketCount> out_;
};

}  // namespace

std::vector<BucketCount> fill_buckets(const std::vector<BucketTensors>& tensors,
                                      const BucketRule& rule) {
  BucketFiller filler(rule);
  if (rule.from_first) {
    filler.add_all(tensors);
  } else {
    filler.add_all(std::views::reverse(tensors));
  }
  return filler.take();
}

}  // namespace placet
