#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>

#include "program/instruction_form.h"
#include "program/kernel_text.h"
#include "program/text.h"
#include "program/text_names.h"
#include "program/tokens.h"

namespace placet {
namespace {

using Buffers = InstructionForm::Buffers;

constexpr int kMostInRow = 16;  // instructions of one buffer on a line

std::string axis_name(const Program& p, int axis) { return name_at(p.axes, axis); }

/// "dp", or "(dp tp)" of several.
std::string level_text(const Program& p, const AxisList& level) {
  if (level.size() == 1) return axis_name(p, level[0]);
  std::string text = "(";
  for (std::size_t i = 0; i < level.size(); ++i) {
    if (i > 0) text += ' ';
    text += axis_name(p, level[i]);
  }
  return text + ")";
}

std::string division_text(const Program& p, const Division& division) {
  std::string text;
  for (const AxisList& level : division) text += "/" + level_text(p, level);
  return text;
}

/// "/cp+1": the part of the next device along cp.
std::string division_text(const Program& p, const Division& division, std::int64_t shift) {
  return division_text(p, division) + (shift != 0 ? "+" + std::to_string(shift) : "");
}

std::string term_text(const IndexTerm& term) {
  if (term.variable == IndexTerm::Variable::none) return std::to_string(term.offset);
  std::string text = term.variable == IndexTerm::Variable::unit ? "u" : "j";
  if (term.offset > 0) text += '+';
  if (term.offset != 0) text += std::to_string(term.offset);
  return text;
}

/// "4", or "(0 2 5..9)" of several.
std::string coordinates_text(const std::vector<std::int64_t>& list) {
  if (list.size() == 1) return std::to_string(list[0]);
  std::string text = "(";
  for (std::size_t i = 0; i < list.size();) {
    std::size_t last = i;
    while (last + 1 < list.size() && list[last] < list[last + 1] &&
           list[last + 1] - list[last] == 1) {
      ++last;
    }
    if (i > 0) text += ' ';
    text += std::to_string(list[i]);
    if (last >= i + 2) text += ".." + std::to_string(list[last]);
    i = last >= i + 2 ? last + 1 : i + 1;
  }
  return text + ")";
}

std::string index_text(const Family& family, const std::string& unit,
                       const std::string& micro_batch) {
  if (!family.by_unit && !family.by_micro_batch) return {};
  std::string text = "[";
  if (family.by_unit) text += unit;
  if (family.by_unit && family.by_micro_batch) text += ' ';
  if (family.by_micro_batch) text += micro_batch;
  return text + "]";
}

std::string list_text(const Program& p, const std::vector<BufferRef>& buffers) {
  std::string text;
  for (const BufferRef& buffer : buffers) {
    if (!text.empty()) text += ", ";
    text += to_text(p, buffer);
  }
  return text;
}

std::string kernel_call_text(const Program& p, const Instruction& i) {
  std::string text = name_at(p.kernels, i.kernel) + "(" + list_text(p, i.inputs);
  const bool known = i.kernel >= 0 && as_index(i.kernel) < p.kernels.size();
  for (std::size_t k = 0; k < i.positions.size(); ++k) {
    text += k == 0 ? "; at " : " ";
    const int dim = i.positions[k].dim;
    text += known ? name_at(p.kernels[as_index(i.kernel)].dims, dim) : unknown_name(dim);
    text += division_text(p, i.positions[k].by, i.positions[k].shift);
  }
  return text + ")";
}

/// What the kind does with which buffers.
std::string core_text(const Program& p, const Instruction& i) {
  const std::string kind(name_of(i.kind));
  const std::string op = i.op == Combine::sum ? " sum" : " max";
  std::string word = kind + (form_of(i.kind).op ? op : std::string()) + " ";
  switch (form_of(i.kind).buffers) {
    case Buffers::makes:
      return word + list_text(p, i.outputs);
    case Buffers::takes:
    case Buffers::in_place:
      return word + list_text(p, i.inputs);
    case Buffers::kernel:
      return (i.kind == InstructionKind::compute ? std::string() : word) + list_text(p, i.outputs) +
             " = " + kernel_call_text(p, i);
    case Buffers::pair:
    case Buffers::pairs:
      if (i.kind == InstructionKind::accumulate) {
        return list_text(p, i.outputs) + " += " + list_text(p, i.inputs);
      }
      return word + list_text(p, i.outputs) + " = " + list_text(p, i.inputs);
    case Buffers::none:
      return word + std::to_string(i.event);
  }
  return word;
}

/// The clauses about a group of devices.
std::string group_text(const Program& p, const Instruction& i) {
  std::string text;
  if (!i.axes.empty()) text += " over " + level_text(p, i.axes);
  if (i.among.size() == 1) text += " among (" + coordinates_text(i.among) + ")";
  if (i.among.size() > 1) text += " among " + coordinates_text(i.among);
  if (i.dim != kFlat) text += " dim " + std::to_string(i.dim);
  if (i.into != kFlat) text += " into " + std::to_string(i.into);
  if (i.shift != 0) text += " shift " + std::to_string(i.shift);
  if (!form_of(i.kind).peer) return text;
  return text + (i.kind == InstructionKind::send ? " to " : " from ") + std::to_string(i.peer);
}

/// The clauses that follow, of what differs from the defaults.
std::string clauses_text(const Program& p, const Instruction& i) {
  std::string text = group_text(p, i);
  if (!i.key.name.empty()) text += " key " + spelled(i.key.name);
  if (i.key.unit != IndexTerm{}) text += "[" + term_text(i.key.unit) + "]";
  if (i.factor != Rational(1)) text += " by " + to_string(i.factor);
  if (!i.because.empty()) text += " because " + quoted(i.because);
  if (i.step != 0) text += " step " + std::to_string(i.step);
  if (i.stream != Stream::compute) text += " on " + std::string(name_of(i.stream));
  if (!i.label.empty()) text += " label " + quoted(i.label);
  return text;
}

/// The right side of an initial buffer. A buffer with an element for each unit holds tensors of its
/// own unit, unless said otherwise.
std::string states_text(const Program& p, const Initial& initial) {
  const int family = initial.buffer.family;
  const bool by_unit =
      family >= 0 && as_index(family) < p.families.size() && p.families[as_index(family)].by_unit;
  std::string text;
  for (const StateRef& state : initial.pieces) {
    if (!text.empty()) text += ", ";
    text += state_text(p, state);
    const bool of_unit =
        state.kind == StateRef::Kind::parameter || state.kind == StateRef::Kind::state;
    if (of_unit && !(by_unit && initial.buffer.unit.offset == state.unit)) {
      text += " of unit " + std::to_string(state.unit);
    }
  }
  return text;
}

class Writer {
 public:
  explicit Writer(const Program& program) : p_(program) {}

  std::string write() {
    out_ = "placet program 1\n";
    write_axes();
    for (const LogicalDim& dim : p_.dims) {
      out_ += "dim " + spelled(dim.name) + " " + std::to_string(dim.extent);
      if (dim.chosen != 0) out_ += " chosen " + std::to_string(dim.chosen);
      out_ += "\n";
    }
    if (!p_.kernels.empty()) out_ += "\n";
    for (const Kernel& kernel : p_.kernels) out_ += to_text(kernel);
    out_ += "\nreference " + reference_text(p_) + "\n\n";
    for (const Family& family : p_.families) write(family);
    for (const Procedure& procedure : p_.procedures) {
      out_ += "\nprocedure " + spelled(procedure.name) + "(u, j) {\n";
      write_body(procedure.body, 1, StepPhase::forward);
      out_ += "}\n";
    }
    for (const DeviceClass& device_class : p_.classes) write(device_class);
    return std::move(out_);
  }

 private:
  static std::string axis_text(const ProgramAxis& axis) {
    std::string text = spelled(axis.name) + "=" + std::to_string(axis.degree);
    for (std::size_t i = 0; i < axis.shares.size(); ++i) {
      text += (i == 0 ? "[" : ",") + std::to_string(axis.shares[i]);
    }
    return axis.shares.empty() ? text : text + "]";
  }

  void write_axes() {
    if (p_.axes.empty()) return;
    out_ += "mesh";
    for (std::size_t i = 0; i + 1 < p_.axes.size(); ++i) {
      const ProgramAxis& axis = p_.axes[i];
      out_ += " " + axis_text(axis);
    }
    const ProgramAxis& last = p_.axes.back();
    const bool plain = last.name == kMicroBatch && last.shares.empty();
    out_ += "\nmicro-batches " + (plain ? std::to_string(last.degree) : axis_text(last)) + "\n";
  }

  void write(const Family& family) {
    out_ += "buffer " + spelled(family.name) + index_text(family, "u", "j") + " " +
            to_text(p_, family.type) + (family.on_host ? " on host" : "") + "\n";
  }

  void line(int depth, const std::string& text) {
    out_.append(2 * as_index(depth), ' ');
    out_ += text + "\n";
  }

  void write_body(const std::vector<Step>& body, int depth, StepPhase phase) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      const Step& step = body[i];
      if (const auto* call = std::get_if<Call>(&step.what)) {
        line(depth, to_text(p_, *call));
      } else if (const auto* loop = std::get_if<Loop>(&step.what)) {
        write(*loop, depth, phase);
      } else if (const auto* instruction = std::get_if<Instruction>(&step.what)) {
        if (instruction->phase != phase) write_phase(instruction->phase, depth);
        phase = instruction->phase;
        line(depth, row_text(body, i));
      }
    }
  }

  void write_phase(StepPhase phase, int depth) {
    line(depth, "phase " + std::string(name_of(phase)));
  }

  /// The text of step i and of those behind it that stand on the same line; i becomes the last.
  std::string row_text(const std::vector<Step>& body, std::size_t& i) const {
    Instruction row = std::get<Instruction>(body[i].what);
    const Instruction bare = without_buffers(row);
    for (int n = 1; n < kMostInRow && i + 1 < body.size(); ++n, ++i) {
      if (!joins(row, bare, body[i + 1])) break;
    }
    return to_text(p_, row);
  }

  static Instruction without_buffers(Instruction instruction) {
    instruction.inputs.clear();
    instruction.outputs.clear();
    return instruction;
  }

  /// Adds the buffer of the next step to a row of instructions that stands on one line, all of them
  /// `bare` but for their buffers.
  static bool joins(Instruction& row, const Instruction& bare, const Step& next) {
    const auto* other = std::get_if<Instruction>(&next.what);
    const Buffers buffers = form_of(bare.kind).buffers;
    if (other == nullptr || (buffers != Buffers::makes && buffers != Buffers::takes)) return false;
    if (!(without_buffers(*other) == bare)) return false;
    std::ranges::copy(other->inputs, std::back_inserter(row.inputs));
    std::ranges::copy(other->outputs, std::back_inserter(row.outputs));
    return true;
  }

  void write(const Loop& loop, int depth, StepPhase phase) {
    const std::string variable = loop.variable == IndexTerm::Variable::unit ? "u" : "j";
    line(depth, "for " + variable + " in " + std::to_string(loop.first) + ".." +
                    std::to_string(loop.last) + " {");
    write_body(loop.body, depth + 1, phase);
    line(depth, "}");
  }

  void write(const DeviceClass& c) {
    out_ += "\nclass " + spelled(c.name);
    bool begun = false;
    for (std::size_t a = 0; a < c.box.size(); ++a) {
      if (c.box[a].empty()) continue;
      out_ += (begun ? " " : " at ") + axis_name(p_, static_cast<int>(a)) + "=" +
              coordinates_text(c.box[a]);
      begun = true;
    }
    out_ += " {\n";
    write_initial("holds", c.initial);
    write_initial("results", c.results);
    write_body(c.body, 1, StepPhase::forward);
    out_ += "}\n";
  }

  /// Whether b continues a run that began with a: the next element of the same family with the
  /// same words behind it.
  bool continues(const Initial& a, const Initial& b, std::int64_t by, bool along_units) const {
    BufferRef next = a.buffer;
    (along_units ? next.unit : next.micro_batch).offset += by;
    return b.buffer == next && states_text(p_, a) == states_text(p_, b);
  }

  bool has_index(const Initial& initial, bool along_units) const {
    const int family = initial.buffer.family;
    if (family < 0 || as_index(family) >= p_.families.size()) return false;
    const Family& f = p_.families[as_index(family)];
    return along_units ? f.by_unit : f.by_micro_batch;
  }

  /// The last of a run that begins at `first`, along units or micro-batches.
  std::size_t end_of_run(const std::vector<Initial>& list, std::size_t first, bool units) const {
    std::size_t last = first;
    if (!has_index(list[first], units)) return last;
    while (last + 1 < list.size() &&
           continues(list[first], list[last + 1], static_cast<std::int64_t>(last + 1 - first),
                     units)) {
      ++last;
    }
    return last;
  }

  /// One line for each run of elements.
  void write_initial(const std::string& word, const std::vector<Initial>& list) {
    for (std::size_t i = 0; i < list.size();) {
      const std::size_t along_units = end_of_run(list, i, true);
      const std::size_t last = std::max(along_units, end_of_run(list, i, false));
      write_run(word, list[i], list[last], last > i, along_units > i);
      i = last + 1;
    }
  }

  void write_run(const std::string& word, const Initial& first, const Initial& last, bool several,
                 bool along_units) {
    if (!several) return line(1, word + " " + to_text(p_, first));
    std::string unit = term_text(first.buffer.unit);
    std::string micro_batch = term_text(first.buffer.micro_batch);
    if (along_units) {
      unit += ".." + term_text(last.buffer.unit);
    } else {
      micro_batch += ".." + term_text(last.buffer.micro_batch);
    }
    const Family& family = p_.families[as_index(first.buffer.family)];
    line(1, word + " " + spelled(family.name) + index_text(family, unit, micro_batch) + " = " +
                states_text(p_, first));
  }

  const Program& p_;
  std::string out_;
};

}  // namespace

std::string to_text(const Program& program) { return Writer(program).write(); }

std::string to_text(const Program& program, const BufferRef& buffer) {
  std::string text = name_at(program.families, buffer.family);
  if (buffer.family >= 0 && as_index(buffer.family) < program.families.size()) {
    text += index_text(program.families[as_index(buffer.family)], term_text(buffer.unit),
                       term_text(buffer.micro_batch));
  }
  if (buffer.piece >= 0) text += ":" + std::to_string(buffer.piece);
  return text;
}

std::string to_text(const Program& program, const Instruction& instruction) {
  return core_text(program, instruction) + clauses_text(program, instruction);
}

std::string to_text(const Program& program, const Call& call) {
  // Words that go before brackets elsewhere are quoted.
  static constexpr std::array<std::string_view, 17> kWords = {
      "over", "among", "dim",     "into",  "shift", "to",    "from",  "by",     "step",
      "key",  "on",    "because", "label", "for",   "phase", "holds", "results"};
  std::string name = name_at(program.procedures, call.procedure);
  if (std::ranges::find(kWords, name) != kWords.end()) name = quoted(name);
  return name + "(" + term_text(call.unit) + ", " + term_text(call.micro_batch) + ")";
}

std::string to_text(const Program& program, const Initial& initial) {
  return to_text(program, initial.buffer) + " = " + states_text(program, initial);
}

std::string to_text(const Program& program, const BufferType& type) {
  std::string text(name_of(type.dtype));
  for (const PieceType& piece : type.pieces) {
    text += " [";
    for (std::size_t d = 0; d < piece.dims.size(); ++d) {
      if (d > 0) text += ' ';
      const DividedDim& dim = piece.dims[d];
      text += name_at(program.dims, dim.dim) + division_text(program, dim.by, dim.shift);
    }
    text += "]";
  }
  if (!type.flat.empty()) text += " / " + level_text(program, type.flat);
  return text;
}

}  // namespace placet
