#include "report/derivation_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "placement/strategy.h"
#include "report/human.h"
#include "report/memory_bars.h"
#include "report/trained.h"

namespace placet {
namespace {

std::string heading(const TextStyle& style, std::string_view title, std::string_view rest) {
  return inked(style, Ink::bold, title) + (rest.empty() ? "" : "  ") + std::string(rest) + "\n";
}

void add_modes(std::vector<std::string>& row, const How& how) {
  for (const State state : kStates) row.push_back(mode_text(how, state));
}

std::string front_matter(const Judged& judged, const TextStyle& style) {
  const Job& job = *judged.job;
  const char* dot = style.unicode ? " · " : ", ";
  std::string first = human_count(count_parameters(job.model).total) + " parameters" + dot +
                      std::to_string(judged.derivation.devices) +
                      (judged.derivation.devices == 1 ? " device" : " devices");
  if (job.cluster) first += " of " + job.cluster->name;
  std::string text = heading(style, job.model.name, first);
  const auto line = [&](const char* name, const std::string& value) {
    const std::string label = padded(name, 11);
    text += inked(style, Ink::faint, label) + wrapped(style, value, 11) + "\n";
  };
  line("placement", job.placement_text);
  const std::int64_t micro_batches = micro_batches_of(job);
  line("batch",
       fmt::format("{} samples of {} tokens{}{}", job.batch.global, job.batch.sequence, dot,
                   micro_batches > 0
                       ? fmt::format("{} micro-batch{} of {} per device", micro_batches,
                                     micro_batches == 1 ? "" : "es", job.batch.micro)
                       : fmt::format("micro-batches of {}", job.batch.micro)));
  line("training", job.precision.name + dot + job.optimizer.name + dot + job.engine_text);
  if (const std::string trained = trained_text(job); !trained.empty()) line("trained", trained);
  for (const std::string& note : job.model.notes) line("note", note);
  return text + "\n";
}

std::string mesh_text(const Job& job, const TextStyle& style) {
  if (job.placement.axes.empty()) return "";
  const std::vector<Column> columns = {{.title = "axis"},
                                       {.title = "degree", .right = true},
                                       {.title = "class"},
                                       {.title = "cut"},
                                       {.title = "params"},
                                       {.title = "optim"},
                                       {.title = "grads"},
                                       {.title = "activ"},
                                       {.title = "link", .may_shrink = true}};
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < job.placement.axes.size(); ++i) {
    const AxisPlacement& axis = job.placement.axes[i];
    const std::string link = link_of_axis(job, i);
    rows.push_back({std::string(axis.axis.text()), std::to_string(axis.degree), "all",
                    std::string(name_of(axis.how.cut))});
    add_modes(rows.back(), axis.how);
    rows.back().push_back(link.empty() ? "-" : link);
    for (const Override& other : axis.overrides) {
      rows.push_back({"", "", spell(other.selector), std::string(name_of(other.how.cut))});
      add_modes(rows.back(), other.how);
      rows.back().emplace_back();
    }
  }
  return table(style, columns, rows, 0) + "\n";
}

std::string communication_text(const Judged& judged, const TextStyle& style) {
  const Job& job = *judged.job;
  if (judged.derivation.communication.empty()) return "";
  const CommunicationClass& most = busiest(judged.derivation);
  std::string title = "sent per device and step: " + human_bytes(most.sent);
  if (judged.derivation.communication.size() > 1) {
    title += " (" + class_name(job, most.stage) + ", the most)";
  }
  std::string text = heading(style, "Communication", title);
  if (most.terms.empty()) return text + "  nothing is sent\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const CommunicationLine& line : lines_of(job, most)) {
    rows.push_back(
        {fmt::format("{}", fmt::join(line.axes, " ")), spaced(name_of(line.collective)),
         std::string(name_of(line.state)), std::to_string(line.group), grouped(line.calls),
         human_bytes(line.sent),
         most.sent == Bytes() ? "-" : fmt::format("{:.0f} %", 100 * (line.sent / most.sent)),
         line.link.empty() ? "-" : line.link});
  }
  const std::vector<Column> columns = {{.title = "axes", .may_shrink = true, .least = 16},
                                       {.title = "collective"},
                                       {.title = "of"},
                                       {.title = "group", .right = true},
                                       {.title = "calls", .right = true},
                                       {.title = "sent", .right = true},
                                       {.title = "share", .right = true},
                                       {.title = "link", .may_shrink = true, .may_go = true}};
  return text + table(style, columns, rows, 2) + "\n";
}

std::string lengths_text(const Judged& judged, const TextStyle& style) {
  if (!judged.lengths) return "";
  const LengthSpread& spread = *judged.lengths;
  std::string text = heading(style, "Lengths",
                             fmt::format("{} samples per step; a device takes {} tokens at once",
                                         grouped(spread.samples), grouped(spread.at_once)));
  std::vector<std::vector<std::string>> rows;
  rows.reserve(spread.uses.size());
  for (const LengthUse& use : spread.uses) {
    rows.push_back({grouped(use.tokens), to_string(use.share), std::to_string(use.devices),
                    std::to_string(use.samples),
                    fmt::format("{:.1f} %", 100 * in_double(use.rounds)), grouped(use.held),
                    human_bytes(use.exchanged)});
  }
  text += table(style,
                {{.title = "tokens", .right = true},
                 {.title = "share", .right = true},
                 {.title = "devices", .right = true},
                 {.title = "at once", .right = true},
                 {.title = "of the time", .right = true},
                 {.title = "tokens held", .right = true},
                 {.title = "sent for attention", .right = true}},
                rows, 2);
  const std::string rest = fmt::format(
      "the heaviest device over the mean: {:.2f} x the tokens, {:.2f} x the pairs of query and "
      "key; it sends {} for attention where the mean is {}",
      in_double(spread.held_imbalance), in_double(spread.pair_imbalance),
      human_bytes(spread.most_exchanged), human_bytes(spread.mean_exchanged));
  return text + "  " + wrapped(style, rest, 2) + "\n\n";
}

std::string verdict_text(const Derivation& derivation, const TextStyle& style) {
  const bool good = is_good(derivation);
  const bool judged = derivation.capacity > Bytes() || !good;
  const Ink ink = !judged ? Ink::bold : good ? Ink::green : Ink::red;
  const char* mark = !style.unicode ? "" : !judged ? "○ " : good ? "✓ " : "✗ ";
  return inked(style, ink, mark + wrapped(style, verdict_of(derivation), 0)) + "\n";
}

}  // namespace

std::string finding_words(const Finding& finding) {
  const std::string where = finding.where.empty() ? "" : ", " + finding.where;
  const std::string cure = finding.cure.empty() ? "" : " (cure: " + finding.cure + ")";
  return finding.rule + where + ": " + finding.message + cure;
}

std::string findings_text(const std::vector<Finding>& findings, const TextStyle& style) {
  if (findings.empty()) return "";
  constexpr std::array names = {"error", "warning", "advice"};
  constexpr std::array inks = {Ink::red, Ink::yellow, Ink::cyan};
  std::vector<const Finding*> sorted;
  sorted.reserve(findings.size());
  for (const Finding& finding : findings) sorted.push_back(&finding);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Finding* a, const Finding* b) { return a->severity < b->severity; });
  std::string text = heading(style, "Findings", "");
  for (const Finding* finding : sorted) {
    const auto severity = static_cast<std::size_t>(finding->severity);
    std::string where = finding->rule;
    if (!finding->where.empty()) where += ", " + finding->where;
    text += "  " + inked(style, inks[severity], padded(names[severity], 8)) + "  " + where + "\n";
    text += "            " + wrapped(style, finding->message, 12) + "\n";
    if (!finding->cure.empty()) {
      text += "            " + wrapped(style, "cure: " + finding->cure, 12) + "\n";
    }
  }
  return text + "\n";
}

std::string derivation_text(const Judged& judged, const TextStyle& style) {
  return front_matter(judged, style) + mesh_text(*judged.job, style) + memory_text(judged, style) +
         communication_text(judged, style) + lengths_text(judged, style) +
         findings_text(judged.derivation.findings, style) + verdict_text(judged.derivation, style);
}

}  // namespace placet
