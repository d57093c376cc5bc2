// The values of the reference: what parameters and optimizer state are after a step
// (docs/theory.md §6.6). Inside of check/.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "check/kernel_values.h"

namespace placet {

class ReferenceValues {
 public:
  using Key = std::tuple<int, int, int>;  // unit, parameter, state (-1: the parameter)

  /// What is known after a step.
  struct After {
    std::map<Key, NodeId> state;
    std::vector<NodeId> inputs;  // samples of the step
    std::vector<NodeId> numbers;
    Tensor loss;
  };

  ReferenceValues(const Program& program, Nodes& nodes, KernelValues& kernels);
  /// The same of steps that were worked out before, whose nodes `nodes` has. `known` must outlive
  /// it.
  ReferenceValues(const Program& program, Nodes& nodes, KernelValues& kernels,
                  const std::vector<After>& known);

  /// What the state is before the first step and after each `advance`: one complete node.
  NodeId value_of(const StateRef& ref) const;
  /// Goes on by one step. Inputs are those of the step that was run last, before the first one
  /// its own.
  void advance();
  int step() const { return step_; }
  const After& after() const { return now_; }

  /// The dims of a state's tensor.
  const std::vector<int>& dims_of(const StateRef& ref) const;
  /// "layers.3.self_attn.q_proj.weight".
  std::string name_of(const StateRef& ref) const;

 private:
  static ContentView view(const Tensor& tensor) { return {.pieces = {&tensor, 1}}; }
  Tensor whole(NodeId node, const std::vector<int>& dims) const;
  std::string with_number(std::size_t unit, std::string name) const;
  void name_values(std::size_t unit, const std::vector<Tensor>& values, const std::string& prefix);
  std::vector<Tensor> call(const Kernel& kernel, const std::vector<ContentView>& inputs,
                           const std::string& key, const std::vector<std::vector<int>>& results);
  std::vector<Tensor> call(int kernel, const std::vector<Tensor>& inputs);
  Key key_of(int unit, int parameter) const;
  void bring_samples();
  void forward(std::size_t unit);
  void backward(std::size_t unit);
  void begin_state(int unit, int parameter);
  Tensor begin_backward(const Tensor& losses);
  void go_back(std::size_t unit, const BackwardApplication& b, std::vector<Tensor>& gradients);
  Tensor scaled(const Tensor& gradient);
  void name(const Tensor& tensor, const std::string& text);
  Tensor sum_over_gradients(int kernel, const std::string& text);
  std::vector<Tensor> update_numbers();
  void adjust_numbers(const Tensor& overflows);
  void update();
  const ReferenceKind& kind_of(std::size_t unit) const;

  const Program& program_;
  Nodes& nodes_;
  KernelValues& kernels_;
  const std::vector<After>* known_ = nullptr;  // by step, as far as they are
  int step_ = 0;
  After now_;  // before the first step, then after the one that was run last
  std::vector<std::vector<BackwardApplication>> backward_;  // by kind
  Tensor stream_;
  std::vector<std::vector<Tensor>> values_;  // of the step, by unit
  std::map<Key, Tensor> gradients_;
};

/// What random numbers are drawn for, as part of a node.
std::string draw_key(const std::string& name, std::int64_t unit, int step);

}  // namespace placet
