#include "program/reference.h"

#include "units/at.h"

namespace placet {
namespace {

/// Values that a gradient is wanted of: the stream, trainable parameters, what changes with them.
std::vector<bool> wanted(const ReferenceKind& kind, const std::vector<Kernel>& kernels) {
  std::vector<bool> wanted(kind.values.size(), false);
  if (kind.stream_in >= 0) wanted[at(kind.stream_in)] = true;
  for (const ReferenceParameter& p : kind.parameters) {
    if (p.trainable) wanted[at(p.value)] = true;
  }
  for (const Application& a : kind.applications) {
    const Kernel& kernel = kernels.at(at(a.kernel));
    std::vector<int> to;
    for (std::size_t i = 0; i < a.inputs.size(); ++i) {
      if (wanted[at(a.inputs[i])]) to.push_back(static_cast<int>(i));
    }
    for (std::size_t o = 0; o < a.outputs.size(); ++o) {
      const int from = kernel.inputs + static_cast<int>(o);
      wanted[at(a.outputs[o])] = !to.empty() && adjoint_of(kernel, {from}, to).has_value();
    }
  }
  return wanted;
}

struct BackwardPass {
  std::vector<BackwardApplication> applications;
  std::vector<bool> has_gradient;
};

/// The places, counted from `first`, of those of the values for which a flag is set.
std::vector<int> places_where(const std::vector<bool>& flags, const std::vector<int>& values,
                              int first) {
  std::vector<int> places;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (flags[at(values[i])]) places.push_back(first + static_cast<int>(i));
  }
  return places;
}

BackwardPass pass_of(const ReferenceKind& kind, const std::vector<Kernel>& kernels) {
  BackwardPass pass;
  const std::vector<bool> want = wanted(kind, kernels);
  pass.has_gradient.assign(kind.values.size(), false);
  for (int v : {kind.stream_out, kind.loss}) {
    if (v >= 0 && want[at(v)]) pass.has_gradient[at(v)] = true;
  }
  for (std::size_t a = kind.applications.size(); a-- > 0;) {
    const Application& application = kind.applications[a];
    const Kernel& kernel = kernels.at(at(application.kernel));
    const std::vector<int> from =
        places_where(pass.has_gradient, application.outputs, kernel.inputs);
    const std::vector<int> to = places_where(want, application.inputs, 0);
    if (from.empty() || to.empty()) continue;
    std::optional<Adjoint> adjoint = adjoint_of(kernel, from, to);
    if (!adjoint) continue;
    for (int i : adjoint->to) pass.has_gradient[at(application.inputs[at(i)])] = true;
    pass.applications.push_back({static_cast<int>(a), std::move(*adjoint)});
  }
  return pass;
}

}  // namespace

std::vector<BackwardApplication> backward_of(const ReferenceKind& kind,
                                             const std::vector<Kernel>& kernels) {
  return pass_of(kind, kernels).applications;
}

std::vector<bool> values_with_gradient(const ReferenceKind& kind,
                                       const std::vector<Kernel>& kernels) {
  return pass_of(kind, kernels).has_gradient;
}

}  // namespace placet
