// Job files, and single words of a request.
#include <algorithm>
#include <cmath>

#include "catalog/job.h"
#include "catalog/job_words.h"
#include "catalog/meant.h"
#include "catalog/reader.h"
#include "catalog/words.h"
#include "units/error.h"
#include "units/nearest.h"
#include "units/number.h"

namespace placet {
namespace {

constexpr std::int64_t kMostTokens = 1'000'000'000;
constexpr std::int64_t kMostSamples = 1'000'000'000'000;

const std::vector<std::string>& job_keys() {
  static const std::vector<std::string> kKeys = {
      "model",       "cluster",   "placement", "seq",          "lengths", "global-batch",
      "micro-batch", "recompute", "precision", "optimizer",    "freeze",  "lora",
      "loss",        "clip",      "routing",   "balance-loss", "engine",  "ignore_keys"};
  return kKeys;
}

std::optional<std::string> read_text(const Reader& reader, std::string_view key) {
  const auto value = reader.find(key);
  return value ? std::optional(value->text()) : std::nullopt;
}

std::optional<std::int64_t> read_whole(const Reader& reader, std::string_view key,
                                       std::int64_t most) {
  const auto value = reader.find(key);
  return value ? std::optional(value->whole({1, most})) : std::nullopt;
}

/// Tokens per sample: a number, or a text such as "4k".
std::optional<std::int64_t> read_tokens(const Reader& reader, std::string_view key) {
  const auto value = reader.find(key);
  if (!value) return std::nullopt;
  if (!value->is_text()) return value->whole({1, kMostTokens});
  const auto tokens = tokens_in(value->text());
  if (tokens && *tokens >= 1 && *tokens <= kMostTokens) return tokens;
  value->fail("is not a number of tokens",
              "1 to " + std::to_string(kMostTokens) + ", or a text such as \"4k\"");
}

std::int64_t count_after(const std::string& text, std::size_t equals, const std::string& where,
                         const std::string& allowed) {
  const auto count = number_in<std::int64_t>(std::string_view(text).substr(equals + 1));
  if (!count || *count < 1) {
    throw InputError(
        {.where = where, .value = text, .problem = "has no valid count", .allowed = allowed});
  }
  return *count;
}

// The words of the field for modules whose names here are longer.
std::string full_module_name(const std::string& word) {
  if (word == "core_attn") return "core_attention";
  if (word == "attn") return "attention";
  if (word == "layernorm") return "norm";
  if (word == "mlp_act") return "mlp_activation";
  if (word == "moe_act") return "moe_activation";
  if (word == "shared_experts") return "shared_expert";
  if (word == "mla_up_proj") return "latent_projection";
  return word;
}

Module module_named(const std::string& word, const std::string& where) {
  const std::vector<std::string> words =
      words_of<Module>(kModuleCount, [](Module module) { return name_of(module); });
  const std::string name = full_module_name(word);
  const auto it = std::find(words.begin(), words.end(), name);
  if (it != words.end()) return static_cast<Module>(it - words.begin());
  std::vector<std::string> spellings = words;
  spellings.insert(spellings.end(), {"core_attn", "layernorm", "mlp_act", "moe_act"});
  throw InputError({.where = where,
                    .value = word,
                    .problem = word.empty() ? "a module is missing" : "is not a module",
                    .allowed = list_words(words),
                    .nearest = nearest(name, spellings)});
}

std::vector<Module> parse_modules(const std::string& text, const std::string& where) {
  std::vector<Module> modules;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(',', begin);
    const Module module = module_named(text.substr(begin, end - begin), where);
    if (std::find(modules.begin(), modules.end(), module) == modules.end()) {
      modules.push_back(module);
    }
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  std::sort(modules.begin(), modules.end());
  return modules;
}

std::vector<std::string> read_texts(const Reader& reader) {
  if (reader.is_text()) return {reader.text()};
  std::vector<std::string> texts;
  for (const Reader& item : reader.items()) texts.push_back(item.text());
  return texts;
}

template <class Value>
bool is_said(const std::optional<Value>& word) {
  return word.has_value();
}
template <class Value>
bool is_said(const std::vector<Value>& words) {
  return !words.empty();
}

constexpr std::size_t kMostLengths = 64;

/// Lengths that differ, with shares of all samples.
void check_lengths(const std::vector<SampleLength>& lengths, const std::string& value,
                   const std::string& where) {
  const auto fail = [&](std::string problem, std::string allowed) {
    throw InputError({.where = where,
                      .value = value,
                      .problem = std::move(problem),
                      .allowed = std::move(allowed)});
  };
  if (lengths.empty() || lengths.size() > kMostLengths) {
    fail("has " + std::to_string(lengths.size()) + " lengths",
         "1 to " + std::to_string(kMostLengths));
  }
  Rational sum;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const SampleLength& one = lengths[i];
    const std::string tokens = std::to_string(one.tokens);
    if (one.share <= Rational(0) || one.share > Rational(1)) {
      fail("gives " + tokens + " tokens a share of " + to_string(one.share), "above 0 and up to 1");
    }
    const auto before = lengths.begin() + static_cast<std::ptrdiff_t>(i);
    const auto twin = std::ranges::find(lengths.begin(), before, one.tokens, &SampleLength::tokens);
    if (twin != before) fail("has " + tokens + " tokens twice", "each length once");
    sum += one.share;
  }
  if (sum != Rational(1)) fail("has shares that add up to " + to_string(sum), "a sum of 1");
}

std::vector<SampleLength> read_lengths(const Reader& reader) {
  std::vector<SampleLength> lengths;
  if (reader.is_text()) return parse_lengths(reader.text(), reader.where());
  for (const Reader& item : reader.items()) {
    item.allow({"tokens", "share"});
    lengths.push_back({.tokens = item.at("tokens").whole({1, kMostTokens}),
                       .share = read_fraction(item.at("share"))});
  }
  check_lengths(lengths, "", reader.where());
  return lengths;
}

}  // namespace

std::vector<SampleLength> parse_lengths(const std::string& text, const std::string& where) {
  std::vector<SampleLength> lengths;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t colon = std::min(part.find(':'), part.size());
    const auto tokens = tokens_in(std::string_view(part).substr(0, colon));
    const auto share = fraction_in(part.substr(std::min(colon + 1, part.size())));
    if (!tokens || *tokens < 1 || *tokens > kMostTokens || !share) {
      throw InputError({.where = where,
                        .value = part,
                        .problem = "is no length with its share of the samples",
                        .allowed = "TOKENS:SHARE,... such as 4096:3/4,65536:1/4"});
    }
    lengths.push_back({.tokens = *tokens, .share = *share});
    begin = end + 1;
  }
  check_lengths(lengths, text, where);
  return lengths;
}

std::string file_from_folder(const std::filesystem::path& folder, const std::string& word) {
  if (!names_a_file(word) || std::filesystem::path(word).is_absolute()) return word;
  return (folder / word).string();
}

std::string model_from_folder(const std::filesystem::path& folder, const std::string& word) {
  std::string path = file_from_folder(folder, word);
  const bool is_name = std::ranges::count(word, '/') == 1 && !word.ends_with(".json") &&
                       word.front() != '.' && word.front() != '/';
  std::error_code error;
  return is_name && !std::filesystem::exists(path, error) ? word : path;
}

std::string cluster_from_folder(const std::filesystem::path& folder, const std::string& text) {
  std::string result;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    const std::size_t times = part.find_first_not_of("0123456789");
    const bool counted = times != std::string::npos && times > 0 && part[times] == 'x';
    const std::string count = counted ? part.substr(0, times + 1) : std::string();
    result += (begin > 0 ? "," : "") + count + file_from_folder(folder, part.substr(count.size()));
    begin = end + 1;
  }
  return result;
}

JobRequest read_job_file(const std::filesystem::path& path) {
  const Document document = open_document(path);
  JobRequest request = read_job_words(Reader(document));
  request.file = path;
  const std::filesystem::path folder = path.parent_path();
  if (request.model) request.model = model_from_folder(folder, *request.model);
  if (request.cluster) request.cluster = cluster_from_folder(folder, *request.cluster);
  if (request.engine) request.engine = file_from_folder(folder, *request.engine);
  return request;
}

JobRequest read_job_words(const Reader& reader) {
  reader.allow(job_keys());
  JobRequest request;
  for (const std::string& key : job_keys()) {
    if (reader.has(key)) request.in_file.insert(key);
  }
  request.model = read_text(reader, "model");
  if (const auto keys = reader.find("ignore_keys")) request.ignore_keys = read_texts(*keys);
  request.cluster = read_text(reader, "cluster");
  request.placement = read_text(reader, "placement");
  request.sequence = read_tokens(reader, "seq");
  if (const auto lengths = reader.find("lengths")) request.lengths = read_lengths(*lengths);
  request.global_batch = read_whole(reader, "global-batch", kMostSamples);
  request.micro_batch = read_whole(reader, "micro-batch", kMostSamples);
  request.recompute = read_text(reader, "recompute");
  request.precision = read_text(reader, "precision");
  request.optimizer = read_text(reader, "optimizer");
  if (const auto freeze = reader.find("freeze")) request.freeze = read_texts(*freeze);
  if (const auto lora = reader.find("lora")) {
    request.lora = lora->is_whole() ? std::to_string(lora->whole({1, 1'000'000})) : lora->text();
  }
  request.loss = read_text(reader, "loss");
  if (const auto clip = reader.find("clip")) request.clip = clip->number({0, 1e12});
  request.routing = read_text(reader, "routing");
  request.balance_loss = read_text(reader, "balance-loss");
  request.engine = read_text(reader, "engine");
  return request;
}

JobRequest merge(const JobRequest& flags, const JobRequest& file) {
  JobRequest merged = flags;
  merged.file = file.file;
  merged.in_file = file.in_file;
  const auto fill = [&](const char* word, auto& to, const auto& from) {
    if (!is_said(to)) {
      to = from;
    } else {
      merged.in_file.erase(word);
    }
  };
  fill("model", merged.model, file.model);
  fill("ignore_keys", merged.ignore_keys, file.ignore_keys);
  fill("cluster", merged.cluster, file.cluster);
  fill("placement", merged.placement, file.placement);
  fill("seq", merged.sequence, file.sequence);
  fill("lengths", merged.lengths, file.lengths);
  fill("global-batch", merged.global_batch, file.global_batch);
  fill("micro-batch", merged.micro_batch, file.micro_batch);
  fill("recompute", merged.recompute, file.recompute);
  fill("precision", merged.precision, file.precision);
  fill("optimizer", merged.optimizer, file.optimizer);
  fill("freeze", merged.freeze, file.freeze);
  fill("lora", merged.lora, file.lora);
  fill("loss", merged.loss, file.loss);
  fill("clip", merged.clip, file.clip);
  fill("routing", merged.routing, file.routing);
  fill("balance-loss", merged.balance_loss, file.balance_loss);
  fill("engine", merged.engine, file.engine);
  return merged;
}

InputFault named_as_said(InputFault fault, const JobRequest& request) {
  for (const std::string& word : request.in_file) {
    const std::string flag = word == "model"         ? "MODEL"
                             : word == "ignore_keys" ? "--ignore-key"
                                                     : "--" + word;
    for (const std::string& name : {flag, word}) {
      if (!fault.where.starts_with(name)) continue;
      const bool is_whole = fault.where.size() == name.size() || fault.where[name.size()] == ',';
      if (!is_whole) continue;  // "placement, character 6" is of the placement
      fault.where.replace(0, name.size(), request.file.string() + ": " + word);
      return fault;
    }
  }
  return fault;
}

namespace {

/// A word with a count behind it: "every=2"; none: it is no such word.
std::optional<Recompute> counted_recompute(const std::string& word, std::int64_t count) {
  if (word == "every") return Recompute{.kind = Recompute::Kind::every, .count = count};
  if (word == "first") return Recompute{.kind = Recompute::Kind::first, .count = count};
  if (word != "uniform") return std::nullopt;
  // One at a time is what `full` says.
  if (count == 1) return Recompute{.kind = Recompute::Kind::full};
  return Recompute{.kind = Recompute::Kind::uniform, .count = count};
}

}  // namespace

Recompute parse_recompute(const std::string& text, const std::string& where) {
  const std::vector<std::string> words = {"none", "full", "selective", "every", "first", "uniform"};
  const std::string allowed =
      "none, full, selective, selective=MODULE,..., every=N, first=N or uniform=N";
  const std::size_t equals = text.find('=');
  const std::string word = text.substr(0, equals);
  const bool has_value = equals != std::string::npos;
  Recompute recompute;
  if (word == "none" && !has_value) return recompute;
  if (word == "full" && !has_value) {
    recompute.kind = Recompute::Kind::full;
    return recompute;
  }
  if (word == "selective") {
    recompute.kind = Recompute::Kind::selective;
    recompute.modules = has_value ? parse_modules(text.substr(equals + 1), where)
                                  : std::vector<Module>{Module::core_attention};
    return recompute;
  }
  if (has_value && counted_recompute(word, 1)) {
    return *counted_recompute(word, count_after(text, equals, where, allowed));
  }
  throw InputError({.where = where,
                    .value = text,
                    .problem = "is no way of recomputation",
                    .allowed = allowed,
                    .nearest = word == text ? nearest(word, words) : std::string()});
}

Routing parse_routing(const std::string& text, const std::string& where) {
  const std::string allowed =
      "balanced, worst, expected=SKEW or capacity=FACTOR, both from 1 to 1000";
  if (text == "balanced") return {};
  if (text == "worst") return {.kind = Routing::Kind::worst};
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::string word = text.substr(0, equals);
  const auto said =
      number_in<double>(std::string_view(text).substr(std::min(equals + 1, text.size())));
  const double factor = said.value_or(0);
  const bool in_range = factor >= 1 && factor <= 1000;
  if (in_range && word == "expected") return {.kind = Routing::Kind::expected, .skew = factor};
  if (in_range && word == "capacity") {
    constexpr std::int64_t kParts = 1'000'000;  // as many decimals are read
    const auto parts =
        static_cast<std::int64_t>(std::llround(factor * static_cast<double>(kParts)));
    return {.kind = Routing::Kind::capacity, .capacity = Rational(parts, kParts)};
  }
  const std::vector<std::string> words = {"balanced", "expected", "capacity", "worst"};
  throw InputError({.where = where,
                    .value = text,
                    .problem = "is no routing",
                    .allowed = allowed,
                    .nearest = text.find('=') == std::string::npos ? nearest(text, words) : ""});
}

BalanceScope parse_balance_loss(const std::string& text, const std::string& where) {
  const std::vector<std::string> words = {"none", "sequence", "micro-batch", "global"};
  const auto found = std::ranges::find(words, text);
  if (found != words.end()) return static_cast<BalanceScope>(found - words.begin());
  throw InputError({.where = where,
                    .value = text,
                    .problem = "is no scope of a balance loss",
                    .allowed = list_words(words),
                    .nearest = nearest(text, words)});
}

}  // namespace placet
