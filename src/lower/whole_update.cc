#include "lower/whole_update.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include "program/kernel_rounds.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

/// Tensors that a statement reads.
std::vector<int> read_by(const Statement& s) {
  std::vector<int> out;
  const auto note = [&](const Operand& o) { out.push_back(o.tensor); };
  std::ranges::for_each(s.operands, note);
  for (const Product& p : s.products) std::ranges::for_each(p.operands, note);
  return out;
}

/// A rule in three kernels: up to the matrix that is orthogonalised, that alone, and what follows.
class Parts {
 public:
  explicit Parts(const Kernel& rule) : rule_(rule) {
    const auto whole =
        std::ranges::find_if(rule.statements, [](const Statement& s) { return !s.whole.empty(); });
    ensure(whole != rule.statements.end(), "a rule of matrices sees one as a whole");
    matrix_ = *whole;
    given_ = whole->operands.front().tensor;
    made_ = whole->result.tensor;
  }

  int given() const { return given_; }
  int made() const { return made_; }

  KernelPart before() const {
    std::vector<int> results = outputs(false);
    const std::vector<Statement> statements = leading_to(joined(results, given_));
    std::vector<int> made = joined(std::move(results), given_);
    return named(part_of_kernel(rule_, statements, inputs_of(statements), made), "-direction");
  }

  KernelPart matrix() const {
    return named(part_of_kernel(rule_, {matrix_}, {given_}, {made_}), "-matrix");
  }

  KernelPart after() const {
    const std::vector<int> results = outputs(true);
    const std::vector<Statement> statements = leading_to(results);
    return named(part_of_kernel(rule_, statements, inputs_of(statements), results), "-step");
  }

 private:
  static std::vector<int> joined(std::vector<int> list, int one) {
    list.push_back(one);
    return list;
  }

  KernelPart named(KernelPart part, const char* mark) const {
    part.kernel.name = rule_.name + mark;
    validate(part.kernel);
    return part;
  }

  /// The statements from which these tensors follow, but for the matrix that is made whole.
  std::vector<Statement> leading_to(const std::vector<int>& tensors) const {
    std::vector<bool> needed(rule_.tensors.size(), false);
    for (const int t : tensors) needed[at(t)] = true;
    std::vector<Statement> out;
    for (const Statement& s : std::views::reverse(rule_.statements)) {
      if (!needed[at(s.result.tensor)] || s.result.tensor == made_) continue;
      for (const int t : read_by(s)) needed[at(t)] = true;
      out.push_back(s);
    }
    std::ranges::reverse(out);
    return out;
  }

  /// Outputs of the rule that follow from the matrix, or the others.
  std::vector<int> outputs(bool from_matrix) const {
    std::vector<bool> follows(rule_.tensors.size(), false);
    follows[at(made_)] = true;
    for (const Statement& s : rule_.statements) {
      const std::vector<int> read = read_by(s);
      const bool does = std::ranges::any_of(read, [&](int t) { return follows[at(t)]; });
      if (does) follows[at(s.result.tensor)] = true;
    }
    std::vector<int> out;
    for (int t = rule_.inputs; t < rule_.inputs + rule_.outputs; ++t) {
      if (follows[at(t)] == from_matrix) out.push_back(t);
    }
    return out;
  }

  /// What they read and none of them makes.
  std::vector<int> inputs_of(const std::vector<Statement>& statements) const {
    std::vector<int> out;
    for (int t = 0; at(t) < rule_.tensors.size(); ++t) {
      if (t >= rule_.inputs && t != made_) continue;
      const bool read = std::ranges::any_of(statements, [&](const Statement& s) {
        const std::vector<int> all = read_by(s);
        return std::ranges::find(all, t) != all.end();
      });
      if (read) out.push_back(t);
    }
    return out;
  }

  const Kernel& rule_;
  Statement matrix_;
  int given_ = 0;
  int made_ = 0;
};

/// A call of a part of the rule: what the rule has keeps its buffer.
class Calls {
 public:
  Calls(Writer& writer, const Kernel& rule, const Instruction& whole)
      : writer_(writer), rule_(rule), whole_(whole) {}

  /// `other`: the buffer of the one tensor of the part that the rule does not give.
  void write(InstructionKind kind, const KernelPart& part, const std::vector<BufferRef>& others) {
    Instruction call{.kind = kind};
    call.kernel = writer_.add_kernel(part.kernel);
    call.label = whole_.label;
    std::size_t other = 0;
    for (std::size_t i = 0; i < part.tensors.size(); ++i) {
      const int t = part.tensors[i];
      const bool given = t >= rule_.inputs + rule_.outputs;
      const BufferRef& ref = given              ? others.at(other++)
                             : t < rule_.inputs ? whole_.inputs.at(at(t))
                                                : whole_.outputs.at(at(t - rule_.inputs));
      (i < at(part.kernel.inputs) ? call.inputs : call.outputs).push_back(ref);
    }
    writer_.add(std::move(call));
  }

 private:
  Writer& writer_;
  const Kernel& rule_;
  const Instruction& whole_;
};

}  // namespace

AxisList put_together(const Lowering& in, const ParameterPlan& plan, std::size_t piece) {
  AxisList out;
  const auto& axes = in.job.placement.axes;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const How& how = how_of(axes[a], plan.source->classes, std::nullopt);
    if (how.cut != Cut::tensor || how.modes.optimizer != Mode::sharded_gather) continue;
    out = united(out, in.mesh.parts[a]);
  }
  AxisList cut;
  for (const Division& by : plan.spread[piece].by) cut = united(cut, axes_of(by));
  return common(cut, out);
}

void write_whole_update(Lowering& in, const ParameterPlan& plan, std::size_t piece,
                        const Instruction& whole, const AxisList& axes) {
  Writer& w = in.writer;
  const Kernel& rule = in.model.kernels[at(in.model.reference.rules[at(plan.rules[piece])].kernel)];
  const Parts parts(rule);
  Calls calls(w, rule, whole);
  Spread own = plan.spread[piece];
  own.partial.clear();
  std::vector<Division> together = own.by;
  for (Division& by : together) {
    for (AxisList& level : by) level = minus(level, axes);
    std::erase_if(by, [](const AxisList& level) { return level.empty(); });
  }
  Held given = w.make("direction." + plan.name, own, Dtype::fp32, Indexing::none);
  calls.write(InstructionKind::update, parts.before(), {given.buffer});
  Held all = w.brought(given, together, "direction." + plan.name);
  w.drop(given);
  Held made = w.make("orthogonal." + plan.name, all.spread, Dtype::fp32, Indexing::none);
  calls.write(InstructionKind::update, parts.matrix(), {all.buffer, made.buffer});
  w.drop(all);
  Held back = w.brought(made, own.by, "orthogonal." + plan.name);
  w.drop(made);
  calls.write(InstructionKind::update, parts.after(), {back.buffer});
  w.drop(back);
}

}  // namespace placet
