#include "validate/error_band.h"

#include <algorithm>
#include <array>

#include "catalog/reader.h"
#include "model/listing.h"

namespace placet {
namespace {

constexpr std::int64_t kMostScored = 1'000'000;
constexpr Range kErrors{.least = -1, .greatest = 100};

ErrorBand read_band(const Reader& reader) {
  reader.allow({"engine", "device", "experts", "rows", "mean_abs_error", "bias", "tables"});
  ErrorBand band;
  if (const auto engine = reader.find("engine")) band.engine = engine->text();
  if (const auto device = reader.find("device")) band.device = device->text();
  if (const auto experts = reader.find("experts")) band.has_experts = experts->flag();
  band.rows = reader.at("rows").whole({1, kMostScored});
  band.mean_abs = reader.at("mean_abs_error").number(kErrors);
  band.bias = reader.at("bias").number(kErrors);
  for (const Reader& table : reader.at("tables").items()) band.tables.push_back(table.text());
  return band;
}

bool has_experts(const Model& model) { return model.figures.experts > 0; }

}  // namespace

ErrorBands load_error_bands(const Catalog& catalog) {
  const Document document = open_document(catalog.root / "validation" / "errors.json");
  const Reader reader(document);
  reader.allow({"schema", "source", "date", "bands"});
  if (const Reader schema = reader.at("schema"); schema.text() != "placet.validation-errors/1") {
    schema.fail("is another schema", "\"placet.validation-errors/1\"");
  }
  ErrorBands bands{.source = reader.at("source").text(), .date = reader.at("date").text()};
  for (const Reader& band : reader.at("bands").items()) bands.bands.push_back(read_band(band));
  return bands;
}

std::optional<ErrorBand> nearest_band(const ErrorBands& bands, const Job& job) {
  if (!job.cluster) return std::nullopt;
  const std::string& engine = job.profile.name;
  const std::string& device = job.cluster->groups.front().device.name;
  const std::array<ErrorBand, 4> wanted = {ErrorBand{.engine = engine, .device = device},
                                           ErrorBand{.engine = engine}, ErrorBand{.device = device},
                                           ErrorBand{}};
  for (const ErrorBand& kind : wanted) {
    const auto found = std::ranges::find_if(bands.bands, [&](const ErrorBand& band) {
      return band.engine == kind.engine && band.device == kind.device &&
             band.has_experts == has_experts(job.model);
    });
    if (found != bands.bands.end()) return *found;
  }
  return std::nullopt;
}

std::optional<ErrorBand> similar_runs(const Catalog& catalog, const Job& job) {
  if (!has_file(catalog, "validation", "errors")) return std::nullopt;
  return nearest_band(load_error_bands(catalog), job);
}

}  // namespace placet
