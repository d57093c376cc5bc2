// Jobs of the catalogue of which the bits of one device are promised.
#pragma once

#include "lower/catalogue_jobs.h"

namespace placet::testing {

/// Bits are not promised where a norm's derivative is taken of a sum that is not complete: norms of
/// keys that several tensor ranks share (docs/theory.md, section 6.11). This list only shrinks.
inline bool is_promised(const CatalogueJob& job) {
  return job.model != "qwen3-8b" || job.placement != "tp=16:tp";
}

}  // namespace placet::testing
