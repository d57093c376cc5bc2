#include "validate/parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace placet {

void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr fault;
  std::mutex mutex;
  const auto take = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      fault = std::current_exception();
      next = count;
    }
  };
  std::vector<std::jthread> others;
  try {
    for (int i = 1; i < threads; ++i) others.emplace_back(take);
  } catch (const std::system_error&) {
    // No further thread is to be had: those that are there do it all.
  }
  take();
  others.clear();  // waits for them
  if (fault) std::rethrow_exception(fault);
}

}  // namespace placet
