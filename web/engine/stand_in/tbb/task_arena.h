// Stands in for oneTBB where there is one thread: nobody else could begin other work meanwhile.
#pragma once

namespace tbb::this_task_arena {

template <class Work>
auto isolate(const Work& work) {
  return work();
}

}  // namespace tbb::this_task_arena
