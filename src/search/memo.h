// Values worked out once and shared by all threads: what a key means must not depend on who asks
// first.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

namespace placet {

template <class Key, class Value>
class Memo {
 public:
  /// The value of `key`; made by `make` where it is not known yet. Two threads may both make it;
  /// the first one's is kept.
  template <class Make>
  std::shared_ptr<const Value> get(const Key& key, Make make) {
    {
      const std::shared_lock lock(mutex_);
      if (const auto known = values_.find(key); known != values_.end()) return known->second;
    }
    auto made = std::make_shared<const Value>(make());
    const std::unique_lock lock(mutex_);
    return values_.emplace(key, std::move(made)).first->second;
  }

 private:
  std::shared_mutex mutex_;
  std::map<Key, std::shared_ptr<const Value>> values_;
};

}  // namespace placet
