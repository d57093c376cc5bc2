#include <nlohmann/json.hpp>

#include "report/json_parts.h"
#include "report/plans.h"

namespace placet {
namespace {

Json figures_json(const PlanSheet& sheet, const PlanFigures& figures) {
  const auto devices = static_cast<double>(devices_of(*sheet.base->cluster));
  return {{"step_seconds", in_seconds(figures.step)},
          {"tokens_per_second_per_device", figures.tokens / in_seconds(figures.step) / devices},
          {"mfu", utilisation_json(figures.utilisation)},
          {"peak_bytes", in_bytes(figures.peak)},
          {"needed_bytes", in_bytes(figures.needed)},
          {"fit", name_of(figures.fit)},
          {"sent_bytes", in_bytes(figures.sent)}};
}

Json neighbours_json(const PlanSheet& sheet, const PlanLine& plan) {
  Json json = Json::array();
  for (const NeighbourLine& line : plan.neighbours) {
    Json one = {{"changed", line.axis}, {"to", line.choice}};
    if (line.figures) {
      one.update(figures_json(sheet, *line.figures));
    } else {
      one["against"] = line.against;
    }
    json.push_back(std::move(one));
  }
  return json;
}

std::string_view name_of(PlanProof::Kind kind) {
  return kind == PlanProof::Kind::unproven ? "not proven" : proof_word(kind);
}

/// What training on all tokens takes; null if that was not asked for.
Json training_json(const PlanSheet& sheet, const PlanLine& plan, std::int64_t devices) {
  if (sheet.train_tokens == 0) return nullptr;
  const TrainingRun run = training_run(sheet, plan, devices);
  return {{"tokens", sheet.train_tokens},
          {"steps", run.steps},
          {"days", run.days},
          {"device_hours", run.device_hours},
          {"cost", run.cost ? Json(*run.cost) : Json(nullptr)}};
}

/// The plan's job, as a job file says it.
Json job_json(const PlanSheet& sheet, const PlanLine& plan) {
  const Job& base = *sheet.base;
  Json job = {{"model", base.model.name},          {"cluster", base.cluster->name},
              {"placement", plan.placement},       {"seq", base.batch.sequence},
              {"global-batch", base.batch.global}, {"micro-batch", plan.found.plan.micro_batch},
              {"recompute", plan.recompute},       {"optimizer", base.optimizer.name},
              {"engine", base.engine_text}};
  const SaidWords& said = sheet.said;
  const auto add = [&](const char* key, const auto& word) {
    if (word) job[key] = *word;
  };
  add("precision", said.precision);
  add("lora", said.lora);
  add("loss", said.loss);
  add("routing", said.routing);
  add("balance-loss", said.balance_loss);
  add("clip", said.clip);
  if (!said.freeze.empty()) job["freeze"] = said.freeze;
  if (!said.ignore_keys.empty()) job["ignore_keys"] = said.ignore_keys;
  return job;
}

Json plan_json(const PlanSheet& sheet, const PlanLine& plan) {
  Json json = {{"placement", plan.placement},
               {"micro_batch", plan.found.plan.micro_batch},
               {"recompute", plan.recompute},
               {"job", job_json(sheet, plan)}};
  json.update(figures_json(sheet, plan.found.figures));
  json["cost"] = plan.cost ? Json(*plan.cost) : Json(nullptr);
  json["binds"] = plan.binds;
  json["pareto"] = plan.pareto;
  json["proof"] = name_of(plan.proof.kind);
  json["proof_reason"] = plan.proof.reason;
  json["neighbours"] = neighbours_json(sheet, plan);
  return json;
}

/// A plan that is not among those asked for first.
Json short_json(const PlanSheet& sheet, const PlanLine& plan, std::int64_t devices) {
  const PlanFigures& figures = plan.found.figures;
  return {{"placement", plan.placement},
          {"micro_batch", plan.found.plan.micro_batch},
          {"recompute", plan.recompute},
          {"step_seconds", in_seconds(figures.step)},
          {"peak_bytes", in_bytes(figures.peak)},
          {"needed_bytes", in_bytes(figures.needed)},
          {"fit", name_of(figures.fit)},
          {"sent_bytes", in_bytes(figures.sent)},
          {"cost", plan.cost ? Json(*plan.cost) : Json(nullptr)},
          {"training", training_json(sheet, plan, devices)}};
}

Json front_json(const PlanSheet& sheet) {
  Json plans = Json::array();
  for (const PlanLine& plan : sheet.front) {
    plans.push_back(short_json(sheet, plan, devices_of(*sheet.base->cluster)));
  }
  return {{"plans", std::move(plans)}, {"whole", sheet.front_whole}, {"step", sheet.front_step}};
}

Json scale_json(const PlanSheet& sheet) {
  Json json = Json::array();
  for (const ScaleLine& line : sheet.scale) {
    Json one = {{"devices", line.devices}, {"exact", line.exact}, {"plan", nullptr}};
    if (line.plan) one["plan"] = short_json(sheet, *line.plan, line.devices);
    json.push_back(std::move(one));
  }
  return json;
}

Json seconds_json(const PlanSeconds& seconds) {
  return {{"reading", seconds.reading}, {"search", seconds.search},
          {"proofs", seconds.proofs},   {"explanation", seconds.explanation},
          {"front", seconds.front},     {"scale", seconds.scale},
          {"total", seconds.total}};
}

Json margins_json(const PlanSheet& sheet) {
  Json json = Json::object();
  for (const PlanMargin& margin : sheet.margins) {
    const PlanFigures& figures = margin.plan.figures;
    json[margin.what] = {{"factor", margin.factor},
                         {"step_seconds", in_seconds(figures.step)},
                         {"tokens_per_second", figures.tokens / in_seconds(figures.step)}};
  }
  return json;
}

std::string_view lack_word(PlanShortage::Lack lack) {
  switch (lack) {
    case PlanShortage::Lack::device:
      return "device";
    case PlanShortage::Lack::part_of_device:
      return "max_memory";
    case PlanShortage::Lack::cached:
      return "cached";
    case PlanShortage::Lack::host:
      return "host";
  }
  return {};
}

/// What speaks of the plan with least memory is null where rules exclude all plans.
Json shortage_json(const PlanSheet& sheet) {
  const PlanShortage& shortage = *sheet.shortage;
  Json json = {{"lacks", "rules"},
               {"capacity_bytes", in_bytes(shortage.capacity)},
               {"devices", shortage.devices},
               {"placement", nullptr},
               {"peak_bytes", nullptr},
               {"needed_bytes", nullptr},
               {"largest", nullptr},
               {"largest_bytes", nullptr},
               {"host_bytes", nullptr},
               {"host_capacity_bytes", nullptr},
               {"nearest", nullptr},
               {"findings", findings_json(shortage.hindrance.findings)}};
  if (!shortage.least) {
    if (!sheet.shortage_placement.empty()) json["nearest"] = sheet.shortage_placement;
    return json;
  }
  json["placement"] = sheet.shortage_placement;
  json["peak_bytes"] = in_bytes(shortage.least->figures.peak);
  json["needed_bytes"] = in_bytes(shortage.needed);
  json["largest"] = shortage.largest;
  json["largest_bytes"] = in_bytes(shortage.largest_bytes);
  json["lacks"] = lack_word(shortage.lack);
  json["host_bytes"] = in_bytes(shortage.host_used);
  json["host_capacity_bytes"] = in_bytes(shortage.host_capacity);
  return json;
}

}  // namespace

std::string plans_json(const PlanSheet& sheet) {
  Json rejected = Json::object();
  for (const auto& [rule, count] : sheet.counts.rejected) rejected[rule] = count;
  Json plans = Json::array();
  for (const PlanLine& plan : sheet.plans) plans.push_back(plan_json(sheet, plan));
  Json json = {{"schema", "placet.plans/1"},
               {"model", {{"name", sheet.base->model.name}}},
               {"devices", devices_of(*sheet.base->cluster)},
               {"goal", sheet.goal},
               {"choices", sheet.choices == nullptr ? Json(nullptr) : Json(sheet.choices->name)},
               {"seconds", seconds_json(sheet.seconds)},
               {"space", sheet.counts.space},
               {"visited", sheet.counts.visited},
               {"bounded", sheet.counts.bounded},
               {"exact", sheet.counts.exact},
               {"rejected", rejected},
               {"constraints", sheet.constraints},
               {"notes", sheet.base->model.notes},
               {"plans", plans},
               {"marginal", margins_json(sheet)}};
  if (sheet.train_tokens > 0 && !sheet.plans.empty()) {
    json["training"] = training_json(sheet, sheet.plans.front(), devices_of(*sheet.base->cluster));
  }
  if (!sheet.front.empty()) json["front"] = front_json(sheet);
  if (!sheet.scale.empty()) json["scale"] = scale_json(sheet);
  if (sheet.similar) {
    json["similar_runs"] = {{"rows", sheet.similar->rows},
                            {"mean_abs_error", sheet.similar->mean_abs},
                            {"bias", sheet.similar->bias}};
  }
  if (!sheet.prices.empty()) json["prices"] = sheet.prices;
  if (!sheet.stands.empty()) json["stands"] = sheet.stands;
  for (const KindAlone& kind : sheet.alone) {
    json["alone"].push_back(
        {{"device", kind.device},
         {"devices", kind.devices},
         {"step_seconds",
          kind.plan ? Json(in_seconds(kind.plan->found.figures.step)) : Json(nullptr)}});
  }
  if (sheet.shortage) json["shortage"] = shortage_json(sheet);
  return print_json(json);
}

}  // namespace placet
