// The three experiments of `placet run --experiment`: what the theory says of memory, of
// communication and of integrity, measured on a model that trains here.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "report/experiment.h"

namespace placet {

/// "memory", "communication", "integrity".
std::vector<std::string> experiment_names();

struct ExperimentSetting {
  /// Told of each part when it begins.
  std::function<void(const std::string&)> tell = [](const std::string&) {};
  bool in_full_size = true;  // also makes buffers of many GB, which takes the whole process
};

/// Runs one. Throws InputError for other names.
Experiment experiment_of(const Catalog& catalog, const std::string& name,
                         const ExperimentSetting& setting = {});

}  // namespace placet
