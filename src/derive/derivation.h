// The result of deriving a job: memory per device class, communication per collective, findings.
// Every total is the sum of the named terms below it (docs/theory.md §3, §4).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "placement/finding.h"
#include "profile/job.h"
#include "units/quantity.h"

namespace placet {

/// The factor by which one axis divides a term: the device's share of it, exactly.
struct AxisFactor {
  int axis = 0;  // position in the placement
  Rational factor{1};
  friend bool operator==(const AxisFactor&, const AxisFactor&) = default;
};

/// One named amount of memory on the fullest device of a class.
struct MemoryTerm {
  MemoryCategory category = MemoryCategory::parameters;
  std::string_view what;  // points into the profile, the model or static text of the job
  std::string_view unit;  // unit kind it belongs to; empty: none
  Bytes bytes;            // alive at the peak instant; 0 if only resting elsewhere
  Bytes rest;  // at rest on the device; of activations, kept by all micro-batches in flight
  Bytes host;  // at rest in host memory
  Bytes nvme;  // at rest on NVMe
  AxisMask divided_by = 0;    // axes that divide it; factors_of says by how much
  AxisMask replica_axes = 0;  // of these, along which neighbours hold the same heads
  std::int64_t replicas = 1;  // so many
  std::string_view source;    // of a profile's own term
  bool outside = false;       // not the allocator's: contexts, communicators, libraries
};

struct InstantBytes {
  Instant instant = Instant::forward;
  Bytes bytes;
};

/// Whether a device has the memory that a step needs (docs/theory.md §3.10). A tight job runs. But
/// less than kFitMargin of the device is left, or the allocator has to give cached blocks back.
enum class FitGrade : std::uint8_t { fits, tight, too_large };
std::string_view name_of(FitGrade grade);

/// The part of a device's memory that a job which fits leaves free. It is chosen between the mean
/// errors of reserved memory on measured runs, 3.8 and 5.7 % (docs/theory.md §3.10).
inline constexpr double kFitMargin = 0.05;

/// Memory of one class of equal devices.
struct MemoryClass {
  std::int64_t devices = 0;
  int stage = 0;                          // device of the pipeline; reports say "stage 0"
  std::string shares;                     // "dp 2/9": its part along axes with shares; else empty
  std::vector<std::int64_t> coordinates;  // of one of its devices, where there are shares
  Bytes capacity;                         // of its smallest device; 0: no cluster given
  Instant peak_instant = Instant::forward;
  int peak_unit = -1;                  // position in Model::units of the unit that runs; -1: none
  std::vector<InstantBytes> instants;  // bytes alive at each
  std::vector<MemoryTerm> terms;       // those alive at the peak, and what rests
  std::array<Bytes, kMemoryCategoryCount> at_peak{};
  std::array<Bytes, 4> at_rest{};  // by state
  std::array<Bytes, 4> on_host{};  // staging included
  std::array<Bytes, 4> on_nvme{};
  std::array<Bytes, 4> staged{};  // host memory that what rests on NVMe passes through
  Bytes peak;                     // sum of at_peak
  Bytes outside;                  // of it, what is not the allocator's
  Bytes reserved;                 // by the allocator: at least peak - outside
  bool replayed = false;          // `reserved` was counted request by request
  bool gives_back = false;        // ... and only as cached blocks went back to a full device
  FitGrade fit = FitGrade::fits;  // of its smallest device
};

/// What a device of the class must have: all that is reserved, and all that is outside.
inline Bytes needed(const MemoryClass& memory) { return memory.reserved + memory.outside; }

/// The factors of a term of the class. Case: an axis of degree 4: 1/4; of shares 2,1,1, on a device
/// with the first: 1/2.
std::vector<AxisFactor> factors_of(const Placement& placement, const MemoryClass& memory,
                                   const MemoryTerm& term);

/// One collective, the same `count` times per step.
struct CommunicationTerm {
  AxisMask axes = 0;  // axes of the placement; their product is the group, unless `group` is a
                      // part of it
  Collective collective = Collective::all_reduce;
  ReduceOp op = ReduceOp::none;
  State state = State::activations;
  std::string_view what;  // "attention.q", "gradients", ...
  std::string_view unit;  // unit kind; empty: of the device class as a whole
  Dtype dtype = Dtype::bf16;
  Phase phase = Phase::forward;
  Bytes payload;           // of one call, by the convention of the collective (INTERFACE.md)
  std::int64_t count = 0;  // calls per step
  std::int64_t group = 1;
  bool nvme = false;        // a host copy that comes from NVMe or goes on to it
  std::int64_t apart = 1;   // a group that is a part of its axes: of every `apart`th along them
  Bytes sent;               // per device and step: count x sent_per_call
  std::string_view source;  // of a profile's own message

  friend bool operator==(const CommunicationTerm&, const CommunicationTerm&) = default;
};

/// Bytes the busiest device of a group of n sends in one call on b = payload bytes (docs/theory.md
/// §4.1): all_reduce 2 (b - own), reduce_scatter, all_gather and all_to_all b - own, where own is
/// the smallest share, floor(b / n) in whole elements; the others b. Case: all_gather of 12 bytes
/// in fp32 over 2 devices: shares 8 and 4 bytes, sent 8.
std::int64_t sent_per_call(Collective collective, std::int64_t payload, std::int64_t group,
                           Dtype dtype);

/// Bytes sent per device and step with equal shares, as an exact fraction: what ratios are made of.
Rational exact_sent(const CommunicationTerm& term);
/// The same as text, "7" or "22/7", also where it passes 2^63.
std::string exact_sent_text(const CommunicationTerm& term);

/// The link level that a term of device `stage` of the pipeline crosses: of the groups of devices
/// that the stage stands on the slowest, or the link between groups; the host link is its own.
/// Groups that are a part of their axes are of neighbours along them; messages to another stage
/// cross what lies between the two. Cases, hosts of 8: heads shared by two neighbours of 16: inside
/// a host. 16 stages of one device: of stage 7 forward between hosts, of all others inside one.
/// REQUIRES: a cluster with devices, whose groups have levels.
const Level& level_of_term(const Job& job, const CommunicationTerm& term, int stage);

struct CommunicationClass {
  int stage = 0;
  std::vector<CommunicationTerm> terms;
  Bytes sent;
};

/// "stage 2"; "every device" where there is one stage.
std::string class_name(const Job& job, int stage);
/// The same with its shares: "stage 2, dp 2/9", "devices of dp 2/9".
std::string class_name(const Job& job, const MemoryClass& memory);

/// The instant of the peak in words: "backward of block 31", "loss", "update".
std::string peak_text(const Job& job, const MemoryClass& memory);

struct Derivation {
  std::int64_t devices = 0;
  std::vector<MemoryClass> memory;
  std::vector<CommunicationClass> communication;
  std::vector<Finding> findings;
  Bytes peak;           // largest class
  Bytes sent;           // largest class
  Bytes capacity;       // of the smallest device; 0: no cluster given
  Bytes host_capacity;  // of one host; where they differ, of that with the least room left
  Bytes host_used;      // by all processes of that host
  Bytes nvme_used;      // likewise, of the host that uses most; its capacity is not judged
  FitGrade fit = FitGrade::fits;  // the worst of its classes; too large where a host is, too
  /// False where the rule `meaning` is broken: there are findings, and no figures.
  bool meaningful = true;
};

/// By the class that needs most.
Bytes most_needed(const Derivation& derivation);

/// Whether it runs at all: it fits, or is tight.
inline bool runs(const Derivation& derivation) { return derivation.fit != FitGrade::too_large; }

}  // namespace placet
