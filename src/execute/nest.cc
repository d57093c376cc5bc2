#include "execute/nest.h"

#include "units/error.h"

namespace placet::execute {
namespace {

void require_few(std::size_t count, const char* what, std::size_t most) {
  if (count <= most) return;
  throw InputError({.where = "program",
                    .value = std::to_string(count),
                    .problem = std::string("are more ") + what + " than a statement can have here",
                    .allowed = "at most " + std::to_string(most)});
}

}  // namespace

std::int64_t Nest::size() const {
  std::int64_t all = 1;
  for (const std::int64_t extent : extents) all *= extent;
  return all;
}

Nest nest_of(const std::vector<std::vector<ranks::PlaceLoop>>& tensors) {
  Nest nest{.tensors = tensors.size(), .extents = {}, .strides = {}};
  const std::size_t loops = tensors.empty() ? 0 : tensors[0].size();
  for (std::size_t d = 0; d < loops; ++d) {
    const std::int64_t extent = tensors[0][d].extent;
    if (extent == 1) continue;
    std::vector<std::int64_t> strides;
    bool continues = !nest.extents.empty();
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      strides.push_back(tensors[t][d].stride);
      continues = continues && nest.strides.back()[t] == strides[t] * extent;
    }
    if (continues) {
      nest.extents.back() *= extent;
      nest.strides.back() = std::move(strides);
    } else {
      nest.extents.push_back(extent);
      nest.strides.push_back(std::move(strides));
    }
  }
  if (nest.extents.empty()) {
    nest.extents.push_back(1);
    nest.strides.emplace_back(nest.tensors, 0);
  }
  require_few(nest.tensors, "tensors", Nest::kMostTensors);
  require_few(nest.extents.size(), "dims", kMostLoops);
  return nest;
}

std::vector<ranks::PlaceLoop> joined(const ranks::Places& outer, const ranks::Places& inner) {
  std::vector<ranks::PlaceLoop> loops = outer.loops();
  loops.insert(loops.end(), inner.loops().begin(), inner.loops().end());
  return loops;
}

}  // namespace placet::execute
