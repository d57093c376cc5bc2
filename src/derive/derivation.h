// The result of deriving a job: memory per device class, communication per collective, findings.
// Every total is the sum of the named terms below it (docs/theory.md §3, §4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "placement/finding.h"
#include "profile/job.h"
#include "units/quantity.h"

namespace placet {

/// What a memory term counts as; the keys of the report's bytes.
enum class MemoryCategory : std::uint8_t {
  parameters, optimizer, gradients, activations, transient, overhead
};
inline constexpr int kMemoryCategoryCount = 6;
std::string_view name_of(MemoryCategory category);

/// The factor by which one axis divides a term: its largest share, exactly.
struct AxisFactor {
  int axis = 0;  // position in the placement
  Rational factor{1};
  friend bool operator==(const AxisFactor&, const AxisFactor&) = default;
};

/// One named amount of memory on the fullest device of a class.
struct MemoryTerm {
  MemoryCategory category = MemoryCategory::parameters;
  std::string_view what;   // points into the profile, the model or static text of the job
  std::string_view unit;   // unit kind it belongs to; empty: none
  Bytes bytes;             // alive at the peak instant; 0 if only resting elsewhere
  Bytes rest;              // at rest on the device (states)
  Bytes host;              // at rest in host memory
  std::vector<AxisFactor> factors;
  std::string_view source; // of a profile's own term
};

struct InstantBytes {
  Instant instant = Instant::forward;
  std::string detail;  // "backward of block 31", filled for the peak only
  Bytes bytes;
};

/// Memory of one class of equal devices.
struct MemoryClass {
  std::string name;  // "stage 0"
  std::int64_t devices = 0;
  int stage = 0;
  std::string peak_at;                 // the instant of the peak, in words
  Instant peak_instant = Instant::forward;
  std::vector<InstantBytes> instants;  // bytes alive at each
  std::vector<MemoryTerm> terms;       // those alive at the peak, and what rests
  std::array<Bytes, kMemoryCategoryCount> at_peak{};
  std::array<Bytes, 4> at_rest{};      // by state
  std::array<Bytes, 4> on_host{};
  Bytes peak;                          // sum of at_peak
};

/// One collective, the same `count` times per step.
struct CommunicationTerm {
  std::vector<int> axes;  // positions in the placement, outermost first; their product is the group
  Collective collective = Collective::all_reduce;
  ReduceOp op = ReduceOp::none;
  State state = State::activations;
  std::string_view what;
  Dtype dtype = Dtype::bf16;
  Phase phase = Phase::forward;
  Bytes payload;          // of one call, by the convention of the collective (INTERFACE.md)
  std::int64_t count = 0; // calls per step
  std::int64_t group = 1;
  Bytes sent;             // per device and step, by docs/theory.md §4 (largest over devices)
  Rational sent_exact{0}; // the same before rounding to bytes
  int level = 0;          // position of the link in LevelBytes names; -1: host link
};

struct CommunicationClass {
  std::string name;
  int stage = 0;
  std::vector<CommunicationTerm> terms;
  Bytes sent;
};

struct Derivation {
  std::int64_t devices = 0;
  std::vector<MemoryClass> memory;
  std::vector<CommunicationClass> communication;
  std::vector<Finding> findings;
  Bytes peak;             // largest class
  Bytes sent;             // largest class
  Bytes capacity;         // of the smallest device; 0: no cluster given
  Bytes host_capacity;    // of one host
  Bytes host_used;        // by all processes of one host
  bool fits = true;
};

}  // namespace placet
