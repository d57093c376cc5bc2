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

using Tell = std::function<void(const std::string&)>;

/// Runs one, and tells of each part when it begins. Throws InputError for other names.
Experiment experiment_of(
    const Catalog& catalog, const std::string& name, const Tell& tell = [](const std::string&) {});

}  // namespace placet
