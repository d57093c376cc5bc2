// The reader of device classes and what they hold.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "program/text_names.h"
#include "program/text_reader.h"

namespace placet {
namespace {

/// Indices of an initial buffer, of which each may be a range.
struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

Range read_range(Tokens& in) {
  Range range;
  range.first = read_number(in, "an index", 0, kMostNumber);
  range.last = in.take("..") ? read_number(in, "an index", range.first, kMostNumber) : range.first;
  return range;
}

/// The tensor of a unit that a state speaks of.
void read_tensor_of_unit(ProgramReader& r, StateRef& state, const std::string& name) {
  const Reference& reference = r.program.reference;
  if (state.unit < 0 || as_index(state.unit) >= reference.units.size()) {
    r.in.refuse_name(name, "is of unit " + std::to_string(state.unit) + ", which is not there",
                     reference.units.empty()
                         ? "a unit of the reference, which has none"
                         : "from 0 to " + std::to_string(reference.units.size() - 1));
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
  int input = 0;  // of an input or a number: its position
};

WrittenState read_written_state(ProgramReader& r) {
  static constexpr std::array<std::string_view, 6> kWords = {"parameter", "state", "input",
                                                             "zero",      "loss",  "number"};
  WrittenState s;
  s.kind = static_cast<StateRef::Kind>(
      read_choice(r.in, "parameter, state, input, zero, loss or number",
                  static_cast<int>(kWords.size()), [](int i) { return kWords[as_index(i)]; }));
  if (s.kind == StateRef::Kind::number) s.input = r.numbers.expect(r.in);
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
  if (s.kind == StateRef::Kind::input || s.kind == StateRef::Kind::number) state.tensor = s.input;
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

void add_initial(ProgramReader& r, const BufferRef& buffer, const std::vector<WrittenState>& states,
                 std::vector<Initial>& list) {
  r.count_expanded(1 + static_cast<std::int64_t>(states.size()));
  Initial initial{.buffer = buffer, .pieces = {}};
  for (const WrittenState& s : states) initial.pieces.push_back(resolved(r, s, buffer));
  list.push_back(std::move(initial));
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
      const BufferRef buffer{.family = family, .unit = {.offset = u}, .micro_batch = {.offset = j}};
      add_initial(r, buffer, states, list);
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
