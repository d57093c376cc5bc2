#include "program/update_rules.h"

namespace placet {
namespace {

class RuleWriter {
 public:
  explicit RuleWriter(const RuleForm& form)
      : form_(form),
        dims_("[" + (form.matrix == nullptr ? "..." : form.matrix->dims) + "]"),
        mark_(form.number == 0 ? "" : "." + std::to_string(form.number)) {}

  std::string text() {
    if (form_.has_factor) line("h" + dims_ + " = g" + dims_ + " * c[]");
    const std::string g = (form_.has_factor ? "h" : "g") + dims_;
    std::string inputs = "p" + dims_;
    std::string outputs = "q" + dims_;
    const std::string with_g = dims_ + ", " + g;
    std::string states;
    for (std::size_t s = 0; s < form_.states.size(); ++s) {
      const std::string old = "s" + std::to_string(s);
      const std::string next = "t" + std::to_string(s);
      inputs += ", " + old + dims_;
      outputs += ", " + next + dims_;
      make(next, old, called("moment" + std::to_string(s), old + with_g));
      states.append(made(next)).append(dims_).append(", ");
    }
    if (form_.matrix != nullptr) states = orthogonalised(states + g) + ", ";
    make("q", "p", called("stepped", "p" + dims_ + ", " + states + g));
    inputs += ", g" + dims_;
    if (form_.has_factor) inputs += ", c[]";
    if (form_.may_be_skipped) inputs += ", f[]";
    return "kernel update" + mark_ + "(" + inputs + ") -> (" + outputs + ") {\n" + lines_ + "}";
  }

 private:
  void line(const std::string& text) { lines_ += " " + text + "\n"; }

  std::string called(const std::string& function, const std::string& operands) const {
    return function + mark_ + "(" + operands + ")";
  }

  std::string made(const std::string& result) const {
    return (form_.may_be_skipped ? "new." : "") + result;
  }

  /// What was made is taken unless the step is skipped.
  void make(const std::string& result, const std::string& old, const std::string& value) {
    line(made(result) + dims_ + " = " + value);
    if (!form_.may_be_skipped) return;
    line(result + dims_ + " = unless(" + old + dims_ + ", new." + result + dims_ + ", f[])");
  }

  /// The matrix that a step follows, of states and gradient.
  std::string orthogonalised(const std::string& of) {
    line("d" + dims_ + " = " + called("direction", of));
    line("u" + dims_ + " = orthogonal." + std::to_string(form_.matrix->rows) + "(d" + dims_ +
         "; whole " + form_.matrix->whole + ")");
    return "u" + dims_;
  }

  const RuleForm& form_;
  std::string dims_;
  std::string mark_;
  std::string lines_;
};

}  // namespace

std::string rule_kernel(const RuleForm& form) { return RuleWriter(form).text(); }

}  // namespace placet
