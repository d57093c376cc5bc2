// A unit forward, in its forward pass and once more in backward. Inside of lower/.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "lower/unit_applications.h"
#include "lower/unit_values.h"

namespace placet {

class UnitForward {
 public:
  UnitForward(Lowering& in, const UnitApplications& applications, UnitValues& values, int kind);

  /// The forward pass: from the stream to the stream, leaving what is kept.
  void write();
  /// What backward makes again from what is kept: values in `keep` stay, the rest passes by.
  void write_again(const std::set<int>& keep);

  /// The call of an application without its buffers.
  Instruction call(const Applied& a, InstructionKind plain) const;
  /// Partial inputs that may stay so: all that the kernel does with them is linear, and nothing
  /// there is divided by the axes in question. `inputs`: how each lies, none where it has to be
  /// complete.
  std::vector<AxisList> left_partial(const Applied& a,
                                     const std::vector<const Spread*>& inputs) const;

 private:
  enum class Pass : std::uint8_t { first, again };

  void run_all(const std::vector<bool>& runs, const std::set<int>& keep, Pass pass);
  std::map<int, std::size_t> last_uses(const std::vector<bool>& runs) const;
  void put_together_again(int v);
  /// Lets go of the values whose last use is an application, but for those to keep.
  void finish_after(std::size_t a, const std::map<int, std::size_t>& last,
                    const std::set<int>& keep, Pass pass);
  void run(const Applied& a, Pass pass);
  void divide_inputs(const Applied& a);
  BufferRef input_of(const Applied& a, std::size_t i, bool partial, Pass pass);
  void add_outputs(const Applied& a, Instruction instruction, const std::vector<AxisList>& passed,
                   Pass pass);
  void run_rounds(const Applied& a, const Instruction& instruction,
                  const std::vector<AxisList>& passed, Pass pass);
  InstructionKind kind_of(const Kernel& kernel, InstructionKind plain) const;
  Held made(int v, const Spread& spread, Pass pass);
  bool is_local(int v) const;
  AxisList sample_axes() const;
  void add_loss();
  void hand_on();

  Lowering& in_;
  Writer& w_;
  const UnitApplications& applications_;
  UnitValues& values_;
  const ReferenceKind& kind_;
  const UnitKind& source_;
  const KindMap& map_;
  std::map<int, std::vector<Division>>
      put_together_;  // sums of the first forward, for which layout
};

}  // namespace placet
