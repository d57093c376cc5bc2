#include "report/html_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/human.h"
#include "report/page_style.h"
#include "units/utf8.h"

namespace placet {
namespace {

constexpr double kBarWidth = 1000;

std::string rectangle(std::string_view css, double x, double width, const std::string& title) {
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.2f}\" y=\"0\" width=\"{:.2f}\" height=\"22\">"
      "<title>{}</title></rect>",
      css, x, width, escaped(title));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string page(std::string_view title, const std::string& body) {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" "
         "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>" +
         escaped(title) + "</title>\n<style>" + std::string(page_style()) +
         "</style>\n</head>\n<body>\n<main>\n" + body +
         "<footer>Made by Placet. 1 GB is 10<sup>9</sup> bytes, 1 GiB 2<sup>30</sup>.</footer>\n"
         "</main>\n</body>\n</html>\n";
}

std::string section(std::string_view title, const std::string& body) {
  return "<section class=\"card\">\n<h2>" + std::string(title) + "</h2>\n" + body + "</section>\n";
}

namespace {

/// The attribute of a column's cells.
std::string_view class_of(const HtmlColumn& column) {
  if (column.right) return column.spare ? " class=\"r spare\"" : " class=\"r\"";
  return column.spare ? " class=\"spare\"" : "";
}

}  // namespace

std::string html_table(const std::vector<HtmlColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows,
                       const std::vector<std::string>& below) {
  const auto css = [&](std::size_t i) { return class_of(columns[i]); };
  std::string text = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    text += fmt::format("<th{}>{}</th>", css(i), columns[i].title);
  }
  text += "</tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    text += below.empty() ? "<tr>" : "<tr class=\"above\">";
    for (std::size_t i = 0; i < columns.size(); ++i) {
      text += fmt::format("<td{}>{}</td>", css(i), rows[r][i]);
    }
    text += "</tr>\n";
    if (below.empty()) continue;
    text += fmt::format("<tr><td colspan=\"{}\"><div class=\"below\">{}</div></td></tr>\n",
                        columns.size(), below[r]);
  }
  return text + "</tbody></table></div>\n";
}

std::string folded(std::string_view title, const std::string& body) {
  return "<details><summary>" + std::string(title) + "</summary><div>\n" + body +
         "</div></details>\n";
}

std::string colour_of(MemoryCategory category) { return "c-" + std::string(name_of(category)); }

std::string memory_bar(const MemoryClass& memory, Bytes scale, Bytes capacity) {
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {:.0f} 22\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
      kBarWidth, escaped("memory at the peak: " + human_bytes(memory.peak)));
  svg += fmt::format("<rect class=\"track\" x=\"0\" y=\"0\" width=\"{:.0f}\" height=\"22\"/>",
                     kBarWidth);
  double x = 0;
  for (int i = 0; i < kMemoryCategoryCount; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    const Bytes amount = memory.at_peak[static_cast<std::size_t>(i)];
    const double width = kBarWidth * (amount / scale);
    if (amount > Bytes()) {
      svg += rectangle(colour_of(category), x, width,
                       std::string(name_of(category)) + ": " + human_bytes(amount));
    }
    x += width;
  }
  if (capacity > Bytes() && capacity < scale) {
    const double at = kBarWidth * (capacity / scale);
    svg += fmt::format(
        "<line class=\"limit\" x1=\"{0:.2f}\" y1=\"0\" x2=\"{0:.2f}\" y2=\"22\" "
        "vector-effect=\"non-scaling-stroke\"/>",
        at);
  }
  return svg + "</svg>";
}

std::string legend() {
  std::string text = "<div class=\"legend\">";
  for (int i = 0; i < kMemoryCategoryCount; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    text +=
        fmt::format("<span><i class=\"{}\"></i>{}</span>", colour_of(category), name_of(category));
  }
  return text + "</div>\n";
}

std::string finding_html(const char* severity, const Finding& finding) {
  std::string text = fmt::format(
      "<div class=\"finding {0}\"><strong>{0}: {1}</strong> "
      "<span class=\"soft\">{2}</span><p>{3}</p>",
      severity, escaped(finding.rule), escaped(finding.where), escaped(finding.message));
  if (!finding.cure.empty()) {
    text += "<p><span class=\"soft\">cure:</span> " + escaped(finding.cure) + "</p>";
  }
  return text + "</div>\n";
}

std::string code(std::string_view text) { return "<code>" + escaped(text) + "</code>"; }

std::string fact(std::string_view name, const std::string& html) {
  return "<dt>" + std::string(name) + "</dt><dd>" + html + "</dd>";
}

std::string share_bar(double part, std::string_view colour, std::string_view size) {
  return fmt::format(
      "<svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" {} role=\"img\" "
      "aria-label=\"{:.0f} %\"><rect class=\"track\" width=\"100\" height=\"10\"/>"
      "<rect class=\"{}\" width=\"{:.2f}\" height=\"10\"/></svg>",
      size, part * 100, colour, std::clamp(part, 0.0, 1.0) * 100);
}

std::string findings_html(const std::vector<Finding>& findings) {
  if (findings.empty()) return "";
  constexpr std::array names = {"error", "warning", "advice"};
  std::string text;
  for (std::size_t severity = 0; severity < names.size(); ++severity) {
    for (const Finding& finding : findings) {
      if (static_cast<std::size_t>(finding.severity) != severity) continue;
      text += finding_html(names[severity], finding);
    }
  }
  return section("Findings", text);
}

std::string verdict_html(const Derivation& derivation, const std::string& first) {
  const bool good = is_good(derivation);
  const bool judged = derivation.capacity > Bytes() || !good;
  return fmt::format("<div class=\"card verdict {}\">{}</div>\n",
                     !judged ? ""
                     : good  ? "good"
                             : "bad",
                     escaped(first + verdict_of(derivation)));
}

}  // namespace placet
