// What both judges say of the small program of a job.
#pragma once

#include "algebra/verify.h"
#include "catalog/job.h"
#include "check/check.h"
#include "lower/small.h"

namespace placet::testing {

struct Judged {
  bool proved = false;
  bool run = false;  // all ranks over a finite field

  friend bool operator==(const Judged&, const Judged&) = default;
};

inline constexpr Judged kEqual{true, true};
inline constexpr Judged kUnequal{false, false};

inline Program small_program(const char* model, const char* placement, const char* optimizer) {
  JobRequest request{.model = model, .placement = placement, .optimizer = optimizer};
  request.sequence = 256;
  request.global_batch = 8;
  return lower_small(load_job(find_catalog(), request));
}

inline Judged judged(const char* model, const char* placement, const char* optimizer = "adamw") {
  const Program program = small_program(model, placement, optimizer);
  return {.proved = check(program).equivalent, .run = verify(program).equal};
}

}  // namespace placet::testing
