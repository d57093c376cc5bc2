// What `placet engines NAME` says beside its list: the newest version's options, what follows from
// the job, and what the engine refuses, each with its source.
#pragma once

#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "report/explanation.h"

namespace placet {

/// The page of an engine, by its name, by a second name, or of one version ("megatron@2025"); none:
/// no engine is called so.
std::vector<Explanation> engine_page(const Catalog& catalog, const std::string& name);

}  // namespace placet
