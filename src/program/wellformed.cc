#include "program/wellformed.h"

#include <algorithm>
#include <utility>

#include "program/grammar.h"
#include "program/text_names.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::size_t kMostAxes = 64;
constexpr std::int64_t kMostDevices = std::int64_t{1} << 40;

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
    g.require_shift(dim.by, dim.shift);
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

void Grammar::go_to_step(const StepPosition& step) {
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

void Grammar::require_shift(const Division& division, std::int64_t shift) const {
  if (shift == 0) return;
  const std::string text = "+" + std::to_string(shift);
  require(!division.empty() && division.back().size() == 1, text,
          "is the part of another device, but no single axis divides last", "DIM/AXIS+N");
  const std::int64_t degree = program_.axes[as_index(division.back()[0])].degree;
  require(shift > 0 && shift < degree, text, "is no other device along the axis",
          [&] { return "from 1 to " + std::to_string(degree - 1); });
}

void require_wellformed(const Program& program, const GrammarRequest& request) {
  Grammar g(program, request);
  check_axes(g);
  check_dims(g);
  check_kernels(g);
  check_reference(g);
  check_families(g);
  check_classes(g);
  check_bodies(g);
}

}  // namespace placet
