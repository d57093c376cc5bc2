// Attention whose keys and values go round a ring: rounds over their pieces in place of one call
// (docs/theory.md §6.4, "Keys round a ring"). Inside of lower/.
#pragma once

#include <string>
#include <vector>

#include "lower/unit_applications.h"
#include "lower/unit_values.h"
#include "program/kernel_rounds.h"

namespace placet {

/// One application of which the pieces of one dim go round a ring, n devices long.
///
/// In round r = 0..n-1 a device works on the piece of the device r places further on; before that
/// piece is worked on, it has been passed on from device to device r times. What the rounds give
/// for the device's own tokens is added up where it is. What they give for the piece goes round as
/// well, one round later: it begins in round 1, is passed on n-1 times in all and added to what
/// round 0 gave for the device's own piece.
/// Case: 3 devices, keys 0 1 2. Device 0 works on keys 0, 1, 2; the gradient of keys 0 begins on
/// device 2 (round 1), goes to device 1 (round 2) and home to device 0.
class Ring {
 public:
  /// `a.ring` is the dim of the pieces.
  Ring(Lowering& in, UnitValues& values, const Applied& a);

  /// Writes all rounds. `call`: the call with its inputs, without outputs; `passed`: axes along
  /// which inputs stay partial; `kept`: by output the buffer where it still is, which it is made
  /// into again if it lies alike, null: none. Gives what is made, by output of the application's
  /// kernel.
  std::vector<Held> write(const Instruction& call, const std::vector<AxisList>& passed,
                          std::vector<const Held*> kept = {});

 private:
  int axis() const { return axes_of(a_.by[at_ring()]).front(); }
  std::size_t at_ring() const { return static_cast<std::size_t>(a_.ring); }
  bool travels(int tensor) const;
  Spread spread_of(int tensor, std::int64_t round) const;
  std::string name_of(int tensor) const;
  Held make(int tensor, std::int64_t round, const std::string& mark);
  std::vector<Held> own_pieces() const;
  std::vector<Held> passed_on(const std::vector<Held>& pieces, const std::vector<int>& tensors,
                              std::int64_t round);
  void permute(const std::vector<Held>& from, const std::vector<Held>& to);
  void work(std::int64_t round, const std::vector<Held>& pieces);
  void add(Held& sum, Held& summand);
  void pass_gradients_on(std::int64_t round);
  void bring_home();
  void finish();
  std::vector<AxisList> partial_of(const KernelPart& part,
                                   const std::vector<AxisList>& inputs) const;

  Lowering& in_;
  Writer& w_;
  UnitValues& values_;
  const Applied& a_;
  const Kernel kernel_;
  std::vector<int> logical_;  // by dim of the kernel
  KernelRounds rounds_;
  std::int64_t devices_ = 1;
  int piece_kernel_ = -1;
  Instruction call_;
  std::vector<const Held*> kept_;  // by output
  std::vector<int> pieces_;        // inputs that go round
  std::vector<int> results_;       // by output of a round, the tensor
  std::vector<AxisList> partial_;  // of results, by tensor
  std::vector<Held> made_;         // by tensor
  std::vector<int> gradients_;     // results that go round
  std::vector<Held> travelling_;   // of these, what is under way
};

}  // namespace placet
