// Stands in for oneTBB where there is one thread, which has the one value.
#pragma once

#include <functional>
#include <optional>
#include <utility>

namespace tbb {

template <class Value>
class enumerable_thread_specific {
 public:
  enumerable_thread_specific() : make_([] { return Value(); }) {}
  explicit enumerable_thread_specific(std::function<Value()> make) : make_(std::move(make)) {}

  Value& local() {
    if (!value_) value_.emplace(make_());
    return *value_;
  }

 private:
  std::function<Value()> make_;
  std::optional<Value> value_;
};

}  // namespace tbb
