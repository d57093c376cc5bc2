// Independent pieces of work over a few threads.
#pragma once

#include <cstddef>
#include <functional>

namespace placet {

/// Calls work(0), ..., work(count - 1), each once, by `threads` threads that take the next number
/// until none is left; the caller is one of them. Returns when all are done. An exception ends the
/// work early and is thrown here.
void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace placet
