// The reader of statements and device classes.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "program/instruction_form.h"
#include "program/text_names.h"
#include "program/text_reader.h"

namespace placet {
namespace {

using Buffers = InstructionForm::Buffers;

constexpr int kDeepest = 16;
constexpr std::int64_t kLargestBound = std::int64_t{1} << 32;
constexpr std::size_t kMostBuffers = 4096;

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (int k = 0; k < kInstructionKindCount; ++k) {
      names.emplace_back(name_of(static_cast<InstructionKind>(k)));
    }
    return names;
  }();
  return kNames;
}

std::vector<BufferRef> read_buffers(ProgramReader& r) {
  std::vector<BufferRef> buffers;
  do {
    buffers.push_back(read_buffer(r));
    if (buffers.size() > kMostBuffers)
      r.in.refuse("follows too many buffers of one instruction", std::to_string(kMostBuffers));
  } while (r.in.take(","));
  return buffers;
}

/// One of some words, by its number.
template <class Of>
int read_choice(Tokens& in, std::string_view what, int count, Of name) {
  const std::string word = in.expect_word(what);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.emplace_back(name(i));
    if (names.back() == word) return i;
  }
  std::string allowed;
  for (const std::string& n : names) allowed += (allowed.empty() ? "" : ", ") + n;
  in.refuse_unknown(word, allowed, names);
}

StepPhase read_phase(Tokens& in) {
  return static_cast<StepPhase>(
      read_choice(in, "a phase", 4, [](int i) { return name_of(static_cast<StepPhase>(i)); }));
}

/// "linear(x[u], w[u]; at t/cp)".
void read_kernel_call(ProgramReader& r, Instruction& i) {
  i.kernel = r.kernels.expect(r.in);
  r.in.expect("(");
  if (!r.in.is(")") && !r.in.is(";")) i.inputs = read_buffers(r);
  if (r.in.take(";")) {
    r.in.expect("at");
    const Kernel& kernel = r.program.kernels[as_index(i.kernel)];
    while (r.in.at_name()) {
      const auto name = [&](int d) { return std::string_view(kernel.dims[as_index(d)].name); };
      Position position;
      position.dim =
          read_choice(r.in, "a dim of the kernel", static_cast<int>(kernel.dims.size()), name);
      position.by = read_division(r);
      i.positions.push_back(std::move(position));
    }
  }
  r.in.expect(")");
}

void read_key(ProgramReader& r, Instruction& i) {
  i.key.name = r.in.expect_name("what the numbers are drawn for");
  if (!r.in.take("[")) return;
  i.key.unit = read_term(r.in);
  r.in.expect("]");
}

Rational read_rational(Tokens& in) {
  const std::int64_t numerator = in.expect_integer("a factor");
  if (!in.take("/")) return {numerator};
  const std::int64_t denominator = in.expect_integer("a denominator");
  if (denominator == 0) in.refuse_name("0", "is no denominator");
  return {numerator, denominator};
}

/// One clause behind the buffers; false where there is none that the kind takes.
bool read_clause(ProgramReader& r, Instruction& i) {
  const InstructionForm form = form_of(i.kind);
  const auto number = [&](std::string_view what) {
    return static_cast<int>(read_number(r.in, what, 0, 1024));
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  Tokens& in = r.in;
  if (form.axes && in.take_keyword("over")) {
    i.axes = read_level(r);
  } else if (form.among && in.take_keyword("among")) {
    if (!in.is("(")) in.refuse("is not expected here", "coordinates in brackets: (0 1)");
    i.among = read_coordinates(r);
  } else if (form.dim && in.take_keyword("dim")) {
    i.dim = number("the position of a dim");
  } else if (form.into && in.take_keyword("into")) {
    i.into = number("the position of a dim");
  } else if (form.shift && in.take_keyword("shift")) {
    i.shift = read_number(in, "how many parts further on", -kMost, kMost);
  } else if (form.peer && in.take_keyword(i.kind == InstructionKind::send ? "to" : "from")) {
    i.peer = read_number(in, "a coordinate", 0, kMost);
  } else if (form.factor && in.take_keyword("by")) {
    i.factor = read_rational(in);
  } else if (form.factor && in.take_keyword("because")) {
    i.because = in.expect_text("the factor in words");
  } else if (form.buffers == Buffers::kernel && in.take_keyword("key")) {
    read_key(r, i);
  } else if (in.take_keyword("on")) {
    i.stream = static_cast<Stream>(read_choice(
        in, "a stream", kStreamCount, [](int s) { return name_of(static_cast<Stream>(s)); }));
  } else if (in.take_keyword("label")) {
    i.label = in.expect_text("a label");
  } else {
    return false;
  }
  return true;
}

/// A word of a clause that the kind of instruction does not take, and not the beginning of the next
/// statement.
void refuse_wrong_clause(const Tokens& in, InstructionKind kind) {
  static constexpr std::array<std::string_view, 9> kWords = {
      "over", "among", "dim", "into", "shift", "to", "by", "because", "key"};
  const bool clause = std::ranges::any_of(kWords, [&](auto word) { return in.is_keyword(word); });
  if (!clause || (in.next_begins() == '(' && !in.is("over") && !in.is("among"))) return;
  in.refuse("is not said of " + std::string(name_of(kind)));
}

/// What stands behind the word of the kind.
void read_core(ProgramReader& r, Instruction& i) {
  const InstructionForm form = form_of(i.kind);
  if (form.op) {
    i.op = static_cast<Combine>(read_choice(r.in, "how values are combined", 2,
                                            [](int o) { return o == 0 ? "sum" : "max"; }));
  }
  switch (form.buffers) {
    case Buffers::makes:
    case Buffers::gives_one:
      i.outputs = read_buffers(r);
      return;
    case Buffers::ends:
    case Buffers::takes_one:
      i.inputs = read_buffers(r);
      return;
    case Buffers::in_place:
      i.inputs = read_buffers(r);
      i.outputs = i.inputs;
      return;
    case Buffers::kernel:
      i.outputs = read_buffers(r);
      r.in.expect("=");
      return read_kernel_call(r, i);
    case Buffers::pair:
    case Buffers::pairs:
      i.outputs = read_buffers(r);
      r.in.expect("=");
      i.inputs = read_buffers(r);
      return;
    case Buffers::none:
      i.event = static_cast<int>(read_number(r.in, "an event", 0, (std::int64_t{1} << 31) - 1));
      return;
  }
}

/// "y = f(x)" or "y += x", which begin with a buffer.
void read_assignment(ProgramReader& r, Instruction& i) {
  i.outputs = read_buffers(r);
  if (r.in.take("+")) {
    r.in.expect("=");
    i.kind = InstructionKind::accumulate;
    i.inputs = read_buffers(r);
    return;
  }
  if (!r.in.take("=")) r.in.refuse("is not expected here", "'=' or '+='");
  i.kind = InstructionKind::compute;
  read_kernel_call(r, i);
}

void read_clauses(ProgramReader& r, Instruction& i) {
  std::vector<std::string> words;
  while (true) {
    std::string word(r.in.token());
    if (!read_clause(r, i)) break;
    if (std::ranges::find(words, word) != words.end()) r.in.refuse_name(word, "is said twice");
    words.push_back(std::move(word));
  }
  refuse_wrong_clause(r.in, i.kind);
}

/// The kind whose name stands here, unless it is the name of something else.
std::optional<InstructionKind> kind_here(const Tokens& in) {
  if (in.kind() != Tokens::Kind::word || in.next_begins() == '(') return std::nullopt;
  const auto& names = kind_names();
  const auto found = std::ranges::find(names, in.token());
  if (found == names.end() || !in.is_keyword(*found)) return std::nullopt;
  return static_cast<InstructionKind>(found - names.begin());
}

Instruction read_instruction(ProgramReader& r, StepPhase phase) {
  Instruction i{.phase = phase};
  if (const auto kind = kind_here(r.in)) {
    i.kind = *kind;
    r.in.next();
    read_core(r, i);
  } else {
    const char next = r.in.next_begins();
    const bool buffer = std::string_view("[=,+:").find(next) != std::string_view::npos;
    if (r.in.kind() == Tokens::Kind::word && !buffer) {
      const std::string word(r.in.token());
      r.in.next();
      if (r.families.find(word) < 0) {
        r.in.refuse_unknown(word, "an instruction, a call or a buffer", kind_names());
      }
      r.in.refuse("is not expected here", "'=' or '+='");
    }
    read_assignment(r, i);
  }
  read_clauses(r, i);
  return i;
}

Call read_call(ProgramReader& r) {
  Call call{.procedure = r.procedures.expect(r.in)};
  r.in.expect("(");
  call.unit = read_term(r.in);
  r.in.expect(",");
  call.micro_batch = read_term(r.in);
  r.in.expect(")");
  return call;
}

Loop read_loop(ProgramReader& r, StepPhase phase, int depth, std::vector<int>& lines) {
  Loop loop;
  const std::string variable = r.in.expect_word("u or j");
  if (variable != "u" && variable != "j") {
    r.in.refuse_name(variable, "is no variable", "u or j");
  }
  if (variable == "j") loop.variable = IndexTerm::Variable::micro_batch;
  r.in.expect("in");
  loop.first = read_number(r.in, "the first value", 0, kLargestBound);
  r.in.expect("..");
  loop.last = read_number(r.in, "the last value", 0, kLargestBound);
  loop.body = read_body(r, phase, depth + 1, lines);
  return loop;
}

/// Indices of an initial buffer, of which each may be a range.
struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

Range read_range(Tokens& in) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  Range range;
  range.first = read_number(in, "an index", 0, kMost);
  range.last = in.take("..") ? read_number(in, "an index", range.first, kMost) : range.first;
  return range;
}

/// The tensor of a unit that a state speaks of.
void read_tensor_of_unit(ProgramReader& r, StateRef& state, const std::string& name) {
  const Reference& reference = r.program.reference;
  if (state.unit < 0 || as_index(state.unit) >= reference.units.size()) {
    r.in.refuse_name(name, "is of unit " + std::to_string(state.unit) + ", which is not there",
                     "from 0 to " + std::to_string(reference.units.size() - 1));
  }
  const int kind = reference.units[as_index(state.unit)].kind;
  const NameTable& values = r.values[as_index(kind)];
  const int value = values.find(name);
  const int parameter =
      value < 0 ? -1 : reference.kinds[as_index(kind)].values[as_index(value)].parameter;
  if (parameter < 0) {
    std::vector<std::string> names;
    for (const ReferenceParameter& p : reference.kinds[as_index(kind)].parameters) {
      names.push_back(values.name(p.value));
    }
    r.in.refuse_unknown(name, "a parameter of unit " + std::to_string(state.unit), names);
  }
  state.tensor = parameter;
}

/// A state as it is written: names are resolved for each unit of a range.
struct WrittenState {
  StateRef::Kind kind = StateRef::Kind::zero;
  std::string tensor;
  std::string state;
  int unit = -1;  // as stated; -1: that of the buffer
  int input = 0;  // of an input: its position
};

WrittenState read_written_state(ProgramReader& r) {
  static constexpr std::array<std::string_view, 5> kWords = {"parameter", "state", "input", "zero",
                                                             "loss"};
  WrittenState s;
  s.kind = static_cast<StateRef::Kind>(read_choice(r.in, "parameter, state, input, zero or loss", 5,
                                                   [](int i) { return kWords[as_index(i)]; }));
  if (s.kind == StateRef::Kind::input) s.input = r.inputs.expect(r.in);
  if (s.kind == StateRef::Kind::state) {
    s.state = r.in.expect_name("a state of the optimizer");
    r.in.expect("of");
  }
  if (s.kind == StateRef::Kind::parameter || s.kind == StateRef::Kind::state) {
    s.tensor = r.in.expect_name("a parameter");
    if (r.in.take_keyword("of")) {
      r.in.expect("unit");
      s.unit = static_cast<int>(read_number(r.in, "a unit", 0, (std::int64_t{1} << 31) - 1));
    }
  }
  return s;
}

StateRef resolved(ProgramReader& r, const WrittenState& s, const BufferRef& buffer) {
  StateRef state{.kind = s.kind};
  if (s.kind == StateRef::Kind::input) state.tensor = s.input;
  if (s.kind != StateRef::Kind::parameter && s.kind != StateRef::Kind::state) return state;
  state.unit = s.unit;
  if (s.unit < 0) {
    if (!r.program.families[as_index(buffer.family)].by_unit) {
      r.in.refuse_name(s.tensor, "does not say of which unit it is", "of unit N");
    }
    state.unit = static_cast<int>(buffer.unit.offset);
  }
  read_tensor_of_unit(r, state, s.tensor);
  if (s.kind == StateRef::Kind::parameter) return state;
  const Reference& reference = r.program.reference;
  const int kind = reference.units[as_index(state.unit)].kind;
  const int rule = reference.kinds[as_index(kind)].parameters[as_index(state.tensor)].rule;
  const std::vector<std::string> none;
  const bool known = rule >= 0 && as_index(rule) < reference.rules.size();
  const auto& states = known ? reference.rules[as_index(rule)].states : none;
  const auto found = std::ranges::find(states, s.state);
  if (found == states.end()) {
    r.in.refuse_unknown(s.state, "a state that the rule of '" + s.tensor + "' keeps", states);
  }
  state.state = static_cast<int>(found - states.begin());
  return state;
}

/// "w[0..3] = parameter w": one entry for each element.
void read_initial(ProgramReader& r, std::vector<Initial>& list) {
  const int family = r.families.expect(r.in);
  const Family& f = r.program.families[as_index(family)];
  Range units;
  Range micro_batches;
  if (f.by_unit || f.by_micro_batch) {
    r.in.expect("[");
    if (f.by_unit) units = read_range(r.in);
    if (f.by_micro_batch) micro_batches = read_range(r.in);
    r.in.expect("]");
  }
  r.in.expect("=");
  std::vector<WrittenState> states;
  do {
    states.push_back(read_written_state(r));
  } while (r.in.take(","));
  for (std::int64_t u = units.first; u <= units.last; ++u) {
    for (std::int64_t j = micro_batches.first; j <= micro_batches.last; ++j) {
      r.count_expanded(1 + static_cast<std::int64_t>(states.size()));
      Initial initial{
          .buffer = {.family = family, .unit = {.offset = u}, .micro_batch = {.offset = j}}};
      for (const WrittenState& s : states) {
        initial.pieces.push_back(resolved(r, s, initial.buffer));
      }
      list.push_back(std::move(initial));
    }
  }
}

void read_box(ProgramReader& r, DeviceClass& c) {
  do {
    const int axis = r.axes.expect(r.in);
    if (as_index(axis) >= c.box.size()) {
      r.in.refuse_name(r.axes.name(axis), "is no axis of the mesh");
    }
    if (!c.box[as_index(axis)].empty()) {
      r.in.refuse_name(r.axes.name(axis), "stands twice");
    }
    r.in.expect("=");
    c.box[as_index(axis)] = read_coordinates(r);
  } while (r.in.at_name());
}

}  // namespace

BufferRef read_buffer(ProgramReader& r) {
  BufferRef buffer{.family = r.families.expect(r.in)};
  const Family& family = r.program.families[as_index(buffer.family)];
  const bool indexed = family.by_unit || family.by_micro_batch;
  if (indexed && !r.in.is("[")) {
    r.in.refuse_name(family.name, "has an index",
                     family.by_unit && family.by_micro_batch ? "[unit micro-batch]"
                     : family.by_unit                        ? "[unit]"
                                                             : "[micro-batch]");
  }
  if (!indexed && r.in.is("[")) r.in.refuse_name(family.name, "has no index");
  if (r.in.take("[")) {
    if (family.by_unit) buffer.unit = read_term(r.in);
    if (family.by_micro_batch) buffer.micro_batch = read_term(r.in);
    r.in.expect("]");
  }
  if (r.in.take(":")) {
    buffer.piece = static_cast<int>(read_number(r.in, "a tensor of the buffer", 0, 1 << 20));
  }
  return buffer;
}

void read_step(ProgramReader& r, std::vector<Step>& body, StepPhase& phase, int depth,
               std::vector<int>& lines) {
  if (r.in.take_keyword("phase")) {
    phase = read_phase(r.in);
    return;
  }
  lines.push_back(r.in.line());
  if (r.in.take_keyword("for")) {
    body.push_back({read_loop(r, phase, depth, lines)});
  } else if (r.in.at_name() && r.in.next_begins() == '(') {
    body.push_back({read_call(r)});
  } else {
    body.push_back({read_instruction(r, phase)});
  }
}

std::vector<Step> read_body(ProgramReader& r, StepPhase phase, int depth, std::vector<int>& lines) {
  if (depth > kDeepest) r.in.refuse("stands in too many loops", "16 inside of each other");
  std::vector<Step> body;
  r.in.expect("{");
  while (!r.in.take("}")) {
    if (r.in.kind() == Tokens::Kind::end) r.in.refuse("is not expected here", "'}'");
    read_step(r, body, phase, depth, lines);
  }
  return body;
}

void read_class(ProgramReader& r) {
  DeviceClass c{.name = r.classes.name(r.classes.declare(r.in))};
  c.box.resize(r.program.axes.size() - 1);
  std::vector<int> lines;
  if (r.in.take_keyword("at")) read_box(r, c);
  r.in.expect("{");
  StepPhase phase = StepPhase::forward;
  while (!r.in.take("}")) {
    if (r.in.kind() == Tokens::Kind::end) r.in.refuse("is not expected here", "'}'");
    if (r.in.take_keyword("holds")) {
      read_initial(r, c.initial);
    } else if (r.in.take_keyword("results")) {
      read_initial(r, c.results);
    } else {
      read_step(r, c.body, phase, 0, lines);
    }
  }
  r.program.classes.push_back(std::move(c));
  r.lines.classes.push_back(std::move(lines));
}

}  // namespace placet
