// Writes one kind of a reference, operator by operator. Inside of model_reference.cc,
// model_operators.cc and model_losses.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "program/model_reference.h"
#include "program/update_rules.h"

namespace placet {

using Dims = std::vector<int>;  // positions in ModelReference::dims

/// Throws InputError for a part of models that has no step program yet.
[[noreturn]] void refuse_part(const std::string& what);

/// Tensors of a kernel on their way to its text. Dims are named after logical ones; a name may be
/// changed for one tensor ("token" to "key").
class KernelWriter {
 public:
  KernelWriter(const std::vector<LogicalDim>& dims, std::string name)
      : dims_(dims), name_(std::move(name)) {}

  std::string named(int dim) const { return dims_[static_cast<std::size_t>(dim)].name; }

  std::int64_t extent(int dim) const { return dims_[static_cast<std::size_t>(dim)].extent; }

  /// "[sample token hidden]". `other`: dims that are called by that name with a mark.
  std::string list(const Dims& dims, const Dims& marked = {}) const {
    std::string text = "[";
    for (int d : dims) {
      if (text.size() > 1) text += ' ';
      text += named(d);
      if (std::ranges::find(marked, d) != marked.end()) text += "'";
    }
    return text + "]";
  }

  void input(const std::string& text) { inputs_.push_back(text); }
  void output(const std::string& text) { outputs_.push_back(text); }
  void line(const std::string& text) { lines_ += "  " + text + "\n"; }

  std::string text() const {
    return "kernel " + name_ + "(" + joined(inputs_) + ") -> (" + joined(outputs_) + ") {\n" +
           lines_ + "}\n";
  }

 private:
  static std::string joined(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
    return text;
  }

  const std::vector<LogicalDim>& dims_;
  std::string name_;
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
  std::string lines_;
};

/// All dims of both, without repeats; those of `a` that are not in `b`; both one after the other.
Dims with(Dims a, const Dims& b);
Dims without(Dims a, const Dims& b);
Dims joined(Dims a, const Dims& b);

/// The kind that is being written, with the dims and kernels of all kinds so far.
class KindBuilder {
 public:
  KindBuilder(ModelReference& out, const ReferenceRequest& request)
      : out_(out), request_(request) {}

  /// A prediction module stands behind the head, which hands it the stream that it takes itself.
  void set_predicts_further() { predicts_further_ = true; }
  void begin(const UnitKind& kind);
  void set_operator(int number) { operator_ = number; }
  /// Adds the kind to the reference.
  void finish();

  /// A dim of that name, index and extent, made if there is none.
  int dim(const std::string& name, Index index, std::int64_t extent, std::int64_t chosen = 0,
          std::int64_t outer = 1);
  Dims dims_of(const std::vector<Dim>& from);
  int sample() { return dim("sample", Index::sample, request_.samples); }
  int token() { return dim("token", Index::token, request_.tokens); }
  std::int64_t choices() const { return choices_of_kind_; }
  std::string names(const Dims& dims) const;

  const UnitKind& source() const { return *source_; }
  /// The reference's value for a value of the model, made at first use.
  int value_of(int v);
  /// A value that the model does not have.
  int inside(const std::string& name, const Dims& dims);
  const Dims& dims_at(int v) const { return kind_.values[static_cast<std::size_t>(v)].dims; }
  /// One parameter of the reference, a piece of parameter `p` of the model.
  int parameter(int p, const Dims& dims);
  int whole_parameter(int p);
  void set_input(int value, int input) {
    kind_.values[static_cast<std::size_t>(value)].input = input;
  }
  /// A loss of each token; a kind with several has their sum.
  void add_loss(int value);
  ReferenceRequest::Balance balance() const { return request_.balance; }

  /// A kernel for the i-th rule of the request; gives the number of the reference's rule.
  int add_rule(std::size_t i, const RuleMatrix* matrix);
  /// Whether some tensor holds several matrices, each of which has a rule of its own.
  bool fuses_matrices() const { return fuses_matrices_; }

  KernelWriter writer(const std::string& name) const { return {out_.dims, name}; }
  int add_kernel(const std::string& text);
  void apply(const KernelWriter& kernel, std::vector<int> inputs, std::vector<int> outputs,
             const std::string& key = {});

 private:
  /// Heads of the kind that is being built.
  struct Heads {
    std::int64_t kv = 0;  // key and value heads; 0: no attention
    bool has_kv = false;  // some dim has the index kv_head
  };

  void read_heads(const UnitKind& kind);
  void add_heads(const Dim& d, Dims& dims);
  void add_dim(const Dim& d, Dims& dims);
  int rule_of(int p, const Dims& dims);
  RuleMatrix matrix_of(const Parameter& parameter, const Dims& dims) const;

  ModelReference& out_;
  const ReferenceRequest& request_;
  std::map<std::string, int> known_;                   // kernels by text
  std::map<std::pair<int, std::string>, int> shaped_;  // rules of matrices by rule and dims
  Heads heads_;
  std::int64_t experts_ = 0, choices_of_kind_ = 0;
  const UnitKind* source_ = nullptr;
  ReferenceKind kind_;
  KindMap map_;
  int operator_ = 0;
  bool predicts_further_ = false;
  bool fuses_matrices_ = false;
};

/// Adds the kernels that an operator of the model is made of.
void add_operator(KindBuilder& unit, const Operator& op);

}  // namespace placet
