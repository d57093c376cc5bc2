#include "catalog/validation_catalog.h"

#include <algorithm>
#include <array>

#include "catalog/reader.h"
#include "catalog/table.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

constexpr std::array<std::string_view, 20> kAddedColumns = {"catalogue_model",
                                                            "stage_blocks",
                                                            "sharding_term",
                                                            "dropout_percent",
                                                            "host_runs_ahead",
                                                            "host_us_per_block",
                                                            "utilisation_percent",
                                                            "cluster",
                                                            "network",
                                                            "network_gb_s",
                                                            "network_latency_us",
                                                            "host_latency_us",
                                                            "intra_gb_s",
                                                            "shard_group",
                                                            "recompute",
                                                            "micro_batch_of_rank",
                                                            "slice_devices",
                                                            "host_latency_inside_us",
                                                            "host_pace",
                                                            "network_of_all_gb_s"};
constexpr std::array<std::string_view, 5> kRunAxes = {"pp", "dp", "cp", "ep", "tp"};

std::vector<std::string> run_columns() {
  std::vector<std::string> names;
  for (const TableColumn& column : columns_of(TableKind::runs)) names.emplace_back(column.name);
  for (const std::string_view name : kAddedColumns) names.emplace_back(name);
  return names;
}

// Conditions may look at a table's own columns too, whose names nobody can check here.
CellPattern read_cell_pattern(const std::string& column, const Reader& reader) {
  CellPattern pattern{.column = column};
  if (reader.is_list()) {
    for (const Reader& item : reader.items())
      pattern.any_of.push_back(item.json().get<std::string>());
    if (pattern.any_of.empty()) reader.fail("is an empty list", "at least one text");
    return pattern;
  }
  if (!reader.is_text()) reader.fail("is not a text", "a text or a list of texts");
  pattern.any_of.push_back(reader.json().get<std::string>());
  return pattern;
}

RowPattern read_pattern(const Reader& rule) {
  RowPattern pattern;
  const auto when = rule.find("when");
  if (!when) return pattern;
  if (!when->is_object()) when->fail("is not an object", "columns with what they hold");
  for (const auto& [column, value] : when->members()) {
    pattern.push_back(read_cell_pattern(column, value));
  }
  return pattern;
}

Evidence read_evidence(const Reader& rule) {
  return {.source = rule.at("source").text(), .date = rule.at("date").text()};
}

Filling read_filling(const Reader& rule) {
  rule.allow({"when", "set", "instead", "from_table", "source", "date"});
  Filling filling{.when = read_pattern(rule), .evidence = read_evidence(rule)};
  if (const auto instead = rule.find("instead")) filling.instead = instead->flag();
  if (const auto from_table = rule.find("from_table")) filling.from_table = from_table->flag();
  static const std::vector<std::string> kColumns = run_columns();
  const Reader set = rule.at("set");
  if (!set.is_object()) set.fail("is not an object", "columns with their values");
  for (const auto& [column, value] : set.members()) {
    if (std::find(kColumns.begin(), kColumns.end(), column) == kColumns.end()) {
      throw InputError({.where = value.where(),
                        .value = column,
                        .problem = "is not a column of runs",
                        .allowed = "a column of SCHEMA.md",
                        .nearest = nearest(column, kColumns)});
    }
    filling.cells.emplace_back(column, value.text());
  }
  return filling;
}

Exclusion read_exclusion(const Reader& rule) {
  rule.allow({"when", "reason", "source", "date"});
  return {.when = read_pattern(rule),
          .reason = rule.at("reason").text(),
          .evidence = read_evidence(rule)};
}

Document open_checked(const std::filesystem::path& path, const std::string& schema) {
  Document document = open_document(path);
  const Reader reader(document);
  if (const Reader named = reader.at("schema"); named.text() != schema) {
    named.fail("is another schema", schema);
  }
  return document;
}

SourceReading read_source(const std::filesystem::path& path) {
  const Document document = open_checked(path, "placet.assumptions/1");
  const Reader reader(document);
  reader.allow(
      {"schema", "source_id", "also", "title", "notes", "assume", "exclude", "exclude_time"});
  if (const Reader id = reader.at("source_id"); id.text() != path.stem().string()) {
    id.fail("is not the name of the file", path.stem().string());
  }
  SourceReading source;
  if (const auto also = reader.find("also")) {
    for (const Reader& pattern : also->items()) source.also.push_back(pattern.text());
  }
  if (const auto rules = reader.find("assume")) {
    for (const Reader& rule : rules->items()) source.fillings.push_back(read_filling(rule));
  }
  if (const auto rules = reader.find("exclude")) {
    for (const Reader& rule : rules->items()) source.exclusions.push_back(read_exclusion(rule));
  }
  if (const auto rules = reader.find("exclude_time")) {
    for (const Reader& rule : rules->items()) {
      source.time_exclusions.push_back(read_exclusion(rule));
    }
  }
  return source;
}

RunLayout read_layout(const Reader& reader) {
  reader.allow({"order", "sharding", "context", "source", "date"});
  RunLayout layout;
  const std::vector<std::string> axes(kRunAxes.begin(), kRunAxes.end());
  for (const Reader& item : reader.at("order").items()) {
    layout.order.push_back(axes[item.one_of(axes)]);
  }
  if (layout.order.size() != axes.size()) {
    reader.at("order").fail("does not name every axis once", list_words(axes));
  }
  for (const Reader& item : reader.at("sharding").items()) {
    layout.sharding_terms.push_back(item.text());
  }
  if (layout.sharding_terms.size() != 4) {
    reader.at("sharding").fail("is not a list of four", "placement terms of the stages 0 to 3");
  }
  layout.context_term = reader.at("context").text();
  read_evidence(reader);
  return layout;
}

EngineRule read_engine(const Reader& rule, const std::map<std::string, RunLayout>& layouts) {
  rule.allow({"when", "profile", "reason", "layout", "guess", "source", "date"});
  EngineRule engine{.when = read_pattern(rule), .evidence = read_evidence(rule)};
  if (const auto guess = rule.find("guess")) engine.is_guess = guess->flag();
  if (const auto reason = rule.find("reason")) {
    engine.reason = reason->text();
    return engine;
  }
  engine.profile = rule.at("profile").text();
  std::vector<std::string> names;
  names.reserve(layouts.size());
  for (const auto& [name, layout] : layouts) names.push_back(name);
  engine.layout = layouts.at(names[rule.at("layout").one_of(names)]);
  return engine;
}

std::vector<EngineRule> read_engines(const std::filesystem::path& path) {
  const Document document = open_checked(path, "placet.validation-engines/1");
  const Reader reader(document);
  reader.allow({"schema", "notes", "layouts", "engines"});
  std::map<std::string, RunLayout> layouts;
  for (const auto& [name, value] : reader.at("layouts").members()) {
    layouts.emplace(name, read_layout(value));
  }
  std::vector<EngineRule> engines;
  for (const Reader& rule : reader.at("engines").items()) {
    engines.push_back(read_engine(rule, layouts));
  }
  return engines;
}

MemoryMeasure read_measure(const Reader& rule) {
  rule.allow({"name", "when", "column", "unit", "quantity", "of", "decides", "source", "date"});
  const std::vector<std::string> quantities = {"reserved", "alive", "alive after backward",
                                               "reserved after backward", "device"};
  const std::vector<std::string> devices = {"rank 0", "fullest device"};
  MemoryMeasure measure{.name = rule.at("name").text(),
                        .when = read_pattern(rule),
                        .column = rule.at("column").text(),
                        .evidence = read_evidence(rule)};
  if (const auto unit = rule.find("unit")) {
    const std::vector<std::string> units = {"GiB", "GB"};
    measure.unit = units[unit->one_of(units)];
  }
  measure.quantity = static_cast<MemoryMeasure::Quantity>(rule.at("quantity").one_of(quantities));
  measure.first_device = rule.at("of").one_of(devices) == 0;
  if (const auto decides = rule.find("decides")) measure.decides = decides->flag();
  return measure;
}

std::vector<MemoryMeasure> read_measures(const std::filesystem::path& path) {
  const Document document = open_checked(path, "placet.validation-measures/1");
  const Reader reader(document);
  reader.allow({"schema", "notes", "measures"});
  std::vector<MemoryMeasure> measures;
  for (const Reader& rule : reader.at("measures").items()) {
    measures.push_back(read_measure(rule));
  }
  return measures;
}

WordTable read_words(const std::filesystem::path& path) {
  const Document document = open_checked(path, "placet.validation-words/1");
  const Reader reader(document);
  reader.allow({"schema", "notes", "words"});
  WordTable words;
  for (const auto& [column, list] : reader.at("words").members()) {
    for (const auto& [theirs, entry] : list.members()) {
      entry.allow({"is", "source", "date"});
      read_evidence(entry);
      words[column][theirs] = entry.at("is").text();
    }
  }
  return words;
}

}  // namespace

ValidationCatalog load_validation(const Catalog& catalog) {
  const std::filesystem::path folder = catalog.root / "validation";
  ValidationCatalog validation{.engines = read_engines(folder / "engines.json"),
                               .measures = read_measures(folder / "measures.json"),
                               .words = read_words(folder / "words.json"),
                               .customs = read_source(folder / "customs.json")};
  for (Filling& filling : validation.customs.fillings) filling.is_custom = true;
  for (const std::string& name : names_in(catalog, "validation/assumptions")) {
    validation.sources.emplace(name, read_source(folder / "assumptions" / (name + ".json")));
  }
  return validation;
}

const SourceReading& reading_of(const ValidationCatalog& catalog, std::string_view source_id) {
  if (const auto own = catalog.sources.find(source_id); own != catalog.sources.end()) {
    return own->second;
  }
  for (const auto& [name, source] : catalog.sources) {
    const bool speaks = std::ranges::any_of(
        source.also, [&](const std::string& pattern) { return matches_text(pattern, source_id); });
    if (speaks) return source;
  }
  return catalog.customs;
}

bool is_added_column(std::string_view column) {
  return std::find(kAddedColumns.begin(), kAddedColumns.end(), column) != kAddedColumns.end();
}

bool matches_text(std::string_view pattern, std::string_view text) {
  // The usual walk with one point of return: the last * and where in the text it began.
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace placet
