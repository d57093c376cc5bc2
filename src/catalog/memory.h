// What was read of a catalogue, kept for the rest of the process.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace placet {

/// Values by the words that they were read for. It belongs to one catalogue, whose folders do not
/// change: of files that are written later it knows nothing. What is read from a path that a user
/// names is never kept. Threads may share it.
class CatalogMemory {
 public:
  /// The value kept under `key`, or what `read` gives, which is then kept; a fault is not. Keys of
  /// different types must differ.
  template <class Value, class Read>
  std::shared_ptr<const Value> get(const std::string& key, Read read) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = kept_.find(key);
      if (found != kept_.end()) return std::static_pointer_cast<const Value>(found->second);
    }
    auto value = std::make_shared<const Value>(read());
    const std::lock_guard lock(mutex_);
    // So many different words are no catalogue's; what comes later is read anew each time.
    if (kept_.size() < kMost) kept_.emplace(key, value);
    return value;
  }

 private:
  static constexpr std::size_t kMost = 4096;

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const void>> kept_;
};

/// What `read` gives, from the catalogue's memory where it has one; not copied.
template <class Value, class Keeper, class Read>
std::shared_ptr<const Value> shared(const Keeper& catalog, const std::string& key, Read read) {
  if (!catalog.memory) return std::make_shared<const Value>(read());
  return catalog.memory->template get<Value>(key, std::move(read));
}

/// The same as a value of one's own.
template <class Value, class Keeper, class Read>
Value remembered(const Keeper& catalog, const std::string& key, Read read) {
  if (!catalog.memory) return read();
  return *shared<Value>(catalog, key, std::move(read));
}

}  // namespace placet
