#include "report/style.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "report/human.h"

namespace placet {
namespace {

const char* escape_of(Ink ink) {
  switch (ink) {
    case Ink::plain:
      return "";
    case Ink::bold:
      return "\x1b[1m";
    case Ink::faint:
      return "\x1b[2m";
    case Ink::red:
      return "\x1b[31m";
    case Ink::yellow:
      return "\x1b[33m";
    case Ink::green:
      return "\x1b[32m";
    case Ink::cyan:
      return "\x1b[36m";
    case Ink::parameters:
      return "\x1b[34m";
    case Ink::optimizer:
      return "\x1b[35m";
    case Ink::gradients:
      return "\x1b[33m";
    case Ink::activations:
      return "\x1b[32m";
    case Ink::transient:
      return "\x1b[36m";
    case Ink::overhead:
      return "\x1b[90m";
  }
  return "";
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

std::string shortened(const std::string& text, std::size_t columns) {
  if (columns_of(text) <= columns) return text;
  if (columns <= 3) return std::string(columns, '.');
  std::string result;
  for (const char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    if (starts && columns_of(result) == columns - 3) break;
    result += c;
  }
  return result + "...";
}

std::vector<std::size_t> widths_of(const std::vector<Column>& columns,
                                   const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = columns_of(columns[i].title);
    for (const auto& row : rows) width = std::max(width, columns_of(row[i]));
    widths.push_back(width);
  }
  return widths;
}

/// Which columns stay: some go if there is no room for all, though others shrink as far as is good.
std::vector<std::size_t> staying(const std::vector<std::size_t>& widths,
                                 const std::vector<Column>& columns, std::size_t available) {
  std::vector<std::size_t> places(columns.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto needed = [&] {
    std::size_t total = 2 * (places.size() - 1);
    for (const std::size_t i : places) {
      total += columns[i].may_shrink ? std::min(widths[i], columns[i].least) : widths[i];
    }
    return total;
  };
  while (needed() > available) {
    const auto goes = std::find_if(places.rbegin(), places.rend(),
                                   [&](std::size_t i) { return columns[i].may_go; });
    if (goes == places.rend()) break;
    places.erase(std::next(goes).base());
  }
  return places;
}

// Takes what is too wide from the columns that may shrink, the widest first.
void shrink(std::vector<std::size_t>& widths, const std::vector<Column>& columns,
            std::size_t available) {
  constexpr std::size_t kLeast = 8;
  std::size_t total = 2 * (widths.size() - 1);
  for (const std::size_t width : widths) total += width;
  while (total > available) {
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (!columns[i].may_shrink || widths[i] <= kLeast) continue;
      if (widest == nullptr || widths[i] > *widest) widest = &widths[i];
    }
    if (widest == nullptr) return;
    --*widest;
    --total;
  }
}

}  // namespace

std::string inked(const TextStyle& style, Ink ink, std::string_view text) {
  if (!style.colour || ink == Ink::plain || text.empty()) return std::string(text);
  return std::string(escape_of(ink)) + std::string(text) + "\x1b[0m";
}

std::string bar(const TextStyle& style, Ink ink, double part, std::size_t columns) {
  constexpr std::array eighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double cells = std::clamp(part, 0.0, 1.0) * static_cast<double>(columns);
  if (!style.unicode) {
    auto filled = static_cast<std::size_t>(std::lround(cells));
    if (part > 0 && filled == 0) filled = 1;
    return inked(style, ink, std::string(filled, '#')) + std::string(columns - filled, ' ');
  }
  auto steps = static_cast<std::size_t>(std::lround(cells * 8));
  if (part > 0 && steps == 0) steps = 1;
  const std::string filled = repeated("█", steps / 8) + eighths[steps % 8];
  return inked(style, ink, filled) + std::string(columns - columns_of(filled), ' ');
}

std::string stacked_bar(const TextStyle& style, const std::vector<BarPart>& parts,
                        std::size_t columns) {
  std::string result;
  double sum = 0;
  std::size_t begin = 0;
  for (const BarPart& part : parts) {
    sum += part.part;
    const double border = std::min(sum, 1.0) * static_cast<double>(columns);
    const std::size_t end = std::max(begin, static_cast<std::size_t>(std::lround(border)));
    const bool blocks = style.unicode && style.colour;
    const std::string cells =
        blocks ? repeated("█", end - begin) : std::string(end - begin, part.letter);
    result += inked(style, part.ink, cells);
    begin = end;
  }
  const char* empty = style.unicode ? "·" : ".";
  return result + inked(style, Ink::faint, repeated(empty, columns - begin));
}

std::string padded(std::string_view text, std::size_t columns) {
  const std::size_t have = columns_of(text);
  return std::string(text) + std::string(have < columns ? columns - have : 0, ' ');
}

std::string padded_left(std::string_view text, std::size_t columns) {
  const std::size_t have = columns_of(text);
  return std::string(have < columns ? columns - have : 0, ' ') + std::string(text);
}

std::string table(const TextStyle& style, const std::vector<Column>& all,
                  const std::vector<std::vector<std::string>>& rows, std::size_t indent) {
  const auto width = static_cast<std::size_t>(std::max(style.width, 40)) - indent;
  const std::vector<std::size_t> wide = widths_of(all, rows);
  const std::vector<std::size_t> places = staying(wide, all, width);
  std::vector<Column> columns;
  std::vector<std::size_t> widths;
  for (const std::size_t i : places) {
    columns.push_back(all[i]);
    widths.push_back(wide[i]);
  }
  shrink(widths, columns, width);
  const auto line_of = [&](const auto& cell_at) {
    std::string line(indent, ' ');
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const std::string cell = shortened(cell_at(places[k]), widths[k]);
      line += columns[k].right ? padded_left(cell, widths[k]) : padded(cell, widths[k]);
      if (k + 1 < columns.size()) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  const std::string titles = line_of([&](std::size_t i) { return all[i].title; });
  std::string text = inked(style, Ink::faint, titles) + "\n";
  for (const auto& row : rows) text += line_of([&](std::size_t i) { return row[i]; }) + "\n";
  return text;
}

std::string wrapped(const TextStyle& style, std::string_view text, std::size_t indent) {
  const auto width = static_cast<std::size_t>(std::max(style.width, 40));
  std::string result;
  std::size_t column = indent;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const std::size_t needed = columns_of(word);
    if (column > indent && column + 1 + needed > width) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += needed;
    begin = end + 1;
  }
  return result;
}

}  // namespace placet
