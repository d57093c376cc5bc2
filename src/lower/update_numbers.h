// Numbers of the whole step that its updates take: the factor that limits the gradients' norm or
// undoes the scale of the loss, the count of entries that overflowed (docs/theory.md §6.4). Inside
// of update_passes.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lower/class_passes.h"

namespace placet {

/// The gradient of one tensor as a device has it before the updates.
struct OwnGradient {
  const ParameterPlan* plan = nullptr;
  BufferRef buffer;
  AxisList left;             // axes that divide it by elements
  std::int64_t holders = 1;  // pipeline stages that have the same gradient
};

class UpdateNumbers {
 public:
  /// `layer_part`: the part of the mesh that divides layers; -1: none does.
  UpdateNumbers(Lowering& in, const UnitTable& table, int layer_part)
      : in_(in), w_(in.writer), table_(table), layer_part_(layer_part) {}

  /// Whether all gradients are looked at before the first update.
  bool needs_gradients() const;
  /// Writes the instructions that make the numbers.
  void make(const std::vector<OwnGradient>& gradients);
  /// What each update takes behind its gradient.
  const std::vector<BufferRef>& taken() const { return taken_; }
  /// After the last update: what lasts to the next step is brought up to date, the rest let go of.
  void finish();

 private:
  /// What a kernel of the reference gives of each gradient, summed over all of them and all
  /// devices.
  struct Sum {
    int kernel = -1;
    std::string name;
  };

  BufferRef make_number(const std::string& name);
  BufferRef sum_over(const Sum& sum, const std::vector<OwnGradient>& gradients);
  void add_part(const Sum& sum, const OwnGradient& gradient, const BufferRef& total);
  void add_scaled(const Sum& sum, const BufferRef& part, std::int64_t sharers,
                  const BufferRef& total);
  AxisList owner_axes(const ParameterPlan& plan) const;
  AxisList all_owners() const;
  std::int64_t sharers(const OwnGradient& gradient, std::size_t piece,
                       const AxisList& owners) const;
  void require_equal_sharers(const OwnGradient& gradient, const AxisList& owners) const;
  void call(int model_kernel, std::vector<BufferRef> inputs, std::vector<BufferRef> outputs,
            const std::string& label);

  Lowering& in_;
  Writer& w_;
  const UnitTable& table_;
  int layer_part_ = -1;
  std::vector<BufferRef> made_;  // numbers of this step only
  std::vector<BufferRef> taken_;
};

}  // namespace placet
