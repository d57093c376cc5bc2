// Runs as pages and as traces.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/html_parts.h"
#include "report/json_parts.h"
#include "report/run.h"
#include "report/run_parts.h"

namespace placet {
namespace {

constexpr std::size_t kMostLosses = 200;
constexpr double kMicroseconds = 1e6;

std::string run_heading(const RunSheet& sheet) {
  const RealRun& run = sheet.run;
  std::string facts =
      fact("mode", escaped(name_of(run.arithmetic))) + fact("ranks", std::to_string(run.ranks));
  for (const std::string& fault : sheet.judged.faults) facts += fact("fault", code(fault));
  if (!sheet.judged.run_as.empty()) facts += fact("run as", escaped(sheet.judged.run_as));
  if (!sheet.corpus.empty()) facts += fact("corpus", code(sheet.corpus));
  if (!sheet.saved.empty()) facts += fact("saved", code(sheet.saved));
  return fmt::format(
      "<h1>{}</h1>\n<dl class=\"facts\">{}</dl>\n<div class=\"card verdict {}\">{}: {}</div>\n",
      escaped(sheet.judged.title), facts, sheet.is_good() ? "good" : "bad", heading_of(run),
      escaped(sentence_of(run)));
}

/// The loss over the steps as a line, with its least and its greatest value.
std::string loss_picture(const std::vector<StepLoss>& steps) {
  constexpr double kPictureWidth = 640;
  constexpr double kPictureHeight = 160;
  const auto [least, most] = std::ranges::minmax_element(steps, {}, &StepLoss::ranks);
  const double range = std::max(most->ranks - least->ranks, 1e-12);
  if (steps.size() < 2 || !std::isfinite(range)) return "";
  std::string points;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const double x = kPictureWidth * static_cast<double>(k) / static_cast<double>(steps.size() - 1);
    const double y = kPictureHeight * (most->ranks - steps[k].ranks) / range;
    points += fmt::format("{:.1f},{:.1f} ", x, y);
  }
  return fmt::format(
      "<svg viewBox=\"-4 -4 {} {}\" width=\"100%\" role=\"img\" aria-label=\"loss by step\">"
      "<polyline points=\"{}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\"/></svg>\n"
      "<p class=\"soft\">from {:.6g} to {:.6g}</p>\n",
      kPictureWidth + 8, kPictureHeight + 8, points, least->ranks, most->ranks);
}

std::string losses_html(const RealRun& run) {
  if (run.steps.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const StepLoss& s : run.steps) {
    if (rows.size() == kMostLosses) break;
    rows.push_back({std::to_string(s.step), fmt::format("{:.12f}", s.one_device),
                    fmt::format("{:.12f}", s.ranks), s.equal ? "same bits" : "other bits"});
  }
  std::string text =
      loss_picture(run.steps) +
      html_table({{"step", true}, {"on one device", true}, {"on all ranks", true}, {"state"}},
                 rows);
  if (run.steps.size() > rows.size()) {
    text += fmt::format("<p class=\"soft\">the first {} of {} steps</p>\n", rows.size(),
                        run.steps.size());
  }
  return section("Loss", text);
}

std::string figures_html(std::string_view title, const std::vector<Beside>& lines) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(lines.size());
  for (const Beside& line : lines) {
    const std::string derived = line.derived ? std::to_string(*line.derived) : "-";
    std::string sign;
    if (line.derived) sign = *line.derived == line.measured ? "equal" : "differs";
    rows.push_back({escaped(line.what), derived, std::to_string(line.measured), sign});
  }
  return section(title, html_table({{""}, {"derived", true}, {"measured", true}, {""}}, rows));
}

std::string differences_html(const RealRun& run) {
  if (run.differences.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  rows.reserve(run.differences.size());
  for (const Difference& d : run.differences) {
    rows.push_back({code(d.tensor), std::to_string(d.rank), index_of(d), std::to_string(d.step),
                    fmt::format("{:.9g}", d.expected), fmt::format("{:.9g}", d.found)});
  }
  return section("Numbers with other bits", html_table({{"tensor"},
                                                        {"rank", true},
                                                        {"entry"},
                                                        {"step", true},
                                                        {"one device", true},
                                                        {"rank's", true}},
                                                       rows));
}

std::string watched_html(const RunSheet& sheet) {
  if (!sheet.is_watched) return "";
  if (sheet.run.watched.empty()) {
    return section("Watched", fmt::format("<p>{} readings, all of them what was written</p>\n",
                                          sheet.run.watched_readings));
  }
  std::vector<std::vector<std::string>> rows;
  for (const execute::WatchFinding& f : sheet.run.watched) {
    std::string axes;
    for (const std::string& axis : f.axes) axes += (axes.empty() ? "" : " ") + axis;
    rows.push_back({escaped(f.condition), code(f.tensor), escaped(axes), std::to_string(f.rank),
                    std::to_string(f.step), code(f.at) + " " + escaped(f.problem)});
  }
  return section(
      "Watched",
      html_table({{"condition"}, {"tensor"}, {"axes"}, {"rank", true}, {"step", true}, {"where"}},
                 rows));
}

std::string meanings_html(const RealRun& run) {
  std::string text;
  for (const std::string& word : run.meanings) text += "<li>" + code(word) + "</li>\n";
  return folded("What functions compute", "<ul>" + text + "</ul>\n");
}

Json track_name(std::string_view what, int rank, int thread, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

std::string run_page(const RunSheet& sheet) {
  const RealRun& run = sheet.run;
  std::string body =
      run_heading(sheet) + losses_html(run) + watched_html(sheet) + differences_html(run);
  if (!run.stuck) {
    body += figures_html("Bytes that a rank sends in a step", sheet.sent) +
            figures_html("Bytes in buffers of a rank", sheet.held) +
            fmt::format(
                "<p>The peak is reached at {} (rank {}). All ranks' numbers take {} bytes "
                "in this mode, a kernel at most {} beside them.</p>\n",
                code(run.held.at), run.held.rank, run.canonical_bytes, run.workspace_bytes);
  }
  return page(sheet.judged.title, body + meanings_html(run));
}

std::string ran_trace_json(const RunSheet& sheet) {
  Json events = Json::array();
  for (int rank = 0; rank < sheet.run.ranks; ++rank) {
    events.push_back(track_name("process_name", rank, 0, "rank " + std::to_string(rank)));
    events.push_back(track_name("thread_name", rank, 0, "computes"));
    events.push_back(track_name("thread_name", rank, 1, "messages"));
  }
  for (const execute::RanSpan& span : sheet.run.spans) {
    Json args{{"step", span.step}, {"phase", span.phase}};
    if (!span.axes.empty()) args["axes"] = span.axes;
    events.push_back({{"ph", "X"},
                      {"name", span.name},
                      {"cat", span.phase},
                      {"pid", span.rank},
                      {"tid", span.is_message ? 1 : 0},
                      {"ts", span.begin * kMicroseconds},
                      {"dur", span.seconds * kMicroseconds},
                      {"args", std::move(args)}});
  }
  return print_json(Json{
      {"traceEvents", std::move(events)},
      {"displayTimeUnit", "ms"},
      {"otherData", {{"program", sheet.judged.title}, {"cut_short", sheet.run.spans_cut_short}}}});
}

}  // namespace placet
