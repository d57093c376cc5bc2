#include "report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/human.h"
#include "report/json_parts.h"

namespace placet {
namespace {

constexpr std::size_t kBarColumns = 24;

double rate(double amount, Seconds time) {
  return time > Seconds() ? amount / in_seconds(time) : 0;
}

double share(Seconds part, Seconds whole) { return whole > Seconds() ? part / whole : 0; }

std::string axes_text(const Job& job, AxisMask axes) {
  std::string text;
  for (const std::string& name : axis_names(job, axes)) text += (text.empty() ? "" : " ") + name;
  return text;
}

std::string name_of_term(const Job& job, const TimeTerm& term) {
  std::string text(term.what);
  if (!term.unit.empty()) text += " of " + std::string(term.unit);
  if (term.axes != 0) text += " over " + axes_text(job, term.axes);
  if (!term.phase.empty()) text += ", " + std::string(term.phase);
  return text;
}

/// Exposed communication by axes.
std::map<std::string, Seconds> exposed_by_axes(const Job& job, const TimeDerivation& time) {
  std::map<std::string, Seconds> by;
  for (const TimeTerm& term : time.terms) {
    if (term.kind != TimeKind::exposed) continue;
    by[term.axes == 0 ? "host" : axes_text(job, term.axes)] += term.time;
  }
  const Seconds sent = total_of(time, TimeKind::send);
  if (sent > Seconds()) by["stages"] += sent;
  return by;
}

Seconds compute_of(const TimeDerivation& time, std::string_view what) {
  Seconds sum;
  for (const TimeTerm& term : time.terms) {
    if (term.kind == TimeKind::compute && term.what == what) sum += term.time;
  }
  return sum;
}

std::string heading_text(const Judged& judged, const TimeDerivation& time, const TextStyle& style) {
  const double devices = static_cast<double>(judged.derivation.devices);
  std::string text = inked(style, Ink::bold, "One step of " + judged.job->model.name) + "\n";
  text += "  " + judged.job->placement_text + " on " + judged.job->cluster->name + ", " +
          judged.job->engine_text + "\n";
  text +=
      fmt::format("  {} per step, {:.0f} tokens/s, {:.0f} per device\n", human_seconds(time.step),
                  rate(time.tokens, time.step), rate(time.tokens, time.step) / devices);
  text += fmt::format("  {:.1f} model TFLOP/s per device, MFU {:.1f} %\n",
                      rate(time.model_flops, time.step) / devices / 1e12, utilisation(time) * 100);
  return text + "  bound by " + binding_text(*judged.job, time) + "\n";
}

std::string terms_text(const Job& job, const TimeDerivation& time, const TextStyle& style) {
  std::vector<TimeTerm> terms = time.terms;
  std::stable_sort(terms.begin(), terms.end(),
                   [](const TimeTerm& a, const TimeTerm& b) { return a.time > b.time; });
  std::vector<std::vector<std::string>> rows;
  for (const TimeTerm& term : terms) {
    const double part = share(term.time, time.step);
    rows.push_back({std::string(name_of(term.kind)), name_of_term(job, term),
                    human_seconds(term.time), fmt::format("{:.1f} %", part * 100),
                    bar(style, Ink::activations, part, kBarColumns)});
  }
  return "\n" + table(style,
                      {{.title = "spent on"},
                       {.title = "what", .may_shrink = true},
                       {.title = "time", .right = true},
                       {.title = "of step", .right = true},
                       {.title = ""}},
                      rows, 0);
}

std::string stages_text(const TimeDerivation& time, const TextStyle& style) {
  if (time.stages.size() < 2) return {};
  std::vector<std::vector<std::string>> rows;
  for (const StageTime& stage : time.stages) {
    Seconds forward;
    Seconds backward;
    for (const ChunkTime& chunk : stage.chunks) {
      forward += chunk.forward;
      backward += chunk.backward;
    }
    rows.push_back({std::to_string(stage.stage), human_seconds(forward), human_seconds(backward),
                    human_seconds(stage.busy),
                    bar(style, Ink::parameters, share(stage.busy, time.step), kBarColumns)});
  }
  return "\n" + table(style,
                      {{.title = "stage", .right = true},
                       {.title = "forward", .right = true},
                       {.title = "backward", .right = true},
                       {.title = "busy", .right = true},
                       {.title = ""}},
                      rows, 0);
}

Json stages_json(const TimeDerivation& time) {
  Json json = Json::array();
  for (const StageTime& stage : time.stages) {
    Json chunks = Json::array();
    for (const ChunkTime& chunk : stage.chunks) {
      chunks.push_back({{"forward_seconds", in_seconds(chunk.forward)},
                        {"backward_seconds", in_seconds(chunk.backward)}});
    }
    json.push_back({{"stage", stage.stage},
                    {"busy_seconds", in_seconds(stage.busy)},
                    {"reduce_seconds", in_seconds(stage.reduce)},
                    {"update_seconds", in_seconds(stage.update)},
                    {"finished_seconds", in_seconds(stage.finished)},
                    {"chunks", chunks}});
  }
  return json;
}

Json links_json(const Judged& judged) {
  std::map<std::string, std::int64_t> sent;
  for (const CommunicationTerm& term : busiest(judged.derivation).terms) {
    sent[link_of_term(*judged.job, term)] += in_bytes(term.sent);
  }
  Json json = Json::array();
  for (const auto& [link, amount] : sent) {
    json.push_back({{"link", link}, {"sent_bytes", amount}});
  }
  return json;
}

Json breakdown_json(const Job& job, const TimeDerivation& time) {
  Json exposed = Json::object();
  for (const auto& [axes, seconds] : exposed_by_axes(job, time)) {
    exposed[axes] = in_seconds(seconds);
  }
  return {{"compute", in_seconds(total_of(time, TimeKind::compute))},
          {"exposed_communication", exposed},
          {"bubble", in_seconds(total_of(time, TimeKind::bubble))},
          {"launch", in_seconds(total_of(time, TimeKind::launch))},
          {"host", in_seconds(total_of(time, TimeKind::host))},
          {"update", in_seconds(total_of(time, TimeKind::update))}};
}

Json terms_json(const Job& job, const TimeDerivation& time) {
  Json json = Json::array();
  for (const TimeTerm& term : time.terms) {
    json.push_back({{"kind", name_of(term.kind)},
                    {"what", term.what},
                    {"unit", term.unit},
                    {"phase", term.phase},
                    {"axes", axis_names(job, term.axes)},
                    {"seconds", in_seconds(term.time)}});
  }
  return json;
}

}  // namespace

std::string human_seconds(Seconds time) {
  const double s = in_seconds(time);
  if (s >= 1) return fmt::format("{:.3g} s", s);
  if (s >= 1e-3) return fmt::format("{:.3g} ms", s * 1e3);
  return fmt::format("{:.3g} us", s * 1e6);
}

std::string binding_text(const Job& job, const TimeDerivation& time) {
  std::vector<std::pair<Seconds, std::string>> parts = {
      {compute_of(time, "products") + compute_of(time, "attention"), "arithmetic"},
      {compute_of(time, "streams"), "memory bandwidth"},
      {total_of(time, TimeKind::bubble), "waiting for other stages"},
      {total_of(time, TimeKind::launch) + total_of(time, TimeKind::host), "the host"},
      {total_of(time, TimeKind::update), "the update"}};
  for (const auto& [axes, seconds] : exposed_by_axes(job, time)) {
    parts.emplace_back(seconds, "communication over " + axes);
  }
  const auto most = std::max_element(
      parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return most->second;
}

std::string timeline_text(const Judged& judged, const TimeDerivation& time,
                          const TextStyle& style) {
  return heading_text(judged, time, style) + terms_text(*judged.job, time, style) +
         stages_text(time, style) + "\n" + verdict_of(judged.derivation) + "\n";
}

std::string timeline_json(const Judged& judged, const TimeDerivation& time) {
  const double devices = static_cast<double>(judged.derivation.devices);
  const double tokens = rate(time.tokens, time.step);
  const double possible = in_flops_per_second(time.peak) * in_seconds(time.step);
  const Json json = {
      {"schema", "placet.timeline/1"},
      {"model", {{"name", judged.job->model.name}}},
      {"devices", judged.derivation.devices},
      {"placement", judged.job->placement_text},
      {"engine", judged.job->engine_text},
      {"fits", judged.derivation.fits},
      {"capacity_bytes", in_bytes(judged.derivation.capacity)},
      {"peak_bytes", in_bytes(judged.derivation.peak)},
      {"step_seconds", in_seconds(time.step)},
      {"tokens_per_second", tokens},
      {"tokens_per_second_per_device", tokens / devices},
      {"model_flops_per_device_per_second", rate(time.model_flops, time.step) / devices},
      {"mfu", utilisation(time)},
      {"hfu", possible > 0 ? time.hardware_flops / possible : 0},
      {"mfu_convention",
       "6 per active non-embedding parameter and token plus 12 L d s of attention, over the dense "
       "bf16 peak"},
      {"breakdown", breakdown_json(*judged.job, time)},
      {"terms", terms_json(*judged.job, time)},
      {"critical_stage", time.critical},
      {"stages", stages_json(time)},
      {"links", links_json(judged)},
      {"binds", binding_text(*judged.job, time)}};
  return print_json(json);
}

}  // namespace placet
