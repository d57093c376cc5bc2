#include <algorithm>
#include <utility>

#include "program/text.h"
#include "program/text_names.h"

namespace placet {
namespace {

/// The value of a kind that is the parameter; null where there is none.
const ReferenceValue* value_of(const ReferenceKind& kind, int parameter) {
  if (parameter < 0 || as_index(parameter) >= kind.parameters.size()) return nullptr;
  const int value = kind.parameters[as_index(parameter)].value;
  if (value < 0 || as_index(value) >= kind.values.size()) return nullptr;
  return &kind.values[as_index(value)];
}

const ReferenceKind* kind_of(const Reference& r, int unit) {
  if (unit < 0 || as_index(unit) >= r.units.size()) return nullptr;
  const int kind = r.units[as_index(unit)].kind;
  if (kind < 0 || as_index(kind) >= r.kinds.size()) return nullptr;
  return &r.kinds[as_index(kind)];
}

std::string parameter_name(const Reference& r, int unit, int parameter) {
  const ReferenceKind* kind = kind_of(r, unit);
  const ReferenceValue* value = kind == nullptr ? nullptr : value_of(*kind, parameter);
  return value == nullptr ? unknown_name(parameter) : spelled(value->name);
}

std::string state_name(const Reference& r, const StateRef& ref) {
  const ReferenceKind* kind = kind_of(r, ref.unit);
  if (kind == nullptr || value_of(*kind, ref.tensor) == nullptr) return unknown_name(ref.state);
  const int rule = kind->parameters[as_index(ref.tensor)].rule;
  if (rule < 0 || as_index(rule) >= r.rules.size()) return unknown_name(ref.state);
  const std::vector<std::string>& states = r.rules[as_index(rule)].states;
  if (ref.state < 0 || as_index(ref.state) >= states.size()) return unknown_name(ref.state);
  return spelled(states[as_index(ref.state)]);
}

class ReferenceWriter {
 public:
  explicit ReferenceWriter(const Program& program) : p_(program), r_(program.reference) {}

  std::string write() {
    out_ = "{\n";
    for (const ReferenceInput& input : r_.inputs) {
      line(1, "input " + spelled(input.name) + dims_text(input.dims));
    }
    write_step();
    for (const UpdateRule& rule : r_.rules) write(rule);
    for (const ReferenceKind& kind : r_.kinds) write(kind);
    write_units();
    for (const std::string& choice : r_.choices) line(1, "choice " + quoted(choice));
    return std::move(out_) + "}";
  }

 private:
  void line(int depth, const std::string& text) {
    out_.append(2 * as_index(depth), ' ');
    out_ += text + "\n";
  }

  std::string dims_text(const std::vector<int>& dims) const {
    std::string text = "[";
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (i > 0) text += ' ';
      text += name_at(p_.dims, dims[i]);
    }
    return text + "]";
  }

  void write_step() {
    if (r_.weights >= 0) line(1, "weights " + name_at(r_.inputs, r_.weights));
    const auto kernel = [&](const char* word, int number) {
      if (number >= 0) line(1, word + name_at(p_.kernels, number));
    };
    kernel("count ", r_.count_kernel);
    kernel("seed ", r_.seed_kernel);
    kernel("norm ", r_.norm_kernel);
    kernel("clip ", r_.clip_kernel);
    for (const std::string& number : r_.numbers) line(1, "number " + spelled(number));
    kernel("scale ", r_.scale_kernel);
    kernel("overflow ", r_.overflow_kernel);
    kernel("adjust ", r_.adjust_kernel);
  }

  void write(const UpdateRule& rule) {
    std::string text = "rule " + name_at(p_.kernels, rule.kernel);
    for (std::size_t s = 0; s < rule.states.size(); ++s) {
      text += (s == 0 ? " keeps " : ", ") + spelled(rule.states[s]);
    }
    line(1, text);
  }

  /// Whether parameters are numbered as their values are.
  static bool in_order(const ReferenceKind& kind) {
    for (std::size_t i = 1; i < kind.parameters.size(); ++i) {
      if (kind.parameters[i].value <= kind.parameters[i - 1].value) return false;
    }
    return true;
  }

  void write(const ReferenceKind& kind) {
    line(1, "kind " + spelled(kind.name) + " {");
    const bool together = in_order(kind);
    next_ = 0;
    for (const Application& application : kind.applications) write(kind, application, together);
    declare_to(kind, static_cast<int>(kind.values.size()), together);
    if (!together) {
      for (const ReferenceParameter& p : kind.parameters) {
        line(2, "parameter " + name_at(kind.values, p.value) + parameter_text(kind, p));
      }
    }
    if (kind.stream_out >= 0) line(2, "out " + name_at(kind.values, kind.stream_out));
    if (kind.loss >= 0) line(2, "loss " + name_at(kind.values, kind.loss));
    line(1, "}");
  }

  /// Values up to a number that are not written yet, each on a line of its own.
  void declare_to(const ReferenceKind& kind, int end, bool together) {
    for (; next_ < end; ++next_) {
      const ReferenceValue& v = kind.values[as_index(next_)];
      const std::string text = spelled(v.name) + dims_text(v.dims);
      if (v.input >= 0) {
        const std::string of = name_at(r_.inputs, v.input);
        line(2, "input " + text + (of == spelled(v.name) ? std::string() : " of " + of));
      } else if (next_ == kind.stream_in) {
        line(2, "stream " + text);
      } else if (v.parameter >= 0 && together) {
        line(2,
             "parameter " + text + parameter_text(kind, kind.parameters.at(as_index(v.parameter))));
      } else {
        line(2, "value " + text);
      }
    }
  }

  std::string parameter_text(const ReferenceKind& kind, const ReferenceParameter& p) const {
    const bool usual = kind.values.at(as_index(p.value)).name == p.name;
    std::string text = usual ? std::string() : " as " + quoted(p.name);
    if (r_.rules.size() > 1) text += " by " + name_of_rule(p.rule);
    if (!p.trainable) text += " frozen";
    if (p.tied) {
      text += " tied to " + parameter_name(r_, p.tied->unit, p.tied->parameter) + " of unit " +
              std::to_string(p.tied->unit);
    }
    return text;
  }

  std::string name_of_rule(int rule) const {
    if (rule < 0 || as_index(rule) >= r_.rules.size()) return unknown_name(rule);
    return name_at(p_.kernels, r_.rules[as_index(rule)].kernel);
  }

  /// Whether the outputs come next in the order of values, so that they are declared where they are
  /// made.
  bool declares(const ReferenceKind& kind, const Application& a) const {
    if (a.outputs.empty() || a.outputs[0] < next_) return false;
    for (std::size_t o = 0; o < a.outputs.size(); ++o) {
      const int v = a.outputs[o];
      if (v != a.outputs[0] + static_cast<int>(o) || as_index(v) >= kind.values.size())
        return false;
      if (!plain(kind, v)) return false;
    }
    return true;
  }

  void write(const ReferenceKind& kind, const Application& a, bool together) {
    declare_to(kind, end_of(kind, a.inputs), together);
    const bool here = declares(kind, a);
    declare_to(kind, here ? a.outputs[0] : end_of(kind, a.outputs), together);
    std::string text;
    for (int v : a.outputs) {
      if (!text.empty()) text += ", ";
      text += name_at(kind.values, v);
      if (here) text += dims_text(kind.values[as_index(v)].dims);
    }
    if (here) next_ = a.outputs.back() + 1;
    text += " = " + name_at(p_.kernels, a.kernel) + "(";
    for (std::size_t i = 0; i < a.inputs.size(); ++i) {
      if (i > 0) text += ", ";
      text += name_at(kind.values, a.inputs[i]);
    }
    text += ")";
    if (!a.key.empty()) text += " key " + spelled(a.key);
    line(2, text);
  }

  /// One beyond the last of some values.
  static int end_of(const ReferenceKind& kind, const std::vector<int>& values) {
    int end = 0;
    for (int v : values) end = std::max(end, v + 1);
    return std::min(end, static_cast<int>(kind.values.size()));
  }

  static bool plain(const ReferenceKind& kind, int v) {
    const ReferenceValue& value = kind.values[as_index(v)];
    return value.input < 0 && value.parameter < 0 && v != kind.stream_in;
  }

  /// "units embedding, block 0..31, head": units of a kind with numbers that follow each other
  /// stand together; 0 goes without saying.
  void write_units() {
    std::string text;
    for (std::size_t i = 0; i < r_.units.size();) {
      std::size_t last = i;
      while (last + 1 < r_.units.size() && r_.units[last + 1].kind == r_.units[i].kind &&
             r_.units[last + 1].number == r_.units[last].number + 1) {
        ++last;
      }
      text += text.empty() ? "units " : ", ";
      text += name_at(r_.kinds, r_.units[i].kind);
      if (last > i || r_.units[i].number != 0) text += " " + std::to_string(r_.units[i].number);
      if (last > i) text += ".." + std::to_string(r_.units[last].number);
      i = last + 1;
    }
    if (!text.empty()) line(1, text);
  }

  const Program& p_;
  const Reference& r_;
  std::string out_;
  int next_ = 0;  // the first value of the kind that is not written yet
};

}  // namespace

std::string state_text(const Program& program, const StateRef& state) {
  const Reference& r = program.reference;
  switch (state.kind) {
    case StateRef::Kind::parameter:
      return "parameter " + parameter_name(r, state.unit, state.tensor);
    case StateRef::Kind::state:
      return "state " + state_name(r, state) + " of " + parameter_name(r, state.unit, state.tensor);
    case StateRef::Kind::input:
      return "input " + name_at(r.inputs, state.tensor);
    case StateRef::Kind::zero:
      return "zero";
    case StateRef::Kind::loss:
      return "loss";
    case StateRef::Kind::number: {
      const bool known = state.tensor >= 0 && as_index(state.tensor) < r.numbers.size();
      return "number " +
             (known ? spelled(r.numbers[as_index(state.tensor)]) : unknown_name(state.tensor));
    }
  }
  return {};
}

std::string reference_text(const Program& program) { return ReferenceWriter(program).write(); }

}  // namespace placet
