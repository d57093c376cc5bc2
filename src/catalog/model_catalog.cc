#include "catalog/model_catalog.h"

#include <algorithm>
#include <cctype>

#include "catalog/file_text.h"
#include "catalog/hf_config.h"
#include "catalog/memory.h"
#include "catalog/ordinary_decoder.h"
#include "catalog/reader.h"
#include "model/build.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::int64_t kMostParameters = 1'000'000'000'000'000'000;

// --- bare counts

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Digits and how many of them stand behind the point; none if other characters do.
struct Decimal {
  std::string digits;
  int behind = 0;
};

std::optional<Decimal> parse_decimal(std::string_view text) {
  const std::size_t point = text.find('.');
  Decimal decimal{.digits = std::string(text.substr(0, point))};
  if (point != std::string_view::npos) {
    decimal.digits += text.substr(point + 1);
    decimal.behind = static_cast<int>(text.size() - point - 1);
  }
  if (decimal.digits.empty() || !std::ranges::all_of(decimal.digits, is_digit)) {
    return std::nullopt;
  }
  return decimal;
}

/// The whole number that digits with a point stand for when the point is moved `exponent` places to
/// the right; none if digits are left behind it or the number is too large.
std::optional<std::int64_t> shift(std::string_view text, int exponent) {
  auto decimal = parse_decimal(text);
  if (!decimal) return std::nullopt;
  std::string& digits = decimal->digits;
  while (decimal->behind > exponent && digits.ends_with('0')) {
    digits.pop_back();
    --decimal->behind;
  }
  const int zeros = exponent - decimal->behind;
  if (digits.empty() || zeros < 0 || zeros > 18) return std::nullopt;
  digits.append(static_cast<std::size_t>(zeros), '0');
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.size() > 19) return std::nullopt;
  const std::int64_t number = digits.size() < 19 ? std::stoll("0" + digits) : kMostParameters;
  const bool fits = digits.size() < 19 || digits == std::to_string(kMostParameters);
  return fits ? std::optional(number) : std::nullopt;
}

/// "70e9", "1.5e3" or "12".
std::optional<std::int64_t> parse_number(std::string_view text) {
  const std::size_t e = text.find_first_of("eE");
  if (e == std::string_view::npos) return shift(text, 0);
  std::string_view exponent = text.substr(e + 1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  if (exponent.empty() || exponent.size() > 2 || !std::ranges::all_of(exponent, is_digit)) {
    return std::nullopt;
  }
  return shift(text.substr(0, e), std::stoi(std::string(exponent)));
}

/// `nearest`: the spelling that was meant, where one is near.
[[noreturn]] void fail_bare(std::string_view word, std::string nearest = {}) {
  throw InputError({.where = "MODEL",
                    .value = std::string(word),
                    .problem = "is not a number of parameters",
                    .allowed = "a whole number from 1 to 10^18, such as 70B or "
                               "params=70e9,units=80",
                    .nearest = std::move(nearest)});
}

/// "70B": the digits and the power of ten that they stand before; none: no such word.
struct Suffixed {
  std::string_view digits;
  int exponent = 0;
};

std::optional<Suffixed> parse_suffixed(std::string_view word) {
  if (word.size() < 2 || !is_digit(word.front())) return std::nullopt;
  constexpr std::string_view kSuffixes = "KMBT";
  const char last = static_cast<char>(std::toupper(static_cast<unsigned char>(word.back())));
  const std::size_t suffix = kSuffixes.find(last);
  if (suffix == std::string_view::npos) return std::nullopt;
  const std::string_view digits = word.substr(0, word.size() - 1);
  if (digits.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  return Suffixed{.digits = digits, .exponent = 3 * (static_cast<int>(suffix) + 1)};
}

/// What a number alone leaves open.
Model count_alone(std::int64_t parameters, std::int64_t units, std::string_view word) {
  Model model = bare_model(parameters, units);
  const std::string count(word.starts_with("params=") ? word.substr(7, word.find(',') - 7) : word);
  model.notes.push_back(std::string(word) +
                        " is a number of parameters without shapes: activations, attention, the "
                        "loss and time are left out; decoder=" +
                        count + " builds an ordinary decoder of that size");
  return model;
}

std::optional<Model> parse_with_suffix(std::string_view word) {
  const auto suffixed = parse_suffixed(word);
  if (!suffixed) return std::nullopt;
  const auto count = shift(suffixed->digits, suffixed->exponent);
  if (!count || *count < 1) fail_bare(word);
  return count_alone(*count, 1, word);
}

// --- sheets

std::string optional_text(const Reader& reader, std::string_view key) {
  const auto value = reader.find(key);
  return value ? value->text() : "";
}

std::optional<std::int64_t> optional_count(const Reader& reader, std::string_view key) {
  const auto value = reader.find(key);
  if (!value || value->json().is_null()) return std::nullopt;
  return value->whole({.least = 0, .greatest = kMostParameters});
}

ModelSheet::Published read_published(const Reader& reader) {
  reader.allow({"total", "prediction", "total_source", "published_billion", "active_billion",
                "billion_source", "remark"});
  ModelSheet::Published p{.total = optional_count(reader, "total"),
                          .prediction = optional_count(reader, "prediction"),
                          .total_source = optional_text(reader, "total_source"),
                          .total_billion = optional_text(reader, "published_billion"),
                          .active_billion = optional_text(reader, "active_billion"),
                          .billion_source = optional_text(reader, "billion_source"),
                          .remark = optional_text(reader, "remark")};
  if (p.total && p.total_source.empty()) {
    reader.fail("has a total without total_source", "where the number was read");
  }
  return p;
}

bool is_sheet(const Json& document) { return document.is_object() && document.contains("schema"); }

ModelSheet read_sheet(const Document& document, const Catalog& catalog,
                      const std::vector<std::string>& ignored) {
  const Reader reader(document);
  reader.allow({"schema", "name", "title", "source", "date", "config", "parameters"});
  const std::vector<std::string> schemas{"placet.model-file/1"};
  reader.at("schema").one_of(schemas);
  ModelSheet sheet{.name = reader.at("name").text(),
                   .title = optional_text(reader, "title"),
                   .source = reader.at("source").text(),
                   .date = reader.at("date").text()};
  sheet.architecture =
      read_hf_config(reader.at("config").json(), document.where + ": config", catalog, ignored);
  sheet.architecture.name = sheet.name;
  if (const auto parameters = reader.find("parameters")) {
    sheet.published = read_published(*parameters);
  }
  return sheet;
}

/// A configuration, or a sheet with one in it, at hand.
Model load_text(const std::string& text, const std::string& where, const Catalog& catalog,
                const std::vector<std::string>& ignored) {
  const Json document = parse_hf_json(text, where);
  if (is_sheet(document)) {
    return build_model(read_sheet({where, document}, catalog, ignored).architecture);
  }
  return build_model(read_hf_config(document, where, catalog, ignored));
}

Model load_file(std::filesystem::path path, const Catalog& catalog,
                const std::vector<std::string>& ignored) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    path /= "config.json";
    if (!std::filesystem::exists(path, error)) {
      throw InputError({.where = "MODEL",
                        .value = path.parent_path().string(),
                        .problem = "is a folder without config.json",
                        .allowed = "a folder that holds the model's config.json"});
    }
  }
  return load_text(read_file_text(path, kMostConfigBytes, "a configuration file"), path.string(),
                   catalog, ignored);
}

}  // namespace

bool is_configuration(std::string_view word) { return word.starts_with('{'); }

std::optional<Model> parse_bare_model(std::string_view word) {
  constexpr std::string_view kParams = "params=";
  if (!word.starts_with(kParams)) return parse_with_suffix(word);
  std::string_view rest = word.substr(kParams.size());
  std::int64_t units = 1;
  constexpr std::string_view kUnits = ",units=";
  if (const std::size_t comma = rest.find(','); comma != std::string_view::npos) {
    if (rest.substr(comma).substr(0, kUnits.size()) != kUnits) {
      const std::string_view value = rest.substr(std::min(rest.find('=', comma), rest.size()));
      fail_bare(word, std::string(kParams) + std::string(rest.substr(0, comma)) + ",units" +
                          (value.size() > 1 ? std::string(value) : "=80"));
    }
    const auto parsed = parse_number(rest.substr(comma + kUnits.size()));
    if (!parsed) fail_bare(word);
    units = *parsed;
    rest = rest.substr(0, comma);
  }
  const auto count = parse_number(rest);
  if (!count || *count < 1) fail_bare(word);
  return count_alone(*count, units, word);
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  if (const auto suffixed = parse_suffixed(text)) {
    return shift(suffixed->digits, suffixed->exponent);
  }
  return parse_number(text);
}

std::vector<std::string> model_names(const Catalog& catalog) { return names_in(catalog, "models"); }

ModelSheet load_model_sheet(const Catalog& catalog, const std::string& name,
                            const std::vector<std::string>& ignored) {
  return read_sheet(open_document(file_of(catalog, "models", "model", name, "MODEL")), catalog,
                    ignored);
}

Model load_model(const Catalog& catalog, const std::string& word,
                 const std::vector<std::string>& ignored) {
  if (is_configuration(word)) return load_text(word, "MODEL", catalog, ignored);
  if (auto bare = parse_bare_model(word)) return *std::move(bare);
  if (auto decoder = ordinary_decoder(catalog, word)) return *std::move(decoder);
  std::error_code error;
  if (names_a_file(word) || std::filesystem::is_directory(word, error)) {
    return load_file(word, catalog, ignored);
  }
  const auto read = [&] {
    return build_model(load_model_sheet(catalog, word, ignored).architecture);
  };
  return ignored.empty() ? remembered<Model>(catalog, "model " + word, read) : read();
}

}  // namespace placet
