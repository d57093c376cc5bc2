// Stands in for oneTBB where there is one thread: the works are done in order.
#pragma once

namespace tbb {

template <class... Work>
void parallel_invoke(const Work&... work) {
  (work(), ...);
}

}  // namespace tbb
