// What tests of engines' messages look at.
#pragma once

#include <string_view>

#include "derive/communication.h"
#include "derive/derive.h"
#include "derive/traffic.h"

namespace placet {

inline Lines states(const Job& job, std::size_t stage = 0) {
  return traffic(job, moves_states(), stage);
}
inline Lines extras(const Job& job, std::size_t stage = 0) {
  return traffic(job, of_engine(), stage);
}
inline Lines block(const Job& job) { return traffic(job, activations_of("block")); }

inline Lines clipped(Job job, std::size_t stage = 0) {
  job.clips_by_global_norm = true;
  return extras(job, stage);
}

/// Payload bytes per step of the terms with this word, over all calls.
inline std::int64_t payload(const Job& job, std::string_view what) {
  std::int64_t sum = 0;
  const Derivation derived = derive(job);
  for (const CommunicationTerm& term : derived.communication[0].terms) {
    if (term.what == what) sum += in_bytes(term.payload) * term.count;
  }
  return sum;
}

}  // namespace placet
