#include "report/json.h"

#include <cmath>

#include "report/compare.h"
#include "report/json_parts.h"

namespace placet {
namespace {

Json tensor_json(const TensorEntry& entry, Dtype stored) {
  Json json = {{"name", entry.name},
               {"shape", entry.shape},
               {"dtype", name_of(entry.dtype.value_or(stored))},
               {"class", entry.tensor_class},
               {"count", entry.count},
               {"trainable", entry.trainable}};
  if (entry.shared) json["shared"] = true;
  return json;
}

// FLOPs are whole numbers of operations; written as such while a double holds them exactly.
Json whole_flops(Flops amount) { return static_cast<std::int64_t>(std::llround(in_flops(amount))); }

}  // namespace

std::string derivation_json(const Judged& judged) { return print_json(derivation_object(judged)); }

std::string comparison_json(const std::vector<Judged>& all) {
  const Ranking ranking = rank(all);
  Json json = {{"schema", "placet.comparison/1"},
               {"derivations", Json::array()},
               {"ratios", Json::array()},
               {"answer", ranking.answer}};
  for (const Judged& judged : all) json["derivations"].push_back(derivation_object(judged));
  for (const Judged& judged : all) {
    const Judged& first = all.front();
    const auto ratio = [](Bytes a, Bytes b) { return b == Bytes() ? Json(nullptr) : Json(a / b); };
    json["ratios"].push_back({{"placement", judged.job->placement_text},
                              {"peak", ratio(judged.derivation.peak, first.derivation.peak)},
                              {"sent", ratio(judged.derivation.sent, first.derivation.sent)}});
    if (!judged.time) continue;
    const TimeDerivation& time = *judged.time;
    json["ratios"].back()["cluster"] = judged.job->cluster->name;
    json["ratios"].back()["step_seconds"] = in_seconds(time.step);
    json["ratios"].back()["tokens_per_second"] = time.tokens / in_seconds(time.step);
    json["ratios"].back()["mfu"] = utilisation(time);
  }
  return print_json(json);
}

std::string model_json(const Model& model, std::int64_t sequence) {
  const ParameterCounts counts = count_parameters(model);
  const FlopsPerToken flops = flops_per_token(model, sequence);
  Json json = {
      {"schema", "placet.model/1"},
      {"name", model.name},
      {"family", model.family},
      {"parameters",
       {{"total", counts.total},
        {"active", counts.active},
        {"trainable", counts.trainable},
        {"active_without_embedding", counts.active_without_embedding},
        {"prediction", counts.prediction}}},
      {"layers", model.figures.blocks},
      {"hidden", model.figures.hidden},
      {"vocabulary", model.figures.vocabulary},
      {"experts", model.figures.experts},
      {"experts_per_token", model.figures.experts_per_token},
      {"sequence", sequence},
      {"tensors", Json::array()},
      {"flops_per_token",
       {{"forward", whole_flops(flops.forward)}, {"training", whole_flops(flops.training)}}},
      {"notes", model.notes}};
  const TrainedPart part = trained_part(model);
  if (part.trained != part.total) json["trained"] = trained_json(part);
  const Dtype stored = model.stored.value_or(Precision{}.parameters);
  for (const TensorEntry& entry : list_tensors(model)) {
    json["tensors"].push_back(tensor_json(entry, stored));
  }
  return print_json(json);
}

namespace {

/// A cell of a row: its exact figure where it has one, else its text.
Json cell_json(const CatalogueRow& row, std::size_t column) {
  const bool exact = column < row.figures.size() && row.figures[column];
  return exact ? Json(*row.figures[column]) : Json(row.cells[column]);
}

}  // namespace

std::string catalogue_json(const Catalogue& catalogue) {
  Json json = {
      {"schema", "placet.catalogue/1"}, {"kind", catalogue.kind}, {"entries", Json::array()}};
  for (const CatalogueRow& row : catalogue.rows) {
    Json entry = {{"name", row.name}, {"title", row.title}};
    for (std::size_t i = 0; i < catalogue.columns.size(); ++i) {
      entry[catalogue.columns[i]] = cell_json(row, i);
    }
    entry["sources"] = row.sources;
    json["entries"].push_back(std::move(entry));
  }
  if (!catalogue.pages.empty()) json["pages"] = explanations_list(catalogue.pages);
  return print_json(json);
}

}  // namespace placet
