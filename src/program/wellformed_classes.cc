// The grammar of device classes and of what they hold.
#include <algorithm>
#include <set>
#include <tuple>

#include "program/grammar.h"
#include "program/text.h"
#include "program/text_names.h"

namespace placet {
namespace {

constexpr std::size_t kMostClasses = 1024;
constexpr std::size_t kMostCoordinates = std::size_t{1} << 16;

/// Coordinates of a class along an axis.
bool overlap(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  if (a.empty() || b.empty()) return true;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (a[i] == b[k]) return true;
    a[i] < b[k] ? ++i : ++k;
  }
  return false;
}

bool overlap(const DeviceClass& a, const DeviceClass& b) {
  for (std::size_t i = 0; i < a.box.size(); ++i) {
    if (!overlap(a.box[i], b.box[i])) return false;
  }
  return true;
}

void check_coordinates(const Grammar& g, const DeviceClass& c, std::size_t a) {
  const ProgramAxis& axis = g.program().axes[a];
  std::int64_t before = -1;
  for (std::int64_t coordinate : c.box[a]) {
    g.require(
        coordinate > before && coordinate < axis.degree, [&] { return std::to_string(coordinate); },
        [&] { return "is no further coordinate along " + axis.name; },
        [&] {
          return "coordinates from 0 to " + std::to_string(axis.degree - 1) + " in rising order";
        });
    before = coordinate;
  }
}

/// The number of devices in a class's box.
std::int64_t check_box(const Grammar& g, const DeviceClass& c) {
  g.require(
      static_cast<int>(c.box.size()) == g.mesh_axes(), c.name,
      [&] { return "has coordinates along " + std::to_string(c.box.size()) + " axes"; },
      [&] {
        return "one list for each of the " + std::to_string(g.mesh_axes()) + " axes of the mesh";
      });
  std::int64_t devices = 1;
  for (std::size_t a = 0; a < c.box.size(); ++a) {
    check_coordinates(g, c, a);
    devices *=
        c.box[a].empty() ? g.program().axes[a].degree : static_cast<std::int64_t>(c.box[a].size());
  }
  return devices;
}

/// That a class has no device of those before it.
void check_disjoint(Grammar& g, std::size_t number) {
  const std::vector<DeviceClass>& classes = g.program().classes;
  const DeviceClass& c = classes[number];
  g.go_to([&c] { return "class '" + cut_short(c.name) + "'"; });
  for (std::size_t b = 0; b < number; ++b) {
    if (!overlap(classes[b], c)) continue;
    g.refuse(c.name, "has devices that class '" + cut_short(classes[b].name) + "' has already");
  }
}

void check_boxes(Grammar& g) {
  const std::vector<DeviceClass>& classes = g.program().classes;
  g.go_to("classes");
  g.require_names(classes, "a class");
  g.require(
      classes.size() <= kMostClasses, [&] { return std::to_string(classes.size()); },
      "is too many classes", [&] { return "at most " + std::to_string(kMostClasses); });
  std::int64_t devices = 0;
  std::size_t coordinates = 0;
  for (const DeviceClass& c : classes) {
    g.go_to([&c] { return "class '" + cut_short(c.name) + "'"; });
    devices += check_box(g, c);
    for (const auto& list : c.box) coordinates += list.size();
    g.require(coordinates <= kMostCoordinates, c.name, "has too many coordinates");
  }
  for (std::size_t i = 0; i < classes.size(); ++i) check_disjoint(g, i);
  std::int64_t all = 1;
  for (int a = 0; a < g.mesh_axes(); ++a) all *= g.program().axes[as_index(a)].degree;
  g.go_to("classes");
  g.require(
      devices == all, [&] { return std::to_string(devices); }, "devices have a class",
      [&] { return "all " + std::to_string(all) + " devices of the mesh"; });
}

const ReferenceKind& kind_of_unit(const Grammar& g, const StateRef& state) {
  const Reference& r = g.program().reference;
  g.require_number(state.unit, r.units.size(), "unit");
  return r.kinds[as_index(r.units[as_index(state.unit)].kind)];
}

/// The dims of what a state is; null where any fit.
const std::vector<int>* dims_of_state(const Grammar& g, const StateRef& state) {
  const Reference& r = g.program().reference;
  static const std::vector<int> kNone;
  const bool of_unit =
      state.kind == StateRef::Kind::parameter || state.kind == StateRef::Kind::state;
  g.require(of_unit || state.unit == 0, "", "speaks of a unit where none matters");
  g.require(state.kind == StateRef::Kind::state || state.state == 0, "",
            "speaks of a state where none matters");
  if (state.kind == StateRef::Kind::zero || state.kind == StateRef::Kind::loss) {
    g.require(state.tensor == 0, "", "speaks of a tensor where none matters");
    return state.kind == StateRef::Kind::loss ? &kNone : nullptr;
  }
  if (state.kind == StateRef::Kind::number) {
    g.require_number(state.tensor, r.numbers.size(), "number of the reference");
    return &kNone;
  }
  if (state.kind == StateRef::Kind::input) {
    g.require_number(state.tensor, r.inputs.size(), "input of the reference");
    return &r.inputs[as_index(state.tensor)].dims;
  }
  const ReferenceKind& kind = kind_of_unit(g, state);
  g.require_number(state.tensor, kind.parameters.size(), "parameter of its unit");
  const ReferenceParameter& parameter = kind.parameters[as_index(state.tensor)];
  if (state.kind == StateRef::Kind::state) {
    g.require(parameter.trainable, parameter.name, "is not trained and has no state");
    g.require_number(state.state, r.rules[as_index(parameter.rule)].states.size(),
                     "state of the parameter's rule");
  }
  return &kind.values[as_index(parameter.value)].dims;
}

void check_index(const Grammar& g, const IndexTerm& term, bool has, std::int64_t count,
                 const std::string& what) {
  g.require(term.variable == IndexTerm::Variable::none, "", "has an index that is no number");
  if (!has) return g.require(term.offset == 0, "", "has an index that its buffer has not");
  g.require(
      term.offset >= 0 && term.offset < count, [&] { return std::to_string(term.offset); },
      [&] { return "is no " + what; }, [&] { return "from 0 to " + std::to_string(count - 1); });
}

/// Samples come anew with every step, and nothing else does.
void check_inputs(const Grammar& g, const Initial& initial, const Family& family) {
  const auto is_input = [](const StateRef& s) { return s.kind == StateRef::Kind::input; };
  g.require(std::ranges::none_of(initial.pieces, is_input) ||
                std::ranges::all_of(initial.pieces, is_input),
            family.name, "holds samples beside other things", "samples alone");
}

void check_initial(const Grammar& g, const Initial& initial, bool result) {
  const Program& p = g.program();
  g.require_number(initial.buffer.family, p.families.size(), "buffer");
  const Family& family = p.families[as_index(initial.buffer.family)];
  check_index(g, initial.buffer.unit, family.by_unit,
              static_cast<std::int64_t>(p.reference.units.size()), "unit");
  check_index(g, initial.buffer.micro_batch, family.by_micro_batch, p.axes.back().degree,
              "micro-batch");
  g.require(initial.buffer.piece == -1, family.name, "is named by one of its tensors");
  g.require(initial.pieces.size() == family.type.pieces.size(), family.name, [&] {
    return "holds " + std::to_string(family.type.pieces.size()) + " tensors, and " +
           std::to_string(initial.pieces.size()) + " are said";
  });
  check_inputs(g, initial, family);
  for (std::size_t i = 0; i < initial.pieces.size(); ++i) {
    const StateRef& state = initial.pieces[i];
    g.require(result || state.kind != StateRef::Kind::loss, family.name,
              "holds the loss before it is there", "a result");
    const std::vector<int>* dims = dims_of_state(g, state);
    if (dims == nullptr) continue;
    const std::vector<DividedDim>& piece = family.type.pieces[i].dims;
    const bool same = std::ranges::equal(piece, *dims, {}, &DividedDim::dim);
    g.require(
        same, [&] { return to_text(p, initial); }, "has other dims than the buffer",
        [&] { return to_text(p, family.type); });
  }
}

void check_initials(Grammar& g, const DeviceClass& c, const std::vector<Initial>& list,
                    bool result) {
  std::set<std::tuple<int, std::int64_t, std::int64_t>> seen;
  for (const Initial& initial : list) {
    g.go_to([&g, &c, &initial, result] {
      return "class '" + cut_short(c.name) + "', " + (result ? "results " : "holds ") +
             cut_short(to_text(g.program(), initial));
    });
    check_initial(g, initial, result);
    const BufferRef& b = initial.buffer;
    g.require(
        seen.insert({b.family, b.unit.offset, b.micro_batch.offset}).second,
        [&] { return to_text(g.program(), b); }, "stands twice");
  }
}

}  // namespace

void check_classes(Grammar& g) {
  check_boxes(g);
  for (const DeviceClass& c : g.program().classes) {
    check_initials(g, c, c.initial, false);
    check_initials(g, c, c.results, true);
  }
}

}  // namespace placet
