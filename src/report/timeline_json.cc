#include <map>

#include "report/json_parts.h"
#include "report/timeline.h"

namespace placet {
namespace {

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
  const CommunicationClass& most = busiest(judged.derivation);
  for (const CommunicationTerm& term : most.terms) {
    sent[link_of_term(*judged.job, term, most.stage)] += in_bytes(term.sent);
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

Json spent_json(const SimulatedStage& stage) {
  Json json = Json::object();
  for (int i = 0; i < kDoingCount; ++i) {
    const auto doing = static_cast<Doing>(i);
    if (stage.of(doing) > Seconds())
      json[std::string(name_of(doing))] = in_seconds(stage.of(doing));
  }
  return json;
}

/// What the events give: everything else is of the estimate.
Json simulated_json(const Timeline& timeline) {
  const Simulation& simulated = timeline.simulated;
  Json stages = Json::array();
  for (std::size_t s = 0; s < simulated.stages.size(); ++s) {
    const SimulatedStage& stage = simulated.stages[s];
    stages.push_back({{"stage", s},
                      {"finished_seconds", in_seconds(stage.finished)},
                      {"idle_seconds", in_seconds(stage.idle)},
                      {"spent_seconds", spent_json(stage)}});
  }
  Json links = Json::array();
  const std::vector<Seconds> busy = busy_links(timeline.parts, simulated);
  for (std::size_t l = 0; l < busy.size(); ++l) {
    if (busy[l] == Seconds()) continue;
    links.push_back({{"link", timeline.parts.links[l].name},
                     {"busy_seconds", in_seconds(busy[l])},
                     {"busy", busy[l] / simulated.step}});
  }
  const Pace pace = pace_of(simulated);
  Json stragglers = Json::array();
  for (const Straggler& straggler : timeline.stragglers) {
    stragglers.push_back({{"stage", straggler.stage}, {"factor", straggler.factor}});
  }
  return {{"step_seconds", in_seconds(simulated.step)},
          {"undisturbed_seconds", in_seconds(timeline.undisturbed)},
          {"pipeline_seconds", in_seconds(simulated.pipeline)},
          {"pace_stage", pace.stage},
          {"imbalance", pace.above_mean},
          {"stragglers", stragglers},
          {"stages", stages},
          {"links", links}};
}

}  // namespace

std::string timeline_json(const Timeline& timeline) {
  const Judged& judged = timeline.judged;
  const TimeDerivation& time = timeline.time;
  const double devices = static_cast<double>(judged.derivation.devices);
  const double tokens = rate_of(time.tokens, time.step);
  Json json = {
      {"schema", "placet.timeline/1"},
      {"model", {{"name", judged.job->model.name}}},
      {"devices", judged.derivation.devices},
      {"placement", judged.job->placement_text},
      {"engine", judged.job->engine_text},
      {"fits", runs(judged.derivation)},
      {"fit", name_of(judged.derivation.fit)},
      {"capacity_bytes", in_bytes(judged.derivation.capacity)},
      {"reserved_bytes", in_bytes(fullest(judged.derivation).reserved)},
      {"outside_bytes", in_bytes(fullest(judged.derivation).outside)},
      {"peak_bytes", in_bytes(judged.derivation.peak)},
      {"step_seconds", in_seconds(time.step)},
      {"tokens_per_second", tokens},
      {"tokens_per_second_per_device", tokens / devices},
      {"model_flops_per_device_per_second", rate_of(time.model_flops, time.step) / devices},
      {"mfu", utilisation_json(utilisation(time))},
      {"hfu", utilisation_json(hardware_utilisation(time))},
      {"mfu_convention",
       "6 per active non-embedding parameter and token plus 12 L d s of attention, less what "
       "backward has no need of (4 per frozen parameter; below the first trained unit 2, and 4 L d "
       "s), over the dense bf16 peak"},
      {"hfu_convention",
       "what mfu counts, plus the products and the attention that backward computes again, counted "
       "the same way; equal to mfu where nothing is recomputed"},
      {"breakdown", breakdown_json(*judged.job, time)},
      {"terms", terms_json(*judged.job, time)},
      {"critical_stage", time.critical},
      {"stages", stages_json(time)},
      {"links", links_json(judged)},
      {"binds", binding_text(*judged.job, time)},
      {"simulated", simulated_json(timeline)},
      {"findings", findings_json(timeline.findings)}};
  if (timeline.similar) {
    const ErrorBand& band = *timeline.similar;
    json["similar_runs"] = {{"engine", band.engine},
                            {"device", band.device},
                            {"experts", band.has_experts.value_or(false)},
                            {"rows", band.rows},
                            {"mean_abs_error", band.mean_abs},
                            {"bias", band.bias}};
  }
  return print_json(json);
}

std::string timeline_json(const Judged& judged) {
  const Json json = {{"schema", "placet.timeline/1"},
                     {"model", {{"name", judged.job->model.name}}},
                     {"devices", judged.derivation.devices},
                     {"placement", judged.job->placement_text},
                     {"engine", judged.job->engine_text},
                     {"fits", false},
                     {"fit", name_of(judged.derivation.fit)},
                     {"findings", findings_json(judged.derivation.findings)}};
  return print_json(json);
}

}  // namespace placet
