#include "ranks/binding.h"

#include <algorithm>

#include "units/at.h"

namespace placet::ranks {
namespace {

class Binder {
 public:
  explicit Binder(const Kernel& kernel) : kernel_(kernel) {
    binding_.extents.assign(kernel.dims.size(), kUnknown);
    for (std::size_t d = 0; d < kernel.dims.size(); ++d) {
      if (kernel.dims[d].name == kAnyDims) any_ = static_cast<int>(d);
    }
  }

  Binding run(const std::vector<BufferView>& tensors) {
    if (tensors.size() != at(kernel_.inputs + kernel_.outputs)) {
      binding_.problem = "the kernel '" + kernel_.name + "' takes " +
                         std::to_string(kernel_.inputs) + " buffers and makes " +
                         std::to_string(kernel_.outputs);
      return binding_;
    }
    for (int t = 0; at(t) < tensors.size(); ++t) bind_tensor(t, tensors[at(t)]);
    follow_likes();
    for (std::size_t d = 0; d < kernel_.dims.size(); ++d) {
      if (binding_.extents[d] == kUnknown) {
        refuse("nothing gives the dim '" + kernel_.dims[d].name + "' an extent");
      }
    }
    return binding_;
  }

 private:
  static constexpr std::int64_t kUnknown = -1;

  void refuse(const std::string& problem) {
    if (binding_.problem.empty()) binding_.problem = "kernel '" + kernel_.name + "': " + problem;
  }

  void give(int tensor, int dim, std::int64_t extent) {
    std::int64_t& known = binding_.extents[at(dim)];
    if (known == kUnknown) known = extent;
    if (known != extent) {
      refuse("the dim '" + kernel_.dims[at(dim)].name + "' has extent " + std::to_string(extent) +
             " in '" + kernel_.tensors[at(tensor)].name + "' and " + std::to_string(known) +
             " elsewhere");
    }
  }

  void bind_tensor(int tensor, const BufferView& view) {
    const std::vector<int>& dims = kernel_.tensors[at(tensor)].dims;
    const bool is_number = dims.empty() && view.size == 1;
    if (is_number) return;
    if (dims.size() == 1 && dims[0] == any_) return give(tensor, any_, view.size);
    const std::string name = "'" + kernel_.tensors[at(tensor)].name + "'";
    if (view.extents == nullptr) {
      return refuse("the buffer for " + name + " holds only a part of a tensor, or several");
    }
    const auto any = static_cast<std::size_t>(std::ranges::find(dims, any_) - dims.begin());
    const bool has_any = any < dims.size();
    const std::size_t named = dims.size() - (has_any ? 1 : 0);
    const std::size_t given = view.extents->size();
    if (given < named || (!has_any && given > named)) {
      return refuse("the buffer for " + name + " has " + std::to_string(given) + " dims");
    }
    give_dims(tensor, *view.extents, any);
  }

  /// Extents before the dim number `any` and after those that it stands for belong to a dim each.
  void give_dims(int tensor, const Extents& extents, std::size_t any) {
    const std::vector<int>& dims = kernel_.tensors[at(tensor)].dims;
    const std::size_t behind = any < dims.size() ? dims.size() - any - 1 : 0;
    std::int64_t rest = 1;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      const std::size_t from_end = extents.size() - d;
      if (d < any) {
        give(tensor, dims[d], extents[d]);
      } else if (from_end > behind) {
        rest *= extents[d];
      } else {
        give(tensor, dims[dims.size() - from_end], extents[d]);
      }
    }
    if (any < dims.size()) give(tensor, any_, rest);
  }

  /// A dim may be like one that is itself like another.
  void follow_likes() {
    for (std::size_t d = 0; d < kernel_.dims.size(); ++d) {
      int like = static_cast<int>(d);
      for (std::size_t steps = 0; like >= 0 && steps <= kernel_.dims.size(); ++steps) {
        if (binding_.extents[at(like)] != kUnknown) break;
        like = kernel_.dims[at(like)].like;
      }
      if (like >= 0) binding_.extents[d] = binding_.extents[at(like)];
    }
  }

  const Kernel& kernel_;
  Binding binding_;
  int any_ = -1;
};

}  // namespace

Binding bind_kernel(const Kernel& kernel, const std::vector<BufferView>& tensors) {
  return Binder(kernel).run(tensors);
}

}  // namespace placet::ranks
