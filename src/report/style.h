// How text looks: plain in a pipe; bars and colour on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace placet {

struct TextStyle {
  bool colour = false;   // escape sequences
  bool unicode = false;  // block characters and typographic signs; else ASCII
  int width = 80;        // columns

  friend bool operator==(const TextStyle&, const TextStyle&) = default;
};

enum class Ink : unsigned char {
  plain,
  bold,
  faint,
  red,
  yellow,
  green,
  cyan,
  parameters,
  optimizer,
  gradients,
  activations,
  transient,
  overhead
};

/// `text` in an ink; as it is without colour.
std::string inked(const TextStyle& style, Ink ink, std::string_view text);

/// A horizontal bar of `columns` cells of which `part` (0..1) is filled, in eighths of a cell on a
/// terminal that has block characters. A part above zero shows at least a sliver.
std::string bar(const TextStyle& style, Ink ink, double part, std::size_t columns);

/// A bar of several parts one after the other; what is left is empty. ASCII bars use one letter per
/// part: `letter`.
struct BarPart {
  Ink ink = Ink::plain;
  char letter = '#';
  double part = 0;
};
std::string stacked_bar(const TextStyle& style, const std::vector<BarPart>& parts,
                        std::size_t columns);

/// Columns under a heading. Numbers (`right`) stand on the right. Where all are wider than the
/// lines are, columns that may go are left out, the last one first, and then those that may shrink
/// are cut with "...", the widest first.
struct Column {
  std::string title;
  bool right = false;
  bool may_shrink = false;
  bool may_go = false;
  std::size_t least = 8;  // columns of one that may shrink, as long as another one may go
};
std::string table(const TextStyle& style, const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows, std::size_t indent);

/// `text` broken between words at the width; lines after the first are indented by `indent`, which
/// is also where the first one is thought to begin.
std::string wrapped(const TextStyle& style, std::string_view text, std::size_t indent);

/// `text` with blanks after it (or before it) up to `columns`.
std::string padded(std::string_view text, std::size_t columns);
std::string padded_left(std::string_view text, std::size_t columns);

}  // namespace placet
