#include "report/html_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/human.h"

namespace placet {
namespace {

constexpr std::string_view kStyle = R"css(
:root{--bg:#f6f7f9;--card:#fff;--ink:#1c2430;--soft:#5d6b7e;--line:#e2e6ec;--good:#1a7f4b;--bad:#c0362c;
--parameters:#3568c9;--optimizer:#8a4fc4;--gradients:#d9882b;--activations:#2f9e6b;--transient:#22a3b5;--overhead:#98a3b3}
@media (prefers-color-scheme:dark){:root{--bg:#12161c;--card:#1b212a;--ink:#e4e9f0;--soft:#98a5b6;--line:#2d3643;
--good:#4cc38a;--bad:#ff7b6e;--parameters:#6d9bf1;--optimizer:#b383ea;--gradients:#eba95a;--activations:#55c592;--transient:#4fc6d6;--overhead:#7b8797}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1080px;margin:0 auto;padding:32px 20px 60px}
h1{font-size:26px;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:16px;margin:0 0 14px}
p{margin:6px 0}
.soft{color:var(--soft)}
code,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:13px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px 20px;margin:16px 0}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:4px 18px;margin:12px 0 0}
.facts dt{color:var(--soft)}.facts dd{margin:0;overflow-wrap:anywhere}
.verdict{border-left:5px solid var(--soft);font-size:17px;font-weight:600}
.verdict.good{border-left-color:var(--good);color:var(--good)}.verdict.bad{border-left-color:var(--bad);color:var(--bad)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px}
th{text-align:left;color:var(--soft);font-weight:500;font-size:12.5px;border-bottom:1px solid var(--line);padding:4px 10px 6px 0;white-space:nowrap}
td{border-bottom:1px solid var(--line);padding:6px 10px 6px 0;vertical-align:top}
tr:last-child td{border-bottom:0}
th.r,td.r{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.bars{display:grid;grid-template-columns:max-content 1fr max-content;gap:10px 14px;align-items:center}
.bars svg{width:100%;height:22px;display:block}
.bars .n{font-variant-numeric:tabular-nums;white-space:nowrap}
.legend{display:flex;flex-wrap:wrap;gap:6px 18px;margin:14px 0 0;font-size:13px;color:var(--soft)}
.legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;vertical-align:-1px}
.c-parameters{fill:var(--parameters);background:var(--parameters)}.c-optimizer{fill:var(--optimizer);background:var(--optimizer)}
.c-gradients{fill:var(--gradients);background:var(--gradients)}.c-activations{fill:var(--activations);background:var(--activations)}
.c-transient{fill:var(--transient);background:var(--transient)}.c-overhead{fill:var(--overhead);background:var(--overhead)}
.track{fill:var(--line)}.limit{stroke:var(--bad);stroke-width:2}
.mode{display:inline-block;min-width:30px;text-align:center;border:1px solid var(--line);border-radius:6px;padding:0 7px;margin-right:4px}
.mode.S,.mode.Sx{background:color-mix(in srgb,var(--parameters) 16%,transparent);border-color:transparent}
.mode.O,.mode.M{background:color-mix(in srgb,var(--gradients) 18%,transparent);border-color:transparent}
.finding{border-left:4px solid var(--soft);padding:2px 0 2px 14px;margin:12px 0}
.finding.error{border-color:var(--bad)}.finding.warning{border-color:var(--gradients)}.finding.advice{border-color:var(--transient)}
details{margin-top:14px}summary{cursor:pointer;color:var(--soft)}
details>div{margin-top:10px}
footer{margin-top:28px;font-size:12.5px;color:var(--soft)}
@media (max-width:640px){.bars{grid-template-columns:1fr}.card{padding:14px}}
@media print{body{background:#fff}.card{break-inside:avoid}}
)css";

constexpr double kBarWidth = 1000;

std::string rectangle(std::string_view css, double x, double width, const std::string& title) {
  return fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"0\" width=\"{:.2f}\" height=\"22\">"
                     "<title>{}</title></rect>",
                     css, x, width, escaped(title));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string page(std::string_view title, const std::string& body) {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" "
         "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>" +
         escaped(title) + "</title>\n<style>" + std::string(kStyle) + "</style>\n</head>\n<body>\n<main>\n" +
         body +
         "<footer>Derived by Placet. Bytes are decimal: 1 GB is 10<sup>9</sup> bytes.</footer>\n"
         "</main>\n</body>\n</html>\n";
}

std::string section(std::string_view title, const std::string& body) {
  return "<section class=\"card\">\n<h2>" + std::string(title) + "</h2>\n" + body + "</section>\n";
}

std::string html_table(const std::vector<HtmlColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows) {
  const auto css = [&](std::size_t i) { return columns[i].right ? " class=\"r\"" : ""; };
  std::string text = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    text += fmt::format("<th{}>{}</th>", css(i), columns[i].title);
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    text += "<tr>";
    for (std::size_t i = 0; i < columns.size(); ++i) {
      text += fmt::format("<td{}>{}</td>", css(i), row[i]);
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string folded(std::string_view title, const std::string& body) {
  return "<details><summary>" + std::string(title) + "</summary><div>\n" + body + "</div></details>\n";
}

std::string colour_of(MemoryCategory category) { return "c-" + std::string(name_of(category)); }

std::string memory_bar(const MemoryClass& memory, Bytes scale, Bytes capacity) {
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {:.0f} 22\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
      kBarWidth, escaped("memory at the peak: " + human_bytes(memory.peak)));
  svg += fmt::format("<rect class=\"track\" x=\"0\" y=\"0\" width=\"{:.0f}\" height=\"22\"/>", kBarWidth);
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
    svg += fmt::format("<line class=\"limit\" x1=\"{0:.2f}\" y1=\"0\" x2=\"{0:.2f}\" y2=\"22\" "
                       "vector-effect=\"non-scaling-stroke\"/>",
                       at);
  }
  return svg + "</svg>";
}

std::string legend() {
  std::string text = "<div class=\"legend\">";
  for (int i = 0; i < kMemoryCategoryCount; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    text += fmt::format("<span><i class=\"{}\"></i>{}</span>", colour_of(category), name_of(category));
  }
  return text + "</div>\n";
}

std::string findings_html(const std::vector<Finding>& findings) {
  if (findings.empty()) return "";
  constexpr std::array names = {"error", "warning", "advice"};
  std::string text;
  for (std::size_t severity = 0; severity < names.size(); ++severity) {
    for (const Finding& finding : findings) {
      if (static_cast<std::size_t>(finding.severity) != severity) continue;
      text += fmt::format("<div class=\"finding {0}\"><strong>{0}: {1}</strong> "
                          "<span class=\"soft\">{2}</span><p>{3}</p>",
                          names[severity], escaped(finding.rule), escaped(finding.where),
                          escaped(finding.message));
      if (!finding.cure.empty()) {
        text += "<p><span class=\"soft\">cure:</span> " + escaped(finding.cure) + "</p>";
      }
      text += "</div>\n";
    }
  }
  return section("Findings", text);
}

std::string verdict_html(const Derivation& derivation) {
  const bool good = is_good(derivation);
  const bool judged = derivation.capacity > Bytes() || !good;
  return fmt::format("<div class=\"card verdict {}\">{}</div>\n", !judged ? "" : good ? "good" : "bad",
                     escaped(verdict_of(derivation)));
}

}  // namespace placet
