// The values and gradients of a unit while one of its procedures is written: which buffer holds
// them, how they lie, and when they go. Inside of lower/.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lower/parameters.h"
#include "lower/unit_applications.h"
#include "lower/unit_passes.h"

namespace placet {

/// A name as a word of the text form.
std::string word_of(std::string text);

class UnitValues {
 public:
  UnitValues(Lowering& in, const UnitParameters& parameters, int kind);

  bool is_parameter(int v) const {
    return kind_.values[static_cast<std::size_t>(v)].parameter >= 0;
  }
  std::string name_of(int v) const;
  /// The format of a value: that of the model's value, fp32 for those that only the reference has.
  Dtype dtype_of(int v) const;
  /// How a value is divided where operators work like that.
  std::vector<Division> divisions_at(int v, Place place) const;
  /// How the losses of tokens lie.
  Spread whole_loss() const;
  /// The buffer of a parameter as operators use it.
  BufferRef parameter_buffer(int v) const;
  BufferRef whole_of(const ParameterPlan& plan) const { return buffer_of(plan, plan.whole); }

  // --- values

  bool has(int v) const { return held_.contains(v); }
  const Held& held(int v) const { return held_.at(v); }
  void hold(int v, Held held) { held_[v] = std::move(held); }
  void forget(int v) { held_.erase(v); }
  /// The value divided like that, put together if it is partial.
  const Held& value(int v, const std::vector<Division>& by);
  /// Brings a value to another division for good.
  void bring(int v, const std::vector<Division>& by);
  /// The division of a value of which each device along more axes has a part of the tokens.
  std::vector<Division> parts_of(int v, const AxisList& axes) const;
  /// Brings a partial value to another division for good, before it is known whether it may stay
  /// partial.
  void divide(int v, const std::vector<Division>& by);
  /// Lets go of a value after its last use. Those in `keep` stay, parts of sums as they are.
  void finish(int v, const std::set<int>& keep);
  /// Values that are kept in all divisions in which they are there.
  void keep_copies_of(const std::set<int>& values) { kept_copies_ = &values; }
  /// A value in all divisions in which it is there, its own first; and these held again, by holders
  /// of their own.
  std::vector<Held> all_of(int v) const;
  void hold_again(int v, std::vector<Held> all);
  /// Copies a value to host memory, in all its divisions, or back, and lets go of it there.
  void move_to(Medium medium, int v);
  /// Lets go of what was made of a value in other divisions, if that is not kept.
  void drop_copies(int v);
  /// A new buffer for a value.
  Held make(int v, const Spread& spread);

  // --- gradients

  void hold_gradient(int v, Held held) { gradients_[v] = {std::move(held)}; }
  const std::vector<Held>& gradients(int v) { return gradients_[v]; }
  /// Adds a share to a value's gradient: to one that lies alike, or beside the others. `stays`: the
  /// sum is to be in the share's buffer.
  void give(int v, Held share, bool stays = false);
  /// The gradient of a value, divided like that. Partial only where `passes`.
  Held& gradient(int v, const std::vector<Division>& by, bool passes);
  /// A gradient divided as the application needs it, before it is known whether it may stay
  /// partial.
  void divide_gradient(int v, const Applied& a);
  void drop_gradient(int v);
  /// Gradients that nothing further back asks for, but for that of `v`.
  void drop_gradients_except(int v);

  /// Forgets everything: a procedure ends.
  void clear();

 private:
  Held held_input(int v) const;
  void add_up(Held& sum, Held& share, int v);

  Lowering& in_;
  Writer& w_;
  const UnitParameters& parameters_;
  const ReferenceKind& kind_;
  const UnitKind& source_;
  const KindMap& map_;
  std::map<int, Held> held_;
  std::map<int, std::vector<Held>> copies_;  // values divided otherwise
  std::map<int, std::vector<Held>> gradients_;
  const std::set<int>* kept_copies_ = nullptr;
};

}  // namespace placet
