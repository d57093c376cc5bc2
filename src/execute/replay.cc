#include "execute/replay.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "execute/traffic.h"
#include "ranks/groups.h"
#include "ranks/limits.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::execute {
namespace {

std::int64_t page_size() { return sysconf(_SC_PAGESIZE); }

/// Bytes of memory that the process holds now, as the second figure of statm says in pages.
std::int64_t resident_now() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  statm >> all >> resident;
  return resident * page_size();
}

/// Memory of the system for each buffer, given back when it ends.
class RealBuffers : public BufferWatcher {
 public:
  RealBuffers() = default;
  RealBuffers(const RealBuffers&) = delete;
  RealBuffers& operator=(const RealBuffers&) = delete;
  ~RealBuffers() override {
    for (const auto& [slot, block] : blocks_) munmap(block.first, block.second);
  }

  void begins(int slot, std::int64_t bytes) override {
    if (bytes == 0) return;
    void* memory =
        mmap(nullptr, at(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw InputError({.where = "memory of this machine",
                        .problem = "is not enough for a buffer of " + std::to_string(bytes) +
                                   " bytes: " + std::strerror(errno),
                        .allowed = "a smaller model, or a machine with more"});
    }
    blocks_[slot] = {memory, at(bytes)};
#ifdef MADV_HUGEPAGE
    madvise(memory, at(bytes), MADV_HUGEPAGE);  // fewer pages to ask for; what cannot be so is not
#endif
    auto* const first = static_cast<volatile char*>(memory);
    for (std::int64_t b = 0; b < bytes; b += page_size()) first[b] = 1;
  }
  void ends(int slot) override {
    const auto found = blocks_.find(slot);
    if (found == blocks_.end()) return;
    munmap(found->second.first, found->second.second);
    blocks_.erase(found);
  }
  void rests() override { rest = resident_now() - before_; }
  void peaks() override { peak = std::max(peak, resident_now() - before_); }

  std::int64_t rest = 0;
  std::int64_t peak = 0;

 private:
  std::map<int, std::pair<void*, std::size_t>> blocks_;  // by slot
  std::int64_t before_ = resident_now();
};

std::int64_t number_in(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  std::int64_t number = -1;
  while (!key.empty() && file >> word && word != key) {
  }
  return file >> number ? number : -1;
}

}  // namespace

Replayed replay_buffers(const Program& program, int rank) {
  const ranks::Mesh mesh(program, ranks::RunLimits().ranks);
  const std::vector<int> classes = ranks::classes_of(program, mesh);
  const ranks::Listing listing(program, program.classes[at(classes.at(at(rank)))]);
  RealBuffers buffers;
  Replayed out;
  out.held = held_bytes(program, listing, mesh.at(rank), &buffers);
  out.held.rank = rank;
  out.resident_rest = buffers.rest;
  out.resident_peak = std::max(buffers.peak, buffers.rest);
  return out;
}

std::int64_t available_memory() {
  constexpr std::int64_t kUnit = 1024;  // meminfo counts in KiB
  std::int64_t available = number_in("/proc/meminfo", "MemAvailable:");
  if (available < 0) return -1;
  available *= kUnit;
  const std::int64_t most = number_in("/sys/fs/cgroup/memory.max", "");
  const std::int64_t used = number_in("/sys/fs/cgroup/memory.current", "");
  if (most >= 0 && used >= 0) available = std::min(available, most - used);
  rlimit own{};  // --memory-limit
  if (getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur != RLIM_INFINITY) {
    const std::int64_t taken = number_in("/proc/self/statm", "") * page_size();
    available = std::min(available, static_cast<std::int64_t>(own.rlim_cur) - taken);
  }
  return available;
}

}  // namespace placet::execute
