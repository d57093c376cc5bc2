// Writes one unit kind, operator by operator. Used by the builders in this folder only.
//
// A step function takes the positions of its input values and gives those of its outputs, so that a
// block reads as a straight line. Names of values begin with the operator's name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/architecture.h"
#include "model/model.h"

namespace placet {

/// A dim whose elements may be cut anywhere, one whose pieces may not be torn apart, and the open
/// extents of a micro-batch.
inline Dim dim(Index index, std::int64_t size) { return {index, size, size}; }
inline Dim dim(Index index, std::int64_t size, std::int64_t parts) { return {index, size, parts}; }
inline Dim samples() { return {Index::sample, 0, 1}; }
inline Dim tokens() { return {Index::token, 0, 1}; }
inline Dim key_tokens() { return {Index::key_token, 0, 1}; }

/// Where and what an operator is, apart from its tensors.
struct OperatorPlace {
  std::string name;
  Region region = Region::residual;
  Module module = Module::mlp;
  ClassSet classes = 0;  // of its parameters
};

/// One part of what a linear operator returns.
struct OutputPart {
  std::string name;
  Dim dim;
};

/// A contraction: out x in weights, and a bias of its own region. With `experts` (a dim of index
/// expert) it is one contraction per expert.
struct Contraction {
  Weights weights;
  Dim out;
  Dim in;
  std::vector<OutputPart> parts;  // empty: one, the whole of `out`
  WeightOrder order = WeightOrder::out_in;
  Region bias_region = Region::parallel;
  std::vector<Dim> experts;  // none or one
};

/// What an operator reads and makes: positions of values and parameters.
struct Tensors {
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::vector<int> parameters = {};
  std::vector<int> internals = {};
};

/// The dims of a contraction's parts, where they differ in index; else none.
std::vector<Dim> segments_of(const Contraction& what);

class UnitBuilder {
 public:
  /// `input` are the dims of value 0, sample and token excluded.
  UnitBuilder(UnitRole role, std::vector<Dim> input, ValueType input_type);

  /// Adds sample and token before `dims`.
  int value(std::string name, std::vector<Dim> dims, Region region,
            ValueType type = ValueType::compute);
  int parameter(std::string name, std::vector<Dim> dims, ClassSet classes);
  int parameter(Parameter p);
  void add(OpKind kind, const OperatorPlace& place, Tensors tensors);

  // --- operators that several builders need
  /// A norm of kind none returns its input. `statistics` are the dims of the statistics after
  /// sample and token, `weight` those of the parameters.
  int norm(const Norm& norm, OperatorPlace place, int input, const std::vector<Dim>& weight,
           std::vector<Dim> statistics = {});
  /// The operator and, where it has one, its bias.
  std::vector<int> linear(const OperatorPlace& place, int input, const Contraction& what);
  int linear_one(const OperatorPlace& place, int input, const Contraction& what);
  /// The contraction alone, and the bias alone (inputs and outputs pairwise alike).
  std::vector<int> contract(const OperatorPlace& place, std::vector<int> inputs,
                            const Contraction& what);
  std::vector<int> bias(OperatorPlace place, const std::vector<int>& inputs,
                        const Contraction& what);
  /// Elementwise operators return a value like their first input.
  int elementwise(OpKind kind, const OperatorPlace& place, std::vector<int> inputs,
                  std::string_view result);
  int gated_activation(const OperatorPlace& place, int gate, int up);
  int dropout(const std::string& name, int input, double probability, Module module);
  int residual_add(const std::string& name, std::vector<int> inputs, Region region, Module module);

  /// Dims of a value after sample and token.
  std::vector<Dim> dims_of(int value) const;
  Region region_of(int value) const { return at(value).region; }
  void set_window(std::int64_t window) { kind_.operators.back().window = window; }
  void set_caps_scores(bool caps) { kind_.operators.back().caps_scores = caps; }
  void set_recurrence(Recurrence recurrence) { kind_.operators.back().recurrence = recurrence; }
  void set_nonlinearity(Nonlinearity what) { kind_.operators.back().nonlinearity = what; }
  const std::vector<Parameter>& parameters() const { return kind_.parameters; }
  std::vector<Parameter>& parameters() { return kind_.parameters; }

  UnitKind take() && { return std::move(kind_); }

 private:
  const Value& at(int value) const { return kind_.values.at(static_cast<std::size_t>(value)); }

  UnitKind kind_;
};

}  // namespace placet
