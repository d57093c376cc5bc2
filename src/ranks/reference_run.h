// The reference as a list of operations on whole tensors: forward, backward by the rules of
// program/adjoint.h, the sum over all uses of each value, the update (docs/theory.md §6.3).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "program/program.h"
#include "ranks/binding.h"
#include "ranks/operation.h"

namespace placet::ranks {

/// A tensor of the reference that lives on: a parameter, an optimizer state, a number of the step,
/// an input or the loss.
struct ReferenceTensor {
  std::string name;  // "layers.1.mlp.up.weight", "m of ...", "loss"
  StateRef ref;
  std::int64_t address = 0;
  Extents extents;
  std::vector<int> dims;   // logical
  std::int64_t below = 0;  // inputs that are compared with positions: they are drawn below this
};

/// Where in a tensor an address of its memory stands, by dim.
/// Case: extents [2 3] from address 10: address 14 is [1 1].
std::vector<std::int64_t> index_of(const ReferenceTensor& tensor, std::int64_t address);

/// One step: from parameters, states and inputs to new parameters and states in the same place.
struct ReferenceRun {
  OperationList list;
  std::vector<ReferenceTensor> tensors;
  /// The tensor that a piece of the initial state or of the results is, a shared one by its owner;
  /// null: there is none.
  const ReferenceTensor* find(const StateRef& ref, const Reference& reference) const;
};

/// Prepares one step of the program's reference. Kernels derived from it are kept in `adjoints`,
/// compiled ones in `library`. Throws InputError where its tensors do not fit its kernels.
class ReferenceBuilder {
 public:
  ReferenceBuilder(const Program& program, KernelLibrary& library);
  ReferenceRun build();

  /// The backward passes by kind; the run refers to their kernels.
  const std::vector<std::vector<BackwardApplication>>& backward() const { return backward_; }

 private:
  /// A tensor at an address; dims by position in Program::dims.
  struct Place {
    std::int64_t address = -1;
    Extents extents;
  };
  Extents extents_of(const std::vector<int>& dims) const;
  Place reserve(const std::vector<int>& dims);
  void place_inputs();
  void place_parameters(std::size_t unit);
  void place_values(std::size_t unit);
  Place stream_into(std::size_t unit) const;
  Place place_of(const ReferenceValue& value, std::size_t unit);
  void place_gradients();
  Place gradient_of(const Place& value);
  void bound_ids(std::size_t unit);
  void forward(std::size_t unit);
  void seed();
  void add_losses();
  void backward(std::size_t unit);
  void update();
  void place_numbers();
  Place sum_over_gradients(int measure);
  std::vector<Place> update_numbers();
  void adjust_numbers(const Place& overflows);
  Place gradient_of_parameter(std::size_t unit, std::size_t parameter);
  std::vector<Place> places_of(std::size_t unit, const std::vector<int>& values) const;
  static Binding bound(const Kernel& kernel, const std::vector<Place>& inputs,
                       const std::vector<Place>& outputs);
  Operation& call(const Kernel& kernel, const std::vector<Place>& inputs,
                  const std::vector<Place>& outputs);
  void zero(const Place& place);
  void add_to(const Place& target, const Place& share);
  const ReferenceKind& kind_of(std::size_t unit) const;
  const Kernel& kernel(int k) const;

  const Program& program_;
  const Reference& reference_;
  KernelLibrary& library_;
  std::vector<std::vector<BackwardApplication>> backward_;
  std::vector<std::vector<bool>> has_gradient_;
  ReferenceRun out_;
  std::vector<std::vector<Place>> values_;     // by unit and value
  std::vector<std::vector<Place>> gradients_;  // likewise; equal values share one
  std::map<std::int64_t, Place> gradient_at_;  // by address of the value
  Place count_;
  Place seeds_;
  Place loss_;
  std::vector<Place> numbers_;
};

/// What random numbers are drawn for: the draw of an application or an instruction.
std::uint64_t draw_number(const std::string& name, std::int64_t unit);

}  // namespace placet::ranks
