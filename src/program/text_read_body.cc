// The reader of statements and device classes.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "program/grammar.h"
#include "program/instruction_form.h"
#include "program/text_names.h"
#include "program/text_reader.h"

namespace placet {
namespace {

using Buffers = InstructionForm::Buffers;

constexpr std::size_t kMostBuffers = 4096;

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names(kInstructionKindCount);
    for (std::size_t k = 0; k < names.size(); ++k) {
      names[k] = name_of(static_cast<InstructionKind>(k));
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

StepPhase read_phase(Tokens& in) {
  return static_cast<StepPhase>(
      read_choice(in, "a phase", 4, [](int i) { return name_of(static_cast<StepPhase>(i)); }));
}

/// "t/cp u" behind "at".
void read_positions(ProgramReader& r, Instruction& i) {
  const Kernel& kernel = r.program.kernels[as_index(i.kernel)];
  const auto name = [&](int d) { return std::string_view(kernel.dims[as_index(d)].name); };
  while (r.in.at_name()) {
    Position position;
    position.dim =
        read_choice(r.in, "a dim of the kernel", static_cast<int>(kernel.dims.size()), name);
    position.by = read_division(r);
    position.shift = read_shift(r);
    i.positions.push_back(std::move(position));
  }
}

/// "linear(x[u], w[u]; at t/cp)".
void read_kernel_call(ProgramReader& r, Instruction& i) {
  i.kernel = r.kernels.expect(r.in);
  r.in.expect("(");
  if (!r.in.is(")") && !r.in.is(";")) i.inputs = read_buffers(r);
  if (r.in.take(";")) {
    r.in.expect("at");
    read_positions(r, i);
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

int read_dim_number(ProgramReader& r) {
  return static_cast<int>(read_number(r.in, "the position of a dim", 0, 1024));
}

/// What may stand behind the buffers of an instruction: a word, and what it says.
struct Clause {
  std::string_view word;
  bool (*takes)(const InstructionForm& form, InstructionKind kind);
  void (*read)(ProgramReader& r, Instruction& i);
};

bool takes_always(const InstructionForm&, InstructionKind) { return true; }
bool takes_kernel(const InstructionForm& form, InstructionKind) {
  return form.buffers == Buffers::kernel;
}
bool takes_factor(const InstructionForm& form, InstructionKind) { return form.factor; }
bool takes_peer_behind(const InstructionForm& form, InstructionKind kind) {
  return form.peer && kind == InstructionKind::send;
}
bool takes_peer_before(const InstructionForm& form, InstructionKind kind) {
  return form.peer && kind != InstructionKind::send;
}

void read_peer(ProgramReader& r, Instruction& i) {
  i.peer = read_number(r.in, "a coordinate", 0, kMostNumber);
}

void read_among(ProgramReader& r, Instruction& i) {
  if (!r.in.is("(")) r.in.refuse("is not expected here", "coordinates in brackets: (0 1)");
  i.among = read_coordinates(r);
}

void read_stream(ProgramReader& r, Instruction& i) {
  const auto name = [](int s) { return name_of(static_cast<Stream>(s)); };
  i.stream = static_cast<Stream>(read_choice(r.in, "a stream", kStreamCount, name));
}

constexpr std::array<Clause, 13> kClauses = {{
    {"over", [](const InstructionForm& form, InstructionKind) { return form.axes; },
     [](ProgramReader& r, Instruction& i) { i.axes = read_level(r); }},
    {"among", [](const InstructionForm& form, InstructionKind) { return form.among; }, read_among},
    {"dim", [](const InstructionForm& form, InstructionKind) { return form.dim; },
     [](ProgramReader& r, Instruction& i) { i.dim = read_dim_number(r); }},
    {"into", [](const InstructionForm& form, InstructionKind) { return form.into; },
     [](ProgramReader& r, Instruction& i) { i.into = read_dim_number(r); }},
    {"shift", [](const InstructionForm& form, InstructionKind) { return form.shift; },
     [](ProgramReader& r, Instruction& i) {
       i.shift = read_number(r.in, "how many parts further on", -kMostNumber, kMostNumber);
     }},
    {"to", takes_peer_behind, read_peer},
    {"from", takes_peer_before, read_peer},
    {"key", takes_kernel, read_key},
    {"by", takes_factor, [](ProgramReader& r, Instruction& i) { i.factor = read_rational(r.in); }},
    {"because", takes_factor,
     [](ProgramReader& r, Instruction& i) { i.because = r.in.expect_text("the factor in words"); }},
    {"step", takes_always,
     [](ProgramReader& r, Instruction& i) {
       i.step = read_number(r.in, "a step", 1, kMostNumber);
     }},
    {"on", takes_always, read_stream},
    {"label", takes_always,
     [](ProgramReader& r, Instruction& i) { i.label = r.in.expect_text("a label"); }},
}};

/// The clause that begins here; null: none.
const Clause* clause_here(const Tokens& in) {
  for (const Clause& clause : kClauses) {
    if (!in.is_keyword(clause.word)) continue;
    // Brackets follow two of them only; behind other words they are those of a call.
    const bool brackets = clause.word == "over" || clause.word == "among";
    return brackets || in.next_begins() != '(' ? &clause : nullptr;
  }
  return nullptr;
}

void read_clauses(ProgramReader& r, Instruction& i) {
  const InstructionForm form = form_of(i.kind);
  std::vector<const Clause*> said;
  while (const Clause* clause = clause_here(r.in)) {
    if (!clause->takes(form, i.kind)) {
      r.in.refuse("is not said of " + std::string(name_of(i.kind)));
    }
    if (std::ranges::find(said, clause) != said.end()) r.in.refuse("is said twice");
    said.push_back(clause);
    r.in.next();
    clause->read(r, i);
  }
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
      i.outputs = read_buffers(r);
      return;
    case Buffers::takes:
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

/// The kind whose name stands here, unless it is the name of something else.
std::optional<InstructionKind> kind_here(const Tokens& in) {
  if (in.kind() != Tokens::Kind::word || in.next_begins() == '(') return std::nullopt;
  const auto& names = kind_names();
  const auto found = std::ranges::find(names, in.token());
  if (found == names.end() || !in.is_keyword(*found)) return std::nullopt;
  return static_cast<InstructionKind>(found - names.begin());
}

/// Refuses a word that is neither an instruction nor begins with a buffer.
void refuse_unknown_statement(Tokens& in, const NameTable& families) {
  if (in.kind() != Tokens::Kind::word) return;
  if (std::string_view("[=,+:").find(in.next_begins()) != std::string_view::npos) return;
  const std::string word(in.token());
  in.next();
  if (families.find(word) >= 0) in.refuse("is not expected here", "'=' or '+='");
  in.refuse_unknown(word, "an instruction, a call or a buffer", kind_names());
}

Instruction read_instruction(ProgramReader& r, StepPhase phase) {
  Instruction i{.phase = phase};
  if (const auto kind = kind_here(r.in)) {
    i.kind = *kind;
    r.in.next();
    read_core(r, i);
  } else {
    refuse_unknown_statement(r.in, r.families);
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

/// "alloc a, b" as two instructions.
std::vector<Instruction> each_buffer(const Instruction& i) {
  const Buffers buffers = form_of(i.kind).buffers;
  const bool makes = buffers == Buffers::makes;
  if (!makes && buffers != Buffers::takes) return {i};
  Instruction one = i;
  std::vector<BufferRef>& place = makes ? one.outputs : one.inputs;
  place = std::vector<BufferRef>(1);
  std::vector<Instruction> all;
  for (const BufferRef& buffer : makes ? i.outputs : i.inputs) {
    place[0] = buffer;
    all.push_back(one);
  }
  return all;
}

void read_indices(Tokens& in, const Family& family, BufferRef& buffer) {
  if (!family.by_unit && !family.by_micro_batch) {
    if (in.is("[")) in.refuse_name(family.name, "has no index");
    return;
  }
  if (!in.is("[")) {
    const std::string unit = family.by_unit ? "unit " : "";
    const std::string index = family.by_micro_batch ? unit + "micro-batch" : "unit";
    in.refuse_name(family.name, "has an index", "[" + index + "]");
  }
  in.expect("[");
  if (family.by_unit) buffer.unit = read_term(in);
  if (family.by_micro_batch) buffer.micro_batch = read_term(in);
  in.expect("]");
}

}  // namespace

BufferRef read_buffer(ProgramReader& r) {
  BufferRef buffer{.family = r.families.expect(r.in)};
  read_indices(r.in, r.program.families[as_index(buffer.family)], buffer);
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
    std::vector<Instruction> read = each_buffer(read_instruction(r, phase));
    const int line = lines.back();
    lines.resize(lines.size() + read.size() - 1, line);
    for (Instruction& instruction : read) {
      instruction.line = {line};
      body.push_back({std::move(instruction)});
    }
  }
}

std::vector<Step> read_body(ProgramReader& r, StepPhase phase, int depth, std::vector<int>& lines) {
  if (depth > kDeepestLoops) r.in.refuse("stands in too many loops", "16 inside of each other");
  std::vector<Step> body;
  r.in.expect("{");
  while (!r.in.take("}")) {
    if (r.in.kind() == Tokens::Kind::end) r.in.refuse("is not expected here", "'}'");
    read_step(r, body, phase, depth, lines);
  }
  return body;
}

}  // namespace placet
