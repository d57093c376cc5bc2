// The grammar of references.
#include <algorithm>
#include <optional>
#include <set>

#include "program/grammar.h"
#include "program/text_names.h"

namespace placet {
namespace {

class ReferenceGrammar {
 public:
  explicit ReferenceGrammar(Grammar& g) : g_(g), p_(g.program()), r_(g.program().reference) {}

  void check() {
    g_.go_to("reference");
    g_.require_names(r_.inputs, "an input");
    for (const ReferenceInput& input : r_.inputs) check_dims(input.dims, input.name);
    for (const std::string& choice : r_.choices) g_.require_text(choice, "a choice");
    check_step();
    for (const UpdateRule& rule : r_.rules) check(rule);
    check_rules_differ();
    g_.require_names(r_.kinds, "a kind");
    for (const ReferenceKind& kind : r_.kinds) check(kind);
    check_units();
    check_ties();
  }

 private:
  void go_to(const ReferenceKind& kind) {
    g_.go_to([&kind] { return "reference, kind '" + cut_short(kind.name) + "'"; });
  }

  void check_dims(const std::vector<int>& dims, const std::string& name) const {
    std::int64_t elements = 1;
    for (int d : dims) {
      g_.require_number(d, p_.dims.size(), "dim");
      const std::int64_t extent = p_.dims[as_index(d)].extent;
      g_.require(elements <= kMostElements / extent, name, "is too large");
      elements *= extent;
    }
  }

  // --- kernels of the step

  /// That a kernel takes and gives so many tensors.
  void require_shape(int kernel, int inputs, int outputs, const std::string& what) const {
    g_.require(kernel != -1, "", [&] { return what + " has no kernel"; });
    g_.require_number(kernel, p_.kernels.size(), "kernel");
    const Kernel& k = p_.kernels[as_index(kernel)];
    g_.require(
        k.inputs == inputs && k.outputs == outputs, k.name,
        [&] {
          return "takes " + std::to_string(k.inputs) + " and gives " + std::to_string(k.outputs);
        },
        [&] {
          return std::to_string(inputs) + " and " + std::to_string(outputs) + ", as " + what +
                 " does";
        });
  }

  void check_step() const {
    g_.require(
        r_.weights >= -1 && r_.weights < static_cast<int>(r_.inputs.size()),
        [&] { return std::to_string(r_.weights); }, "is the number of no input");
    const bool some = r_.count_kernel != -1 || r_.seed_kernel != -1 || r_.weights != -1;
    if (some) {
      g_.require(r_.weights >= 0, "", "the weights of tokens are missing", "weights INPUT");
      require_shape(r_.count_kernel, 1, 1, "the count of weights");
      require_shape(r_.seed_kernel, 2, 1, "the seed of gradients");
    }
    const bool scales = check_scaling();
    const bool limits = r_.norm_kernel != -1;
    if (limits) require_shape(r_.norm_kernel, 1, 1, "the norm of a gradient");
    if (limits || scales || r_.clip_kernel != -1) {
      g_.require(limits || scales, "", "a factor of gradients is made of nothing", "norm or scale");
      require_shape(r_.clip_kernel, (limits ? 1 : 0) + (scales ? 1 : 0), 1,
                    "the factor of gradients");
    }
  }

  /// Whether the loss is scaled: then all that belongs to it is there.
  bool check_scaling() const {
    const int numbers = static_cast<int>(r_.numbers.size());
    const bool some =
        numbers > 0 || r_.scale_kernel != -1 || r_.overflow_kernel != -1 || r_.adjust_kernel != -1;
    if (!some) return false;
    g_.require(numbers > 0, "", "the loss is scaled by no number", "number NAME");
    std::set<std::string> names;
    for (const std::string& number : r_.numbers) {
      g_.require_name(number, "a number");
      g_.require(names.insert(number).second, number, "is the name of two numbers");
    }
    require_shape(r_.scale_kernel, 2, 1, "the scale of the loss");
    require_shape(r_.overflow_kernel, 1, 1, "the overflow of a gradient");
    require_shape(r_.adjust_kernel, numbers + 1, numbers,
                  "the change of " + std::to_string(numbers) + " numbers");
    return true;
  }

  void check(const UpdateRule& rule) const {
    const int states = static_cast<int>(rule.states.size());
    const bool factor = r_.clip_kernel >= 0;
    const bool skips = r_.overflow_kernel >= 0;
    require_shape(rule.kernel, states + 2 + (factor ? 1 : 0) + (skips ? 1 : 0), states + 1,
                  "a rule with " + std::to_string(states) + " states" +
                      (factor ? ", a factor of gradients" : "") +
                      (skips ? ", a count of overflows" : ""));
    g_.require_distinct({rule.states.begin(), rule.states.end()}, "a state");
  }

  void check_rules_differ() const {
    std::set<int> kernels;
    for (const UpdateRule& rule : r_.rules) {
      g_.require(
          kernels.insert(rule.kernel).second,
          [&] { return p_.kernels[as_index(rule.kernel)].name; }, "is the kernel of two rules");
    }
  }

  // --- kinds

  void check(const ReferenceKind& kind) {
    go_to(kind);
    g_.require_names(kind.values, "a value");
    made_.assign(kind.values.size(), false);
    for (std::size_t v = 0; v < kind.values.size(); ++v) check_value(kind, static_cast<int>(v));
    for (const ReferenceParameter& p : kind.parameters) check_parameter(kind, p);
    check_stream(kind);
    for (const Application& a : kind.applications) check(kind, a);
    const auto unmade = std::ranges::find(made_, false);
    if (unmade != made_.end()) {
      g_.refuse(kind.values[static_cast<std::size_t>(unmade - made_.begin())].name, "is never made",
                "an input, a parameter, the stream or made by a kernel");
    }
    for (int v : {kind.stream_out, kind.loss}) {
      g_.require(
          v >= -1 && v < static_cast<int>(kind.values.size()), [&] { return std::to_string(v); },
          "is the number of no value");
    }
  }

  void check_value(const ReferenceKind& kind, int v) {
    const ReferenceValue& value = kind.values[as_index(v)];
    check_dims(value.dims, value.name);
    g_.require(value.input < 0 || value.parameter < 0, value.name, "is an input and a parameter");
    g_.require(value.input >= -1 && value.parameter >= -1, value.name,
               "is an input or parameter that is not there");
    if (value.input >= 0) {
      g_.require_number(value.input, r_.inputs.size(), "input");
      g_.require(r_.inputs[as_index(value.input)].dims == value.dims, value.name,
                 "has other dims than the input");
    }
    if (value.parameter >= 0) {
      g_.require_number(value.parameter, kind.parameters.size(), "parameter");
      g_.require(kind.parameters[as_index(value.parameter)].value == v, value.name,
                 "is a parameter that is another value");
    }
    made_[as_index(v)] = value.input >= 0 || value.parameter >= 0;
  }

  void check_parameter(const ReferenceKind& kind, const ReferenceParameter& p) const {
    g_.require_name(p.name, "a parameter");
    g_.require_number(p.value, kind.values.size(), "value");
    const int back = kind.values[as_index(p.value)].parameter;
    g_.require(back >= 0 && &kind.parameters[as_index(back)] == &p, p.name,
               "is a value that is another parameter");
    const bool unruled = !p.trainable && p.rule == 0 && r_.rules.empty();
    if (!unruled) g_.require_number(p.rule, r_.rules.size(), "rule");
  }

  void check_stream(const ReferenceKind& kind) {
    if (kind.stream_in == -1) return;
    g_.require_number(kind.stream_in, kind.values.size(), "value");
    g_.require(!made_[as_index(kind.stream_in)], kind.values[as_index(kind.stream_in)].name,
               "is the stream and an input or parameter");
    made_[as_index(kind.stream_in)] = true;
  }

  /// Extents of a kernel's dims where it is applied.
  struct Binding {
    std::vector<std::int64_t> extents;
    std::optional<std::vector<int>> any;  // what "..." stands for
  };

  void bind(const ReferenceKind& kind, const Kernel& kernel, int tensor, int v, Binding& b) const {
    const Kernel::Tensor& formal = kernel.tensors[as_index(tensor)];
    const ReferenceValue& value = kind.values[as_index(v)];
    if (formal.dims.size() == 1 && kernel.dims[as_index(formal.dims[0])].name == kAnyDims) {
      g_.require(!b.any || *b.any == value.dims, value.name,
                 [&] { return "has other dims than its neighbours in '" + kernel.name + "'"; });
      b.any = value.dims;
      return;
    }
    g_.require(
        formal.dims.size() == value.dims.size(), value.name,
        [&] { return "has " + std::to_string(value.dims.size()) + " dims"; },
        [&] {
          return std::to_string(formal.dims.size()) + " as '" + formal.name + "' of '" +
                 kernel.name + "'";
        });
    for (std::size_t i = 0; i < formal.dims.size(); ++i) {
      bind(kernel, formal.dims[i], value, value.dims[i], b);
    }
  }

  void bind(const Kernel& kernel, int formal, const ReferenceValue& value, int dim,
            Binding& b) const {
    std::int64_t& extent = b.extents[as_index(formal)];
    const LogicalDim& logical = p_.dims[as_index(dim)];
    for (int at = formal; extent == 0 && kernel.dims[as_index(at)].like >= 0;) {
      at = kernel.dims[as_index(at)].like;
      extent = b.extents[as_index(at)];
    }
    if (extent == 0) extent = logical.extent;
    g_.require(
        extent == logical.extent, value.name,
        [&] { return "has " + std::to_string(logical.extent) + " along " + logical.name; },
        [&] {
          return std::to_string(extent) + " as others have along '" +
                 kernel.dims[as_index(formal)].name + "' of '" + kernel.name + "'";
        });
  }

  void check(const ReferenceKind& kind, const Application& a) {
    g_.require_number(a.kernel, p_.kernels.size(), "kernel");
    const Kernel& kernel = p_.kernels[as_index(a.kernel)];
    g_.require_text(a.key, "a key");
    g_.require(
        static_cast<int>(a.inputs.size()) == kernel.inputs &&
            static_cast<int>(a.outputs.size()) == kernel.outputs,
        kernel.name,
        [&] {
          return "is given " + std::to_string(a.inputs.size()) + " and asked for " +
                 std::to_string(a.outputs.size());
        },
        [&] { return std::to_string(kernel.inputs) + " and " + std::to_string(kernel.outputs); });
    Binding binding{.extents = std::vector<std::int64_t>(kernel.dims.size(), 0), .any = {}};
    int tensor = 0;
    for (int v : a.inputs) {
      g_.require_number(v, kind.values.size(), "value");
      g_.require(made_[as_index(v)], kind.values[as_index(v)].name, "is used before it is made");
      bind(kind, kernel, tensor++, v, binding);
    }
    for (int v : a.outputs) {
      g_.require_number(v, kind.values.size(), "value");
      g_.require(!made_[as_index(v)], kind.values[as_index(v)].name, "is made twice");
      made_[as_index(v)] = true;
      bind(kind, kernel, tensor++, v, binding);
    }
  }

  // --- units

  const ReferenceKind& kind_of(std::size_t unit) const {
    return r_.kinds[as_index(r_.units[unit].kind)];
  }

  void check_units() {
    g_.go_to("reference, units");
    for (const ReferenceUnit& unit : r_.units) {
      g_.require_number(unit.kind, r_.kinds.size(), "kind");
      g_.require(
          unit.number >= 0, [&] { return std::to_string(unit.number); }, "is no number of a unit");
    }
    for (std::size_t u = 0; u < r_.units.size(); ++u) {
      const ReferenceKind& kind = kind_of(u);
      g_.require(kind.loss < 0 || r_.weights >= 0, kind.name,
                 "has a loss, and tokens have no weights", "weights INPUT, count and seed");
      const bool takes = kind.stream_in >= 0;
      const bool given = u > 0 && kind_of(u - 1).stream_out >= 0;
      g_.require(takes == given, kind.name, [&] {
        return takes ? "takes a stream that no unit before it gives"
                     : "does not take the stream of the unit before it";
      });
      if (!takes) continue;
      const ReferenceKind& before = kind_of(u - 1);
      g_.require(kind.values[as_index(kind.stream_in)].dims ==
                     before.values[as_index(before.stream_out)].dims,
                 kind.name, "takes a stream of other dims than the unit before it gives");
    }
    if (!r_.units.empty()) {
      const ReferenceKind& last = kind_of(r_.units.size() - 1);
      g_.require(last.stream_out < 0, last.name, "is the last unit and gives a stream to nobody");
    }
  }

  void check_ties() {
    for (const ReferenceKind& kind : r_.kinds) {
      go_to(kind);
      for (const ReferenceParameter& p : kind.parameters) {
        if (p.tied) check_tie(kind, p);
      }
    }
  }

  void check_tie(const ReferenceKind& kind, const ReferenceParameter& p) const {
    g_.require_number(p.tied->unit, r_.units.size(), "unit");
    const ReferenceKind& other = kind_of(as_index(p.tied->unit));
    g_.require_number(p.tied->parameter, other.parameters.size(), "parameter");
    const ReferenceParameter& owner = other.parameters[as_index(p.tied->parameter)];
    g_.require(!owner.tied, p.name, "is tied to a tensor that is tied itself");
    g_.require(kind.values[as_index(p.value)].dims == other.values[as_index(owner.value)].dims,
               p.name, "is tied to a tensor of other dims");
  }

  Grammar& g_;
  const Program& p_;
  const Reference& r_;
  std::vector<bool> made_;  // values of the kind
};

}  // namespace

void check_reference(Grammar& g) { ReferenceGrammar(g).check(); }

}  // namespace placet
