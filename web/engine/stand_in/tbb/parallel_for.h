// Stands in for oneTBB where there is one thread: the work is done in order.
#pragma once

namespace tbb {

template <class Index, class Work>
void parallel_for(Index first, Index last, const Work& work) {
  for (Index i = first; i < last; ++i) work(i);
}

}  // namespace tbb
