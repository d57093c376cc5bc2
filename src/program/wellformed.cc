#include "program/wellformed.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "program/grammar.h"
#include "program/text.h"
#include "program/text_names.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::size_t kMostAxes = 64;
constexpr std::size_t kMostClasses = 1024;
constexpr std::size_t kMostCoordinates = std::size_t{1} << 16;
constexpr std::int64_t kLargestDegree = std::int64_t{1} << 24;
constexpr std::int64_t kMostDevices = std::int64_t{1} << 40;
constexpr std::int64_t kLargestExtent = std::int64_t{1} << 48;
constexpr std::int64_t kMostElements = std::int64_t{1} << 56;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

/// Bytes that a character of UTF-8 has, by its first; 0 where none begins so.
std::size_t length_of_character(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte < 0x80) return 1;
  if (byte >= 0xc2 && byte < 0xe0) return 2;
  if (byte >= 0xe0 && byte < 0xf0) return 3;
  return byte >= 0xf0 && byte < 0xf5 ? 4 : 0;
}

/// Whether the second byte of a character makes it neither overlong nor one that UTF-8 leaves out
/// (RFC 3629, section 4).
bool is_second(char first, char second) {
  const auto a = static_cast<unsigned char>(first);
  const auto b = static_cast<unsigned char>(second);
  if (a == 0xe0) return b >= 0xa0;
  if (a == 0xed) return b < 0xa0;
  if (a == 0xf0) return b >= 0x90;
  return a != 0xf4 || b < 0x90;
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

/// UTF-8 without control characters, as reports of all forms carry names.
bool is_printable(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = length_of_character(text[i]);
    if (length == 0 || i + length > text.size() || is_control(text[i])) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if (!is_continuation(text[i + k])) return false;
    }
    if (length > 1 && !is_second(text[i], text[i + 1])) return false;
    i += length;
  }
  return true;
}

void check_axis(const Grammar& g, const ProgramAxis& axis) {
  g.require(
      axis.degree >= 1 && axis.degree <= kLargestDegree, axis.name,
      [&] { return "has the degree " + std::to_string(axis.degree); },
      [&] { return "from 1 to " + std::to_string(kLargestDegree); });
  if (axis.shares.empty()) return;
  g.require(
      static_cast<std::int64_t>(axis.shares.size()) == axis.degree, axis.name,
      [&] { return "has " + std::to_string(axis.shares.size()) + " shares"; },
      [&] { return "one for each of its " + std::to_string(axis.degree) + " coordinates"; });
  std::int64_t sum = 0;
  for (std::int64_t share : axis.shares) {
    g.require(share >= 0 && share <= kLargestExtent && sum <= kLargestExtent, axis.name,
              "has a share out of range");
    sum += share;
  }
  g.require(sum > 0 && sum <= kLargestExtent, axis.name, "has shares that add up to nothing");
}

void check_axes(Grammar& g) {
  const Program& p = g.program();
  g.go_to("mesh");
  g.require(!p.axes.empty(), "", "has no axis of micro-batches");
  g.require(
      p.axes.size() <= kMostAxes, [&] { return std::to_string(p.axes.size()); }, "is too many axes",
      [&] { return "at most " + std::to_string(kMostAxes); });
  g.require_names(p.axes, "an axis");
  std::int64_t devices = 1;
  for (std::size_t a = 0; a < p.axes.size(); ++a) {
    check_axis(g, p.axes[a]);
    if (a + 1 < p.axes.size()) devices *= p.axes[a].degree;
    g.require(devices <= kMostDevices, p.axes[a].name, "makes too many devices");
  }
}

void check_dims(Grammar& g) {
  const Program& p = g.program();
  g.go_to("dims");
  g.require_names(p.dims, "a dim");
  for (const LogicalDim& dim : p.dims) {
    g.require(
        dim.extent >= 1 && dim.extent <= kLargestExtent, dim.name,
        [&] { return "has the extent " + std::to_string(dim.extent); },
        [&] { return "from 1 to " + std::to_string(kLargestExtent); });
    g.require(dim.chosen >= 0 && dim.chosen <= dim.extent, dim.name,
              "has more chosen ones than there are");
  }
}

void check_piece(const Grammar& g, const Family& family, const PieceType& piece) {
  const Program& p = g.program();
  std::vector<bool> used(p.axes.size(), false);
  std::int64_t elements = 1;
  for (const DividedDim& dim : piece.dims) {
    g.require_number(dim.dim, p.dims.size(), "dim");
    g.require_division(dim.by, used);
    const std::int64_t extent = p.dims[as_index(dim.dim)].extent;
    g.require(elements <= kMostElements / extent, family.name, "is too large");
    elements *= extent;
  }
  if (!family.type.flat.empty()) g.require_division({family.type.flat}, used);
  g.require(!used.back() || family.by_micro_batch, family.name,
            "is divided by micro-batches, but has not an element for each", "an index [j]");
}

void check_families(Grammar& g) {
  const Program& p = g.program();
  g.go_to("buffers");
  g.require_names(p.families, "a buffer");
  for (const Family& family : p.families) {
    g.go_to([&family] { return "buffer '" + cut_short(family.name) + "'"; });
    g.require(!family.type.pieces.empty(), family.name, "holds no tensor",
              "at least one list of dims in brackets");
    for (const PieceType& piece : family.type.pieces) check_piece(g, family, piece);
  }
}

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

/// The number of devices in a class's box.
std::int64_t check_box(const Grammar& g, const DeviceClass& c) {
  const Program& p = g.program();
  g.require(
      static_cast<int>(c.box.size()) == g.mesh_axes(), c.name,
      [&] { return "has coordinates along " + std::to_string(c.box.size()) + " axes"; },
      [&] {
        return "one list for each of the " + std::to_string(g.mesh_axes()) + " axes of the mesh";
      });
  std::int64_t devices = 1;
  for (std::size_t a = 0; a < c.box.size(); ++a) {
    const std::vector<std::int64_t>& list = c.box[a];
    std::int64_t before = -1;
    for (std::int64_t coordinate : list) {
      g.require(
          coordinate > before && coordinate < p.axes[a].degree,
          [&] { return std::to_string(coordinate); },
          [&] { return "is no further coordinate along " + p.axes[a].name; },
          [&] {
            return "coordinates from 0 to " + std::to_string(p.axes[a].degree - 1) +
                   " in rising order";
          });
      before = coordinate;
    }
    devices *= list.empty() ? p.axes[a].degree : static_cast<std::int64_t>(list.size());
  }
  return devices;
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
  for (std::size_t b = 0; b < classes.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      if (!overlap(classes[a], classes[b])) continue;
      g.go_to([&c = classes[b]] { return "class '" + cut_short(c.name) + "'"; });
      g.refuse(classes[b].name,
               "has devices that class '" + cut_short(classes[a].name) + "' has already");
    }
  }
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
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Initial& initial = list[i];
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

std::string cut_short(std::string_view text) {
  constexpr std::size_t kLongest = 100;
  if (text.size() <= kLongest) return std::string(text);
  // A character is not cut in two.
  std::size_t end = kLongest - 3;
  while (end > 0 && is_continuation(text[end])) --end;
  return std::string(text.substr(0, end)) + "...";
}

void Grammar::go_to(std::function<std::string()> place) {
  place_ = std::move(place);
  line_ = 0;
}

void Grammar::go_to(const char* place) {
  go_to([place] { return std::string(place); });
}

void Grammar::go_to_step(const StepPlace& step) {
  step_ = step;
  go_to([this] {
    const auto body = as_index(step_.body);
    const std::string& name =
        step_.in_class ? program_.classes[body].name : program_.procedures[body].name;
    return std::string(step_.in_class ? "class '" : "procedure '") + cut_short(name) + "', step " +
           std::to_string(step_.step + 1);
  });
  if (request_.lines == nullptr) return;
  const auto& lines = step.in_class ? request_.lines->classes : request_.lines->procedures;
  line_ = lines.at(as_index(step.body)).at(as_index(step.step));
}

void Grammar::refuse(std::string_view value, const std::string& problem,
                     const std::string& allowed) const {
  throw InputError(
      {.where = request_.where + (line_ > 0 ? ", line " + std::to_string(line_) : ": " + place_()),
       .value = cut_short(value),
       .problem = problem,
       .allowed = allowed});
}

void Grammar::require_number(int number, std::size_t count, std::string_view what) const {
  if (number >= 0 && as_index(number) < count) return;
  refuse(std::to_string(number), "is the number of no " + std::string(what),
         count == 0 ? "there is none" : "from 0 to " + std::to_string(count - 1));
}

void Grammar::require_name(std::string_view name, std::string_view what) const {
  if (name.empty()) refuse("", std::string(what) + " has no name");
  require_text(name, what);
}

void Grammar::require_text(std::string_view text, std::string_view what) const {
  if (is_printable(text)) return;
  refuse("", std::string(what) + " has characters in its text that cannot be printed",
         "UTF-8 without control characters");
}

void Grammar::require_distinct(std::vector<std::string_view> names, std::string_view what) const {
  for (std::string_view name : names) require_name(name, what);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) refuse(*twice, "is the name of " + std::string(what) + " twice");
}

void Grammar::require_division(const Division& division, std::vector<bool>& used) const {
  for (const AxisList& level : division) {
    require(!level.empty(), "()", "is a division by no axis");
    for (int axis : level) {
      require_number(axis, program_.axes.size(), "axis");
      require(!used[as_index(axis)], program_.axes[as_index(axis)].name,
              "stands twice among the axes");
      used[as_index(axis)] = true;
    }
  }
}

void require_wellformed(const Program& program, const GrammarRequest& request) {
  Grammar g(program, request);
  check_axes(g);
  check_dims(g);
  check_kernels(g);
  check_reference(g);
  check_families(g);
  check_boxes(g);
  for (const DeviceClass& c : program.classes) {
    check_initials(g, c, c.initial, false);
    check_initials(g, c, c.results, true);
  }
  check_bodies(g);
}

}  // namespace placet
