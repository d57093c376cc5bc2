#include "cli/memory_limit.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "units/error.h"
#include "units/number.h"

namespace placet {
namespace {

constexpr double kDefaultPart = 0.8;
constexpr std::int64_t kLeast = std::int64_t{64} << 20;
constexpr std::int64_t kMost = std::int64_t{1} << 50;
constexpr double kGigabyte = 1e9;

struct MemoryFlag {
  std::string text;
  std::int64_t bytes = 0;  // 0: not bounded by this program
};
MemoryFlag& flag() {
  static MemoryFlag value;
  return value;
}

/// What the machine has, or the control group that this process is in; 0: not known.
std::int64_t memory_of_machine() {
  const std::int64_t pages = sysconf(_SC_PHYS_PAGES);
  std::int64_t bytes = pages > 0 ? pages * sysconf(_SC_PAGESIZE) : 0;
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::int64_t bound = 0;
    std::ifstream in(path);
    if (in >> bound && bound > 0 && (bytes == 0 || bound < bytes)) bytes = bound;
  }
  return bytes;
}

void bound_memory(std::int64_t bytes) {
// The shadow memory of sanitizers takes terabytes of addresses.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0) return;
  const auto wanted = static_cast<rlim_t>(bytes);
  // Set already before this program went on (net_program.h).
  if (limit.rlim_cur == wanted) flag().bytes = bytes;
  if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= wanted) return;
  limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : std::min(wanted, limit.rlim_max);
  if (setrlimit(RLIMIT_AS, &limit) == 0) flag().bytes = bytes;
#else
  static_cast<void>(bytes);
#endif
}

}  // namespace

void add_memory_flag(CLI::App& program) {
  program
      .add_option(
          "--memory-limit", flag().text,
          "Most memory that this call may take, such as 16GB, or none (80 % of the machine's)")
      ->type_name("SIZE");
}

std::optional<std::int64_t> memory_in(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = number_in<double>(text.substr(0, end));
  const std::string_view unit = text.substr(end);
  if (!number) return std::nullopt;
  constexpr std::string_view kUnits = "KMGT";
  double factor = 1;
  if (!unit.empty() && unit != "B") {
    const std::size_t power = kUnits.find(unit.front());
    const std::string_view rest = unit.substr(1);
    const bool binary = rest == "iB" || rest == "i";
    if (power == std::string_view::npos || !(binary || rest == "B" || rest.empty())) {
      return std::nullopt;
    }
    factor = std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
  }
  const double bytes = *number * factor;
  return bytes <= static_cast<double>(kMost) ? std::optional<std::int64_t>(std::lround(bytes))
                                             : std::nullopt;
}

void set_memory_limit() {
  const std::string& text = flag().text;
  if (text == "none") return;
  if (text.empty()) {
    const std::int64_t all = memory_of_machine();
    if (all > 0) {
      bound_memory(std::max(kLeast, std::lround(kDefaultPart * static_cast<double>(all))));
    }
    return;
  }
  const auto bytes = memory_in(text);
  if (!bytes || *bytes < kLeast) {
    throw InputError({.where = "--memory-limit",
                      .value = text,
                      .problem = "is no size of memory",
                      .allowed = "64MiB or more, such as 16GB, or none"});
  }
  bound_memory(*bytes);
}

std::string out_of_memory_text() {
  if (flag().bytes == 0) return "this job needs more memory than the system gives";
  return fmt::format(
      "this job needs more than {:.3g} GB of memory, the bound of this call; try fewer blocks, "
      "stages or micro-batches, or --memory-limit SIZE",
      static_cast<double>(flag().bytes) / kGigabyte);
}

}  // namespace placet
