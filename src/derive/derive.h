// From a job to its memory and communication (docs/theory.md §3, §4). Pure: the same job gives the
// same result; no strategy, engine or axis name is ever looked at, only cuts, modes, index lists
// and the profile's facts.
#pragma once

#include "derive/derivation.h"
#include "derive/prepared.h"
#include "profile/job.h"

namespace placet {

/// Memory per device class, communication per device class, findings.
/// Throws InputError if a figure overflows 64 bits (a degree or a batch beyond any cluster).
Derivation derive(const Job& job);

/// The same with the placement-independent part done once: for many placements of one model.
/// `prepared` must come from prepare() on a job with equal model, profile and recomputation.
Derivation derive(const Job& job, const Prepared& prepared);

/// Bytes that rest on the device of one rank, by state, in its part of host memory and on NVMe
/// (without what is staged there). Shares are exact: over all ranks they add up to the whole state
/// times the number of devices that hold each part. Throws InternalError if the rank is not of the
/// mesh.
struct RestingBytes {
  std::array<Bytes, 4> device{};
  std::array<Bytes, 4> host{};
  std::array<Bytes, 4> nvme{};
};
RestingBytes resting_bytes(const Job& job, Rank rank);

}  // namespace placet
