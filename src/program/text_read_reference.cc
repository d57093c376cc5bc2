// The reader of the reference.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "program/text_names.h"
#include "program/text_reader.h"

namespace placet {
namespace {

constexpr std::size_t kMostValues = 65536;
constexpr std::size_t kMostRules = 1024;

class ReferenceReader {
 public:
  explicit ReferenceReader(ProgramReader& r) : r_(r), in_(r.in), reference_(r.program.reference) {}

  void read() {
    in_.expect("{");
    while (!in_.take("}")) read_item();
    for (const Tied& tied : ties_) resolve(tied);
  }

 private:
  struct Tied {
    int kind = 0;
    int parameter = 0;
    std::string to;
    int unit = 0;
    Tokens at;  // for the message
  };

  void read_item() {
    static const std::vector<std::string> kItems = {
        "input", "weights",  "count",  "seed", "norm", "clip",  "number",
        "scale", "overflow", "adjust", "rule", "kind", "units", "choice"};
    if (in_.take("input")) return read_input();
    if (in_.take("weights")) {
      reference_.weights = r_.inputs.expect(in_);
    } else if (in_.take("number")) {
      reference_.numbers.push_back(r_.numbers.name(r_.numbers.declare(in_)));
    } else if (in_.take("choice")) {
      reference_.choices.push_back(in_.expect_text("a choice in words"));
    } else if (in_.take("rule")) {
      read_rule();
    } else if (in_.take("kind")) {
      read_kind();
    } else if (in_.take("units")) {
      read_units();
    } else if (!read_step_kernel()) {
      const std::string word(in_.token());
      in_.next();
      std::string allowed;
      for (const std::string& item : kItems) allowed += item + ", ";
      in_.refuse_unknown(word, allowed.substr(0, allowed.size() - 2) + " or }", kItems);
    }
  }

  /// "norm squares": a kernel of the step. False: no such word stands here.
  bool read_step_kernel() {
    using Field = int Reference::*;
    static constexpr std::array<std::pair<std::string_view, Field>, 7> kKernels = {
        {{"count", &Reference::count_kernel},
         {"seed", &Reference::seed_kernel},
         {"norm", &Reference::norm_kernel},
         {"clip", &Reference::clip_kernel},
         {"scale", &Reference::scale_kernel},
         {"overflow", &Reference::overflow_kernel},
         {"adjust", &Reference::adjust_kernel}}};
    for (const auto& [word, field] : kKernels) {
      if (!in_.take(word)) continue;
      reference_.*field = r_.kernels.expect(in_);
      return true;
    }
    return false;
  }

  std::vector<int> read_dims() {
    std::vector<int> dims;
    in_.expect("[");
    while (!in_.take("]")) {
      dims.push_back(r_.dims.expect(in_));
      if (dims.size() > kMostDims)
        in_.refuse("follows too many dims of one tensor", std::to_string(kMostDims));
    }
    return dims;
  }

  void read_input() {
    ReferenceInput input{.name = r_.inputs.name(r_.inputs.declare(in_))};
    input.dims = read_dims();
    reference_.inputs.push_back(std::move(input));
  }

  void read_rule() {
    UpdateRule rule{.kernel = r_.kernels.expect(in_)};
    if (rule_of(rule.kernel) >= 0) {
      in_.refuse_name(r_.kernels.name(rule.kernel), "is the kernel of a rule already");
    }
    if (in_.take_keyword("keeps")) {
      do {
        rule.states.push_back(in_.expect_name("a state of the optimizer"));
      } while (in_.take(","));
    }
    if (reference_.rules.size() >= kMostRules)
      in_.refuse("follows too many rules", std::to_string(kMostRules));
    reference_.rules.push_back(std::move(rule));
  }

  int rule_of(int kernel) const {
    const auto found = std::ranges::find(reference_.rules, kernel, &UpdateRule::kernel);
    return found == reference_.rules.end() ? -1
                                           : static_cast<int>(found - reference_.rules.begin());
  }

  // --- kinds

  void read_kind() {
    kind_ = {.name = r_.kinds.name(r_.kinds.declare(in_))};
    values_ = NameTable("a value of the unit");
    in_.expect("{");
    while (!in_.take("}")) read_line();
    reference_.kinds.push_back(std::move(kind_));
    r_.values.push_back(std::move(values_));
  }

  void read_line() {
    if (kind_.values.size() > kMostValues)
      in_.refuse("follows too many values of one kind", std::to_string(kMostValues));
    if (take("value")) {
      declare();
    } else if (take("input")) {
      read_value_of_input();
    } else if (take("parameter")) {
      read_parameter();
    } else if (take("stream")) {
      refuse_second(kind_.stream_in);
      kind_.stream_in = declare();
    } else if (take("out")) {
      refuse_second(kind_.stream_out);
      kind_.stream_out = values_.expect(in_);
    } else if (take("loss")) {
      refuse_second(kind_.loss);
      kind_.loss = values_.expect(in_);
    } else {
      read_application();
    }
  }

  /// A word that begins a line of its own and is not a value.
  bool take(std::string_view word) { return in_.next_begins() != ',' && in_.take_keyword(word); }

  void refuse_second(int known) {
    if (known >= 0)
      in_.refuse("is the second of its sort", "one stream in, one stream out, one loss");
  }

  int declare() {
    ReferenceValue value{.name = values_.name(values_.declare(in_))};
    value.dims = read_dims();
    kind_.values.push_back(std::move(value));
    return static_cast<int>(kind_.values.size()) - 1;
  }

  void read_value_of_input() {
    const int value = declare();
    const std::string name =
        in_.take_keyword("of") ? in_.expect_name("an input of the reference") : values_.name(value);
    const int input = r_.inputs.find(name);
    if (input < 0) in_.refuse_unknown(name, "an input of the reference", r_.inputs.names());
    kind_.values[as_index(value)].input = input;
  }

  /// A parameter with the value that it is, or of a value that stands above.
  void read_parameter() {
    const int value = in_.next_begins() == '[' ? declare() : values_.expect(in_);
    ReferenceValue& v = kind_.values[as_index(value)];
    if (v.parameter >= 0) in_.refuse_name(v.name, "is a parameter already");
    v.parameter = static_cast<int>(kind_.parameters.size());
    kind_.parameters.push_back({.name = v.name, .value = value});
    ReferenceParameter& p = kind_.parameters.back();
    if (in_.take_keyword("as")) p.name = in_.expect_text("the name of the tensor");
    if (in_.take_keyword("by")) {
      const int kernel = r_.kernels.expect(in_);
      p.rule = rule_of(kernel);
      if (p.rule < 0) in_.refuse_name(r_.kernels.name(kernel), "is no rule");
    }
    p.trainable = !in_.take_keyword("frozen");
    if (in_.take_keyword("tied")) read_tie();
  }

  void read_tie() {
    in_.expect("to");
    Tied tied{.kind = static_cast<int>(reference_.kinds.size()),
              .parameter = static_cast<int>(kind_.parameters.size()) - 1,
              .to = in_.expect_name("a parameter"),
              .unit = 0,
              .at = in_};
    in_.expect("of");
    in_.expect("unit");
    tied.unit = static_cast<int>(read_number(in_, "a unit", 0, (std::int64_t{1} << 31) - 1));
    ties_.push_back(std::move(tied));
  }

  void resolve(const Tied& tied) {
    if (as_index(tied.unit) >= reference_.units.size()) {
      tied.at.refuse_name(tied.to,
                          "is of unit " + std::to_string(tied.unit) + ", which is not there");
    }
    const std::size_t kind = as_index(reference_.units[as_index(tied.unit)].kind);
    const int value = r_.values[kind].find(tied.to);
    const int parameter = value < 0 ? -1 : reference_.kinds[kind].values[as_index(value)].parameter;
    if (parameter < 0) {
      tied.at.refuse_name(tied.to, "is no parameter of unit " + std::to_string(tied.unit));
    }
    reference_.kinds[as_index(tied.kind)].parameters[as_index(tied.parameter)].tied = {
        .unit = tied.unit, .parameter = parameter};
  }

  /// "y[sample token] = f(x, w)": an output with dims is declared here.
  void read_application() {
    Application a;
    do {
      a.outputs.push_back(in_.next_begins() == '[' ? declare() : values_.expect(in_));
      if (kind_.values.size() > kMostValues)
        in_.refuse("follows too many values of one kind", std::to_string(kMostValues));
    } while (in_.take(","));
    in_.expect("=");
    a.kernel = r_.kernels.expect(in_);
    in_.expect("(");
    while (!in_.take(")")) {
      if (!a.inputs.empty()) in_.expect(",");
      a.inputs.push_back(values_.expect(in_));
    }
    if (in_.take_keyword("key")) a.key = in_.expect_name("what the numbers are drawn for");
    kind_.applications.push_back(std::move(a));
  }

  // --- units

  void read_units() {
    constexpr std::int64_t kMostPosition = (std::int64_t{1} << 31) - 1;
    do {
      const int kind = r_.kinds.expect(in_);
      std::int64_t first = 0;
      if (in_.kind() == Tokens::Kind::integer)
        first = read_number(in_, "a number", 0, kMostPosition);
      const std::int64_t last =
          in_.take("..") ? read_number(in_, "a number", first, kMostPosition) : first;
      r_.count_expanded(last - first + 1);
      for (std::int64_t n = first; n <= last; ++n) {
        reference_.units.push_back({.kind = kind, .number = static_cast<int>(n)});
      }
    } while (in_.take(","));
  }

  ProgramReader& r_;
  Tokens& in_;
  Reference& reference_;
  ReferenceKind kind_;
  NameTable values_{""};
  std::vector<Tied> ties_;
};

}  // namespace

void read_reference(ProgramReader& r) {
  if (!r.program.reference.kinds.empty() || !r.program.reference.inputs.empty()) {
    r.in.refuse("begins a second reference", "one");
  }
  ReferenceReader(r).read();
}

}  // namespace placet
