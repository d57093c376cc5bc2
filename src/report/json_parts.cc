#include "report/json_parts.h"

#include <array>
#include <initializer_list>
#include <string>
#include <utility>

#include "model/dtype.h"
#include "placement/strategy.h"
#include "report/trained.h"

namespace placet {
namespace {

struct Field {
  const char* key;
  mutable Json value;  // moved out of the list that it is named in
};

/// An object of different keys. The library's own initializer lists first make an array of every
/// pair: three times as slow, and a report has thousands of terms.
Json object_of(std::initializer_list<Field> fields) {
  constexpr std::size_t more = 2;  // fields that some terms have besides
  Json json = Json::object();
  auto& object = json.get_ref<Json::object_t&>();
  object.reserve(fields.size() + more);
  for (const Field& field : fields) object.emplace_back(field.key, std::move(field.value));
  return json;
}

Json modes_json(const Modes& modes) {
  Json json;
  for (const State state : kStates) json[std::string(name_of(state))] = symbol_of(modes[state]);
  return json;
}

Json by_state(const std::array<Bytes, 4>& amounts) {
  Json json;
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    json[std::string(name_of(kStates[i]))] = in_bytes(amounts[i]);
  }
  return json;
}

Json factors_json(const Job& job, const std::vector<AxisFactor>& factors) {
  Json json = Json::array();
  for (const AxisFactor& factor : factors) {
    const auto axis = static_cast<std::size_t>(factor.axis);
    json.push_back(object_of(
        {{"axis", job.placement.axes[axis].axis.text()}, {"factor", to_string(factor.factor)}}));
  }
  return json;
}

Json json_of(const Job& job, const MemoryClass& memory, const MemoryTerm& term) {
  Json json =
      object_of({{"state", name_of(term.category)},
                 {"what", term.what},
                 {"axis_factors", factors_json(job, factors_of(job.placement, memory, term))},
                 {"bytes", in_bytes(term.bytes)},
                 {"rest_bytes", in_bytes(term.rest)},
                 {"host_bytes", in_bytes(term.host)},
                 {"nvme_bytes", in_bytes(term.nvme)}});
  if (!term.unit.empty()) json["unit"] = term.unit;
  if (!term.source.empty()) json["source"] = term.source;
  return json;
}

Json json_of(const Job& job, const CommunicationTerm& term, int stage) {
  const std::string link = link_of_term(job, term, stage);
  Json json = object_of({{"axes", axis_names(job, term.axes)},
                         {"collective", name_of(term.collective)},
                         {"op", name_of(term.op)},
                         {"state", name_of(term.state)},
                         {"what", term.what},
                         {"dtype", name_of(term.dtype)},
                         {"phase", name_of(term.phase)},
                         {"payload_bytes", in_bytes(term.payload)},
                         {"count", term.count},
                         {"group", term.group},
                         {"sent_bytes", in_bytes(term.sent)},
                         {"sent_exact", exact_sent_text(term)},
                         {"levels", Json::array()}});
  if (!link.empty())
    json["levels"].push_back(object_of({{"link", link}, {"bytes", in_bytes(term.sent)}}));
  if (!term.unit.empty()) json["unit"] = term.unit;
  if (!term.source.empty()) json["source"] = term.source;
  return json;
}

// Null where nothing could be derived.
Json derived(const Judged& judged, Bytes figure) {
  return judged.derivation.meaningful ? Json(in_bytes(figure)) : Json(nullptr);
}

Json memory_json(const Judged& judged) {
  const Derivation& derivation = judged.derivation;
  Json json = {{"fits", runs(derivation)},
               {"fit", name_of(derivation.fit)},
               {"capacity_bytes", in_bytes(derivation.capacity)},
               {"host_capacity_bytes", in_bytes(derivation.host_capacity)},
               {"host_used_bytes", in_bytes(derivation.host_used)},
               {"nvme_used_bytes", in_bytes(derivation.nvme_used)},
               {"peak_bytes", derived(judged, derivation.peak)},
               {"reserved_bytes", nullptr},
               {"outside_bytes", nullptr},
               {"classes", Json::array()}};
  if (!derivation.memory.empty()) {
    const MemoryClass& most = fullest(derivation);
    json["reserved_bytes"] = in_bytes(most.reserved);
    json["outside_bytes"] = in_bytes(most.outside);
  }
  for (const MemoryClass& memory : derivation.memory) {
    json["classes"].push_back(json_of(*judged.job, memory));
  }
  return json;
}

Json communication_json(const Judged& judged) {
  Json json = {{"sent_bytes", derived(judged, judged.derivation.sent)}, {"classes", Json::array()}};
  for (const CommunicationClass& communication : judged.derivation.communication) {
    json["classes"].push_back(json_of(*judged.job, communication));
  }
  return json;
}

Json training_json(const Job& job) {
  Json json = {{"sequence", job.batch.sequence},
               {"micro_batch", job.batch.micro},
               {"micro_batches", micro_batches_of(job)},
               {"global_batch", job.batch.global},
               {"precision", job.precision.name},
               {"optimizer", job.optimizer.name},
               {"cluster", job.cluster ? Json(job.cluster->name) : Json(nullptr)},
               {"notes", job.model.notes}};
  const TrainedPart part = trained_part(job.model);
  if (part.trained == part.total) return json;
  json["trained"] = trained_json(part);
  Json formats = Json::object();
  for (const auto& [dtype, count] : frozen_formats(job))
    formats[std::string(name_of(dtype))] = count;
  json["trained"]["frozen_formats"] = std::move(formats);
  return json;
}

}  // namespace

Json json_of(const Job& job, const MemoryClass& memory) {
  Json bytes;
  for (int i = 0; i < kMemoryCategoryCount; ++i) {
    bytes[std::string(name_of(static_cast<MemoryCategory>(i)))] =
        in_bytes(memory.at_peak[static_cast<std::size_t>(i)]);
  }
  bytes["total"] = in_bytes(memory.peak);
  Json json = {{"class", class_name(job, memory)},
               {"devices", memory.devices},
               {"capacity_bytes", in_bytes(memory.capacity)},
               {"fit", name_of(memory.fit)},
               {"reserved_bytes", in_bytes(memory.reserved)},
               {"outside_bytes", in_bytes(memory.outside)},
               {"at", peak_text(job, memory)},
               {"bytes", bytes},
               {"rest_bytes", by_state(memory.at_rest)},
               {"host_bytes", by_state(memory.on_host)},
               {"nvme_bytes", by_state(memory.on_nvme)},
               {"instants", Json::array()},
               {"terms", Json::array()}};
  for (const InstantBytes& instant : memory.instants) {
    json["instants"].push_back(
        object_of({{"at", name_of(instant.instant)}, {"bytes", in_bytes(instant.bytes)}}));
  }
  for (const MemoryTerm& term : memory.terms) json["terms"].push_back(json_of(job, memory, term));
  return json;
}

Json json_of(const Job& job, const CommunicationClass& communication) {
  Json json = {{"class", class_name(job, communication.stage)},
               {"sent_bytes", in_bytes(communication.sent)},
               {"terms", Json::array()}};
  for (const CommunicationTerm& term : communication.terms) {
    json["terms"].push_back(json_of(job, term, communication.stage));
  }
  return json;
}

Json mesh_json(const Job& job) {
  Json mesh = Json::array();
  for (std::size_t i = 0; i < job.placement.axes.size(); ++i) {
    const AxisPlacement& axis = job.placement.axes[i];
    const std::string link = link_of_axis(job, i);
    Json json = {{"axis", axis.axis.text()},
                 {"degree", axis.degree},
                 {"shares", axis.shares},
                 {"cut", name_of(axis.how.cut)},
                 {"modes", modes_json(axis.how.modes)},
                 {"classes", Json::object()},
                 {"link", link.empty() ? Json(nullptr) : Json(link)}};
    for (const Override& other : axis.overrides) {
      json["classes"][spell(other.selector)] = {{"cut", name_of(other.how.cut)},
                                                {"modes", modes_json(other.how.modes)}};
    }
    if (axis.schedule) json["schedule"] = axis.schedule->word;
    if (axis.attention) json["attention"] = axis.attention->word;
    mesh.push_back(std::move(json));
  }
  return mesh;
}

Json findings_json(const std::vector<Finding>& findings) {
  constexpr std::array severities = {"error", "warning", "advice"};
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"rule", finding.rule},
                    {"severity", severities[static_cast<std::size_t>(finding.severity)]},
                    {"where", finding.where},
                    {"message", finding.message},
                    {"cure", finding.cure}});
  }
  return list;
}

namespace {

Json lengths_json(const LengthSpread& spread) {
  Json json = {{"samples", spread.samples},
               {"tokens_at_once", spread.at_once},
               {"uses", Json::array()},
               {"mean_held_tokens", in_double(spread.mean_held)},
               {"held_imbalance", in_double(spread.held_imbalance)},
               {"pair_imbalance", in_double(spread.pair_imbalance)},
               {"most_exchanged_bytes", in_bytes(spread.most_exchanged)},
               {"mean_exchanged_bytes", in_bytes(spread.mean_exchanged)}};
  for (const LengthUse& use : spread.uses) {
    json["uses"].push_back({{"tokens", use.tokens},
                            {"share", to_string(use.share)},
                            {"devices", use.devices},
                            {"samples_at_once", use.samples},
                            {"rounds", to_string(use.rounds)},
                            {"held_tokens", use.held},
                            {"pairs", in_double(use.pairs)},
                            {"exchanged_bytes", in_bytes(use.exchanged)}});
  }
  return json;
}

}  // namespace

Json trained_json(const TrainedPart& part) {
  return {{"parameters", part.trained},
          {"total", part.total},
          {"share", part.share()},
          {"modules", part.modules}};
}

Json derivation_object(const Judged& judged) {
  const Job& job = *judged.job;
  Json json = {
      {"schema", "placet.derivation/1"},
      {"model", {{"name", job.model.name}, {"parameters", count_parameters(job.model).total}}},
      {"devices", judged.derivation.devices},
      {"placement", job.placement_text},
      {"engine", job.engine_text},
      {"training", training_json(job)},
      {"mesh", mesh_json(job)},
      {"memory", memory_json(judged)},
      {"communication", communication_json(judged)},
      {"findings", findings_json(judged.derivation.findings)},
      {"verdict", {{"good", is_good(judged.derivation)}, {"text", verdict_of(judged.derivation)}}}};
  if (judged.lengths) json["lengths"] = lengths_json(*judged.lengths);
  return json;
}

Json utilisation_json(double part) { return part > 0 ? Json(part) : Json(nullptr); }

std::string print_json(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace placet
