#include "program/rewrite.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <set>

#include "program/fault.h"
#include "program/fault_parts.h"
#include "program/text_names.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr int kSteps = 2;  // that a program is judged over

struct Rewrite {
  std::string text;
  std::string where;
  std::string name;
  std::vector<std::string> arguments;

  [[noreturn]] void fail(const std::string& value, const std::string& problem,
                         const std::string& allowed) const {
    throw InputError({.where = where + ": rewrite \"" + text + "\"",
                      .value = value,
                      .problem = problem,
                      .allowed = allowed});
  }

  std::int64_t number(std::size_t i, std::int64_t least) const {
    std::int64_t value = 0;
    const std::string& word = arguments[i];
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || rest != word.data() + word.size() || value < least) {
      fail(word, "is no number of steps", "a whole number from " + std::to_string(least) + " on");
    }
    return value;
  }

  int axis(const Program& program, std::size_t i) const {
    const auto axes = axes_named(program, arguments[i]);
    if (!axes || axes->size() != 1) fail(arguments[i], "is no axis", "an axis of the program");
    return axes->front();
  }
};

Rewrite read(const std::string& text, const std::string& where) {
  Rewrite out{.text = text, .where = where, .name = {}, .arguments = {}};
  const std::size_t open = text.find('(');
  if (open == std::string::npos || !text.ends_with(')')) {
    out.fail(text, "is no rewrite", "every(AXIS, H), mix(AXIS), stale(K) or a fault");
  }
  out.name = text.substr(0, open);
  std::string word;
  for (const char c : text.substr(open + 1)) {
    if (c == ',' || c == ')') {
      out.arguments.push_back(std::move(word));
      word.clear();
    } else if (c != ' ') {
      word += c;
    }
  }
  return out;
}

void require_arguments(const Rewrite& rewrite, std::size_t count) {
  if (rewrite.arguments.size() == count) return;
  rewrite.fail(rewrite.text, "has another number of arguments", std::to_string(count));
}

using Edit = std::function<std::vector<Step>(Instruction)>;

/// The body with each instruction replaced by what `edit` makes of it.
std::vector<Step> edited(const std::vector<Step>& body, const Edit& edit) {
  std::vector<Step> out;
  for (const Step& step : body) {
    if (const auto* instruction = std::get_if<Instruction>(&step.what)) {
      for (Step& made : edit(*instruction)) out.push_back(std::move(made));
    } else if (const auto* loop = std::get_if<Loop>(&step.what)) {
      Loop again = *loop;
      again.body = edited(loop->body, edit);
      out.push_back({std::move(again)});
    } else {
      out.push_back(step);
    }
  }
  return out;
}

void edit_all(Program& program, const Edit& edit) {
  for (Procedure& p : program.procedures) p.body = edited(p.body, edit);
  for (DeviceClass& c : program.classes) c.body = edited(c.body, edit);
}

bool holds_parameter(const Initial& initial) {
  return std::ranges::any_of(
      initial.pieces, [](const StateRef& ref) { return ref.kind == StateRef::Kind::parameter; });
}

/// Parameters that a class has, and their masters.
std::vector<BufferRef> parameters_of(const DeviceClass& c) {
  std::vector<BufferRef> out;
  for (const Initial& initial : c.initial) {
    if (holds_parameter(initial)) out.push_back(initial.buffer);
  }
  return out;
}

Instruction updating(InstructionKind kind) {
  Instruction out;
  out.kind = kind;
  out.phase = StepPhase::update;
  return out;
}

int kernel_of(Program& program, const Kernel& kernel) {
  const auto found = std::ranges::find(program.kernels, kernel);
  if (found != program.kernels.end()) return static_cast<int>(found - program.kernels.begin());
  program.kernels.push_back(kernel);
  return static_cast<int>(program.kernels.size()) - 1;
}

Instruction scaling(int kernel, const BufferRef& ref, const Rational& by) {
  Instruction out = updating(InstructionKind::scale);
  out.kernel = kernel;
  out.inputs = out.outputs = {ref};
  out.factor = by;
  return out;
}

int scaling_kernel(Program& program) { return kernel_of(program, entrywise("mean", {})); }

// --- devices that do not add gradients up

/// Gradients stay those of the device's own samples: sums of gradients over the axis are left out,
/// and what is left is scaled to the mean of the device's own part of the batch.
void keep_gradients_apart(Program& program, const Rewrite& rewrite, int axis) {
  const int kernel = scaling_kernel(program);
  const Rational devices(program.axes[as_index(axis)].degree);
  edit_all(program, [&](Instruction i) -> std::vector<Step> {
    const bool over = std::ranges::find(i.axes, axis) != i.axes.end();
    const bool sums = i.kind == InstructionKind::all_reduce;
    if (!over || (i.phase != StepPhase::reduce && sums)) return {{std::move(i)}};
    if (!sums) {
      rewrite.fail(program.axes[as_index(axis)].name, "divides what this rewrite takes as copies",
                   "an axis along which parameters, optimizer and gradients are whole");
    }
    std::vector<Step> out;
    const std::vector<BufferRef> buffers = i.outputs;
    std::erase(i.axes, axis);
    i.among.clear();
    if (!i.axes.empty()) out.push_back({std::move(i)});
    for (const BufferRef& ref : buffers) {
      Instruction scale = scaling(kernel, ref, devices);
      scale.phase = StepPhase::reduce;
      out.push_back({std::move(scale)});
    }
    return out;
  });
}

Program synchronised_every(Program program, const Rewrite& rewrite) {
  require_arguments(rewrite, 2);
  const int axis = rewrite.axis(program, 0);
  const std::int64_t steps = rewrite.number(1, 2);
  keep_gradients_apart(program, rewrite, axis);
  if (steps > kSteps) return program;
  const int kernel = scaling_kernel(program);
  const Rational part(1, program.axes[as_index(axis)].degree);
  for (DeviceClass& c : program.classes) {
    Instruction mean = updating(InstructionKind::all_reduce);
    mean.inputs = mean.outputs = parameters_of(c);
    mean.axes = {axis};
    mean.step = steps;
    mean.label = "parameters";
    if (mean.inputs.empty()) continue;
    c.body.push_back({mean});
    for (const BufferRef& ref : mean.outputs) {
      Instruction scale = scaling(kernel, ref, part);
      scale.step = steps;
      c.body.push_back({std::move(scale)});
    }
  }
  return program;
}

/// A family of the same type under another name.
int family_like(Program& program, int family, const std::string& prefix) {
  Family copy = program.families[as_index(family)];
  copy.name = prefix + copy.name;
  const auto found = std::ranges::find(program.families, copy.name, &Family::name);
  if (found != program.families.end()) return static_cast<int>(found - program.families.begin());
  program.families.push_back(std::move(copy));
  return static_cast<int>(program.families.size()) - 1;
}

/// Classes split so that each has one coordinate of the axis.
Program apart_along(Program program, int axis) {
  const ProgramAxis& along = program.axes[as_index(axis)];
  const std::string name = along.name;
  for (std::int64_t c = 0; c + 1 < along.degree; ++c) {
    RankChoice choice;
    choice.coordinates[name] = c;
    program = split_classes(std::move(program), choice).first;
  }
  return program;
}

Program mixed_with_neighbours(Program program, const Rewrite& rewrite) {
  require_arguments(rewrite, 1);
  const int axis = rewrite.axis(program, 0);
  keep_gradients_apart(program, rewrite, axis);
  program = apart_along(std::move(program), axis);
  const int kernel = scaling_kernel(program);
  const std::int64_t devices = program.axes[as_index(axis)].degree;
  for (DeviceClass& c : program.classes) {
    const std::int64_t own = c.box[as_index(axis)].empty() ? 0 : c.box[as_index(axis)].front();
    const auto message = [&](InstructionKind kind, std::int64_t peer) {
      Instruction out = updating(kind);
      out.axes = {axis};
      out.peer = peer;
      out.label = "parameters";
      return out;
    };
    for (const BufferRef& ref : parameters_of(c)) {
      BufferRef theirs = ref;
      theirs.family = family_like(program, ref.family, "neighbour.");
      Instruction alloc = updating(InstructionKind::alloc);
      alloc.outputs = {theirs};
      Instruction send = message(InstructionKind::send, (own + 1) % devices);
      send.inputs = {ref};
      Instruction receive = message(InstructionKind::receive, (own + devices - 1) % devices);
      receive.outputs = {theirs};
      Instruction add = updating(InstructionKind::accumulate);
      add.inputs = {theirs};
      add.outputs = {ref};
      Instruction free = updating(InstructionKind::free);
      free.inputs = {theirs};
      const Instruction mean = scaling(kernel, ref, Rational(1, 2));
      for (const Instruction& i : {alloc, send, receive, add, mean, free}) c.body.push_back({i});
    }
  }
  return program;
}

// --- parameters of earlier updates

bool computes(StepPhase phase) {
  return phase == StepPhase::forward || phase == StepPhase::backward;
}

/// What forward and backward read of parameters, by family, with its oldest copy.
class OldParameters {
 public:
  OldParameters(Program& program, std::int64_t age) : p_(program), age_(age) {
    for (const DeviceClass& c : p_.classes) {
      for (const BufferRef& ref : parameters_of(c)) held_.push_back(ref.family);
    }
    edit_all(p_, [this](Instruction i) { return with_old(std::move(i)); });
  }

  /// Copies at the beginning of the first step, one age further before each update.
  void keep(DeviceClass& c) {
    std::vector<BufferRef> read;
    for (const BufferRef& ref : parameters_of(c)) {
      if (read_.contains(ref.family)) read.push_back(ref);
    }
    std::vector<Step> first;
    std::vector<Step> further;
    std::vector<Step> last;
    for (const BufferRef& ref : read) {
      for (std::int64_t age = age_; age >= 1; --age) {
        add(first, InstructionKind::alloc, std::nullopt, aged(ref, age), 1);
        add(first, InstructionKind::copy, ref, aged(ref, age), 1);
        add(further, InstructionKind::copy, aged(ref, age - 1), aged(ref, age), 0);
        add(last, InstructionKind::free, aged(ref, age), std::nullopt, kSteps);
      }
    }
    const auto end = std::ranges::find_if(c.body.rbegin(), c.body.rend(), [](const Step& step) {
                       const auto* i = std::get_if<Instruction>(&step.what);
                       return i == nullptr || computes(i->phase);
                     }).base();
    c.body.insert(end, further.begin(), further.end());
    c.body.insert(c.body.begin(), first.begin(), first.end());
    c.body.insert(c.body.end(), last.begin(), last.end());
  }

 private:
  std::vector<Step> with_old(Instruction i) {
    if (!computes(i.phase)) return {{std::move(i)}};
    for (BufferRef& ref : i.inputs) {
      if (std::ranges::find(held_, ref.family) == held_.end()) continue;
      read_.insert(ref.family);
      ref = aged(ref, age_);
    }
    return {{std::move(i)}};
  }

  BufferRef aged(BufferRef ref, std::int64_t age) {
    if (age > 0) ref.family = family_like(p_, ref.family, "old" + std::to_string(age) + ".");
    return ref;
  }

  static void add(std::vector<Step>& body, InstructionKind kind, std::optional<BufferRef> from,
                  std::optional<BufferRef> to, std::int64_t step) {
    Instruction out = updating(kind);
    if (from) out.inputs = {*from};
    if (to) out.outputs = {*to};
    out.step = step;
    body.push_back({std::move(out)});
  }

  Program& p_;
  std::int64_t age_;
  std::vector<int> held_;
  std::set<int> read_;
};

Program with_old_parameters(Program program, const Rewrite& rewrite) {
  require_arguments(rewrite, 1);
  OldParameters old(program, rewrite.number(0, 1));
  for (DeviceClass& c : program.classes) old.keep(c);
  return program;
}

}  // namespace

Program rewritten(Program program, const std::string& text, const std::string& where) {
  const Rewrite rewrite = read(text, where);
  if (rewrite.name == "every") return synchronised_every(std::move(program), rewrite);
  if (rewrite.name == "mix") return mixed_with_neighbours(std::move(program), rewrite);
  if (rewrite.name == "stale" && rewrite.arguments.size() == 1 && !rewrite.arguments[0].empty() &&
      rewrite.arguments[0].find_first_not_of("0123456789") == std::string::npos) {
    return with_old_parameters(std::move(program), rewrite);
  }
  try {
    return with_faults(std::move(program), {fault_from(text)});
  } catch (const InputError& error) {
    InputFault fault = error.fault();
    fault.where = where + ": rewrite \"" + text + "\"";
    throw InputError(fault);
  }
}

}  // namespace placet
