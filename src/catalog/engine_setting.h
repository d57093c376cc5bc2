// What of a job is settled before its placement, and blocks of facts in engine files that hold only
// there (docs/formats.md, section 7). Inside of catalog/.
#pragma once

#include <string>
#include <vector>

#include "catalog/reader.h"
#include "profile/job.h"

namespace placet {

/// What conditions of `given` blocks ask of a job: they may not ask for its placement or batch,
/// which a search still has to choose.
struct EngineSetting {
  std::string model;   // its name
  std::string family;  // model_type
  bool has_experts = false;
  bool shares_keys = false;  // heads share key and value heads
  std::string products;      // their format; empty: that of all other work
  Dtype compute = Dtype::bf16;
  std::vector<std::string> devices;  // names, one per group; empty: no cluster is known

  friend bool operator==(const EngineSetting&, const EngineSetting&) = default;
};

/// Reads model, precision and cluster of the job, nothing else.
EngineSetting setting_of(const Job& job);

/// Whether all that the object `when` of a `given` block says is so. Lists name what will do:
/// {"products": ["mxfp8"], "devices": ["gb200", "gb300"], "has_experts": true}. A condition on
/// devices holds if all of them are named. Throws InputError for keys and values that are none.
bool holds(const Reader& when, const EngineSetting& setting);

}  // namespace placet
