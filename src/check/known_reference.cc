#include "check/known_reference.h"

#include <algorithm>

#include "units/at.h"

namespace placet {
namespace {

/// One more than the last kernel that the reference calls.
std::size_t kernels_called(const Reference& reference) {
  int last = -1;
  for (const int one :
       {reference.seed_kernel, reference.count_kernel, reference.norm_kernel, reference.clip_kernel,
        reference.scale_kernel, reference.overflow_kernel, reference.adjust_kernel}) {
    last = std::max(last, one);
  }
  for (const UpdateRule& rule : reference.rules) last = std::max(last, rule.kernel);
  for (const ReferenceKind& kind : reference.kinds) {
    for (const Application& a : kind.applications) last = std::max(last, a.kernel);
  }
  return at(last + 1);
}

}  // namespace

KnownReference::KnownReference(const Program& program, int steps)
    : reference_(program.reference), dims_(program.dims), kernels_(program.kernels) {
  kernels_.resize(kernels_called(reference_));
  Regions regions(program);
  KernelValues kernels(nodes_, regions, program.axes.back().degree);
  ReferenceValues values(program, nodes_, kernels);
  for (int step = 0; step < steps; ++step) {
    values.advance();
    after_.push_back(values.after());
  }
}

bool KnownReference::is_of(const Program& program) const {
  return program.reference == reference_ && program.dims == dims_ &&
         program.kernels.size() >= kernels_.size() &&
         std::equal(kernels_.begin(), kernels_.end(), program.kernels.begin());
}

}  // namespace placet
