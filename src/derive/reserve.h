// What an engine's allocator reserves for a step: the step's requests, in program order, replayed
// through the rules of the caching allocator (docs/theory.md §3.6). Reserved memory is what tools
// print as the peak; it is above the bytes alive by the allocator's holes, which depend on the
// order of requests and are no constant.
#pragma once

#include <optional>
#include <vector>

#include "derive/derivation.h"
#include "derive/layout.h"
#include "derive/prepared.h"
#include "profile/job.h"

namespace placet {

struct Reservation {
  int stage = 0;
  Bytes alive;     // most bytes alive at once, over the pools, rounding included
  Bytes reserved;  // high-water mark over the pools, with the engine's overhead terms
  // The same two from the end of the last backward on, in the second step. Reserved bytes fall
  // below the high-water mark only where the device was full and cached blocks were given back.
  Bytes alive_after_backward;
  Bytes reserved_after_backward;
  Bytes outside;  // beside what is reserved: contexts, communicators, libraries' workspaces
  bool gives_back = false;  // only as cached blocks went back to the device when it was full
};

/// Replays `steps` steps (two reach the steady state) of one device of each pipeline stage. At most
/// the micro-batches in flight plus two are replayed per step: the others repeat the same requests.
std::vector<Reservation> reserve(const Job& job);
std::vector<Reservation> reserve(const Job& job, const Prepared& prepared);

/// The same for one stage. `limit`: the device's memory; beyond what is left of it by the engine's
/// overhead terms the allocator first gives back what it only caches. None: the cluster's memory,
/// if the job has one.
Reservation reserve(const Job& job, const Prepared& prepared, int stage,
                    std::optional<Bytes> limit = std::nullopt);

/// The same for the device that is laid out, of a class by shares for example.
Reservation reserve(const Layout& layout, int stage, std::optional<Bytes> limit = std::nullopt);

}  // namespace placet
