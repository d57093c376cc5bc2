#include "catalog/hf_config.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "catalog/families.h"
#include "catalog/family_files.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

constexpr int kMostNesting = 32;
constexpr std::size_t kMostShapes = 2048;  // different blocks: each becomes a kind of its own

std::vector<std::span<const ModelFamily>> all_families() {
  return {sparse_families(),     classic_families(),   hybrid_families(),      linear_families(),
          special_families(),    irregular_families(), convolution_families(), recent_families(),
          compressed_families(), gemma_families(),     kimi_families(),        foreign_families()};
}

const ModelFamily* find_built_in(std::string_view type) {
  for (const std::span<const ModelFamily> group : all_families()) {
    for (const ModelFamily& family : group) {
      if (family.model_type == type) return &family;
    }
  }
  return nullptr;
}

// Files from before `model_type` existed name a class instead.
struct ClassName {
  std::string_view architecture;
  std::string_view model_type;
};
constexpr std::array kClassNames{ClassName{"GPT2LMHeadModel", "gpt2"},
                                 ClassName{"OPTForCausalLM", "opt"},
                                 ClassName{"GPTNeoXForCausalLM", "gpt_neox"},
                                 ClassName{"GPTNeoForCausalLM", "gpt_neo"},
                                 ClassName{"GPTJForCausalLM", "gptj"},
                                 ClassName{"BloomForCausalLM", "bloom"},
                                 ClassName{"LlamaForCausalLM", "llama"},
                                 ClassName{"LLaMAForCausalLM", "llama"},
                                 ClassName{"MistralForCausalLM", "mistral"},
                                 ClassName{"FalconForCausalLM", "falcon"},
                                 ClassName{"RWForCausalLM", "RefinedWebModel"},
                                 ClassName{"MPTForCausalLM", "mpt"},
                                 ClassName{"MixtralForCausalLM", "mixtral"},
                                 ClassName{"Qwen2ForCausalLM", "qwen2"},
                                 ClassName{"Qwen3ForCausalLM", "qwen3"},
                                 ClassName{"DeepseekForCausalLM", "deepseek"},
                                 ClassName{"DeepseekV2ForCausalLM", "deepseek_v2"},
                                 ClassName{"DeepseekV3ForCausalLM", "deepseek_v3"},
                                 ClassName{"MiniMaxM3SparseForCausalLM", "minimax_m3"}};

// Classes whose files go by the name of another family that has other tensors.
struct Disguise {
  std::string_view architecture;
  std::string_view model_type;  // what the file says
  std::string_view family;      // what it is
};
constexpr std::array kDisguises{
    Disguise{"DeciLMForCausalLM", "llama", "nemotron-nas"},
    Disguise{"MiniMaxM2ForCausalLM", "minimax", "minimax_m2"},
    Disguise{"BailingMoeV2ForCausalLM", "bailing_moe", "bailing_moe_v2"},
    Disguise{"DeepseekV4ForCausalLM", "deepseek_ref", "deepseek_v4"}};

// Ends of the names of classes without a language model's head.
constexpr std::array<std::string_view, 6> kOtherHeads{"ForSequenceClassification",
                                                      "ForTokenClassification",
                                                      "ForQuestionAnswering",
                                                      "ForRewardModel",
                                                      "RewardModel",
                                                      "Model"};
// Of those that end likewise and do have one.
constexpr std::array<std::string_view, 3> kLanguageHeads{"LMHeadModel", "LMHeadCustomModel",
                                                         "ChatGLMModel"};

// What the library's configuration classes say where a file does not (version 4.57.1). Nested text
// parts are saved without what equals it.
struct FamilySizes {
  std::string_view model_type;
  std::int64_t hidden = 0;
  std::int64_t width = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t vocabulary = 0;
};
constexpr std::array kFamilySizes{FamilySizes{"llama", 4096, 11008, 32, 32, 0, 32000},
                                  FamilySizes{"mistral", 4096, 14336, 32, 32, 8, 32000},
                                  FamilySizes{"mixtral", 4096, 14336, 32, 32, 8, 32000},
                                  FamilySizes{"qwen2", 4096, 22016, 32, 32, 32, 151936},
                                  FamilySizes{"qwen3", 4096, 22016, 32, 32, 32, 151936},
                                  FamilySizes{"gemma", 3072, 24576, 28, 16, 16, 256000},
                                  FamilySizes{"gemma2", 2304, 9216, 26, 8, 4, 256000},
                                  FamilySizes{"gemma3_text", 2304, 9216, 26, 8, 4, 262208},
                                  FamilySizes{"phi", 2048, 8192, 24, 32, 0, 51200},
                                  FamilySizes{"phi3", 3072, 8192, 32, 32, 0, 32064},
                                  FamilySizes{"cohere", 8192, 22528, 40, 64, 0, 256000},
                                  FamilySizes{"cohere2", 8192, 22528, 40, 64, 0, 256000},
                                  FamilySizes{"granite", 4096, 11008, 32, 32, 0, 32000},
                                  FamilySizes{"glm", 4096, 13696, 40, 32, 2, 151552},
                                  FamilySizes{"llama4_text", 5120, 8192, 48, 40, 8, 202048}};

// Outer objects of files whose text part has no object of its own, and that part's family.
constexpr std::array kFlatMultimodal{ClassName{"qwen2_vl", "qwen2_vl_text"},
                                     ClassName{"qwen2_5_vl", "qwen2_5_vl_text"}};

/// Where files of several parts keep the text part.
constexpr std::array<std::string_view, 4> kTextParts{"text_config", "llm_config", "language_config",
                                                     "thinker_config"};

/// The first files of GPT-2 say no more than sizes, under names that only they have together.
bool looks_like_gpt2(const ConfigObject& config) {
  constexpr std::array<std::string_view, 5> kSizes{"n_ctx", "n_embd", "n_head", "n_layer",
                                                   "n_positions"};
  return std::ranges::all_of(kSizes, [&](std::string_view key) { return config.has(key); });
}

std::string type_from_class(ConfigObject& config, const Catalog& catalog) {
  const auto classes = config.words("architectures", 16);
  for (const std::string& name : classes.value_or(std::vector<std::string>{})) {
    for (const ClassName& known : kClassNames) {
      if (known.architecture == name) return std::string(known.model_type);
    }
  }
  config.fail("model_type", "missing, and architectures names no class that says it",
              "one of " + std::to_string(hf_families(catalog).size()) + " families, such as llama");
}

struct Chosen {
  const ModelFamily* built_in = nullptr;
  std::optional<FamilyFile> file;
  std::vector<std::string> notes;
};

/// The classes that the file names; none where it names none in the usual form.
std::vector<std::string> class_names(ConfigObject& config) {
  const Json& classes = config.raw("architectures");
  std::vector<std::string> names;
  for (const Json& name : classes.is_array() ? classes : Json::array()) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

/// The family of files that their class tells better than their model_type.
std::string unmask(ConfigObject& config, const std::string& type, std::vector<std::string>& notes) {
  for (const std::string& name : class_names(config)) {
    for (const Disguise& known : kDisguises) {
      if (known.architecture != name || known.model_type != type) continue;
      notes.push_back("model_type says " + type + "; " + std::string(known.family) +
                      " by its class name");
      return std::string(known.family);
    }
  }
  return type;
}

/// Whether a class of this name has another head than a language model's, or none.
bool has_other_head(const std::string& name) {
  const auto ends = [&name](std::string_view end) { return name.ends_with(end); };
  return std::ranges::any_of(kOtherHeads, ends) && std::ranges::none_of(kLanguageHeads, ends);
}

/// Parts that a decoder's reader does not have and a file may ask for.
void refuse_additions(ConfigObject& config) {
  for (const std::string_view key : {"add_cross_attention", "is_encoder_decoder"}) {
    if (!config.flag_or({key}, false)) continue;
    config.fail(key, "asks for weights that are not described for this family", "false");
  }
}

[[noreturn]] void fail_family(const ConfigObject& config, const Catalog& catalog,
                              const std::string& type) {
  const std::vector<std::string> families = hf_families(catalog);
  throw InputError({.where = config.place_of("model_type"),
                    .value = type,
                    .problem = "is a family that is not known",
                    .allowed = "one of " + std::to_string(families.size()) +
                               " families, such as llama, qwen3 or deepseek_v3",
                    .nearest = nearest(type, families)});
}

Chosen choose_family(ConfigObject& config, const Catalog& catalog) {
  Chosen chosen;
  std::string type = config.text_or({"model_type"}, "");
  if (type.empty() && !config.has("architectures") && looks_like_gpt2(config)) {
    type = "gpt2";
    chosen.notes.emplace_back("model_type is missing; gpt2 by its keys");
  } else if (type.empty()) {
    type = type_from_class(config, catalog);
    chosen.notes.push_back("model_type is missing; " + type + " by its class name");
  }
  type = unmask(config, type, chosen.notes);
  for (const ClassName& flat : kFlatMultimodal) {
    if (flat.architecture != type) continue;
    type = flat.model_type;
    config.know({"vision_config", "vision_start_token_id", "vision_end_token_id", "vision_token_id",
                 "video_token_id"});
    chosen.notes.emplace_back("text part only");
  }
  chosen.built_in = find_built_in(type);
  if (chosen.built_in == nullptr) chosen.file = load_family_file(catalog, type);
  if (chosen.built_in == nullptr && !chosen.file) fail_family(config, catalog, type);
  refuse_additions(config);
  for (const std::string& name : class_names(config)) {
    if (!has_other_head(name)) continue;
    chosen.notes.push_back("architectures names " + name +
                           ", which has another head or none; a language model's is counted");
  }
  return chosen;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// "bfloat16", "torch.bfloat16"; none for words of quantised files.
std::optional<Dtype> stored_format(std::string_view word) {
  constexpr std::string_view kModule = "torch.";
  if (word.starts_with(kModule)) word.remove_prefix(kModule.size());
  if (word == "bfloat16") return Dtype::bf16;
  if (word == "float16") return Dtype::fp16;
  if (word == "float32") return Dtype::fp32;
  return std::nullopt;
}

Architecture read_text_part(const Json& object, const std::string& where, const std::string& path,
                            const Catalog& catalog) {
  ConfigObject config(object, where, path);
  const Chosen chosen = choose_family(config, catalog);
  Architecture a =
      chosen.file ? read_with_family_file(config, *chosen.file) : chosen.built_in->read(config);
  if (a.shapes.size() > kMostShapes) {
    config.fail("num_hidden_layers", "makes too many different blocks",
                "at most " + std::to_string(kMostShapes) + " different ones");
  }
  a.name = config.text_or({"_name_or_path", "name_or_path"}, "");
  a.stored = stored_format(config.text_or({"torch_dtype", "dtype"}, ""));
  if (a.name.empty()) a.name = a.family;
  const std::vector<std::string> unused = config.finish(static_cast<std::int64_t>(a.order.size()));
  a.left_out = config.left_out();
  a.notes.insert(a.notes.begin(), chosen.notes.begin(), chosen.notes.end());
  if (!unused.empty()) a.notes.push_back("keys without meaning here: " + join(unused));
  if (config.has("quantization_config")) {
    a.notes.emplace_back("quantization_config tells how the file is stored, not how it is trained");
  }
  return a;
}

/// The nested text part, with what older files keep outside of it.
Json with_outer_keys(const Json& outer, std::string_view part) {
  Json inner = outer.at(std::string(part));
  if (!inner.is_object()) return inner;
  const std::string tie = "tie_word_embeddings";
  if (!inner.contains(tie) && outer.contains(tie) && outer.at(tie).is_boolean()) {
    inner[tie] = outer.at(tie);
  }
  const std::string format = "torch_dtype";
  if (!inner.contains(format) && outer.contains(format) && outer.at(format).is_string()) {
    inner[format] = outer.at(format);
  }
  return inner;
}

struct TextPart {
  Json object;
  std::string path;  // keys that lead to it; empty: the file itself
};

/// The text part of a file of several parts, which may stand in a part itself.
TextPart find_text_part(const Json& config) {
  TextPart found{config, ""};
  for (int depth = 0; depth < kMostNesting; ++depth) {
    const auto* const part = std::ranges::find_if(kTextParts, [&](std::string_view name) {
      return found.object.is_object() && found.object.contains(std::string(name)) &&
             !found.object.at(std::string(name)).is_null();
    });
    if (part == kTextParts.end()) return found;
    found.path += (found.path.empty() ? "" : ".") + std::string(*part);
    found.object = with_outer_keys(found.object, *part);
  }
  return found;
}

/// Fills in what the text part leaves to its family; the names of what was filled in.
std::vector<std::string> fill_sizes(Json& part) {
  std::vector<std::string> filled;
  if (!part.is_object() || !part.contains("model_type")) return filled;
  const auto* const known = std::ranges::find_if(
      kFamilySizes, [&](const FamilySizes& f) { return part.at("model_type") == f.model_type; });
  if (known == kFamilySizes.end()) return filled;
  const std::array<std::pair<const char*, std::int64_t>, 6> sizes{
      {{"hidden_size", known->hidden},
       {"intermediate_size", known->width},
       {"num_hidden_layers", known->layers},
       {"num_attention_heads", known->heads},
       {"num_key_value_heads", known->kv_heads},
       {"vocab_size", known->vocabulary}}};
  for (const auto& [key, value] : sizes) {
    if (value == 0 || part.contains(key)) continue;
    part[key] = value;
    filled.push_back(std::string(key) + " " + std::to_string(value));
  }
  return filled;
}

/// Takes the keys out of one part of a configuration, which `path` ("text_config.") leads to: a key
/// may be written with that path or without. Those that were there are added to `found`.
void take_out(Json& part, const std::string& path, const std::vector<std::string>& ignored,
              std::set<std::string>& found) {
  for (const std::string& key : ignored) {
    const std::string own = key.starts_with(path) ? key.substr(path.size()) : key;
    if (part.erase(own) > 0) found.insert(key);
  }
}

/// The file without keys that are to be ignored: of the outermost object and of the text part.
Json without_keys(Json config, const std::string& where, const std::vector<std::string>& ignored) {
  std::vector<std::string> keys;
  std::set<std::string> found;
  Json* part = &config;
  std::string path;
  for (int depth = 0; part->is_object() && depth < kMostNesting; ++depth) {
    for (const auto& item : part->items()) keys.push_back(item.key());
    take_out(*part, path, ignored, found);
    const auto* const next = std::ranges::find_if(
        kTextParts, [part](std::string_view name) { return part->contains(std::string(name)); });
    if (next == kTextParts.end()) break;
    path.append(*next).append(".");
    part = &part->at(std::string(*next));
  }
  for (const std::string& key : ignored) {
    if (found.contains(key)) continue;
    throw InputError({.where = "--ignore-key",
                      .value = key,
                      .problem = "is not a key of " + where,
                      .nearest = nearest(key, keys)});
  }
  return config;
}

/// Where a scan over JSON text stands.
struct Scan {
  int depth = 0;
  bool in_string = false;
  bool escaped = false;
};

/// The scan after one more character.
Scan step(Scan scan, char c) {
  if (scan.in_string) {
    const bool escaped = scan.escaped;
    scan.escaped = !escaped && c == '\\';
    scan.in_string = escaped || c != '"';
    return scan;
  }
  scan.in_string = c == '"';
  if (c == '{' || c == '[') ++scan.depth;
  if (c == '}' || c == ']') --scan.depth;
  return scan;
}

/// Words that some libraries write and JSON does not know, and what they are read as, at the same
/// length. The longer one stands first.
struct Foreign {
  std::string_view word;
  std::string_view plain;
};
constexpr std::array kForeign{Foreign{"-Infinity", "null     "}, Foreign{"Infinity", "null    "},
                              Foreign{"NaN", "0  "}};

void replace_foreign(std::string& text, std::size_t at) {
  for (const Foreign& foreign : kForeign) {
    if (text.compare(at, foreign.word.size(), foreign.word) != 0) continue;
    text.replace(at, foreign.word.size(), foreign.plain);
    return;
  }
}

/// The text as JSON. Throws if brackets nest too deep.
std::string plain_json(std::string_view text, const std::string& where) {
  std::string plain(text);
  Scan scan;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    scan = step(scan, plain[i]);
    if (scan.depth > kMostNesting) {
      throw InputError({.where = where,
                        .problem = "nests too deep",
                        .allowed = "at most " + std::to_string(kMostNesting) + " levels"});
    }
    if (!scan.in_string) replace_foreign(plain, i);
  }
  return plain;
}

}  // namespace

std::vector<std::string> hf_families() { return hf_families(find_catalog()); }

std::vector<std::string> hf_families(const Catalog& catalog) {
  std::vector<std::string> names = names_in(catalog, "families");
  for (const std::span<const ModelFamily> group : all_families()) {
    for (const ModelFamily& family : group) names.emplace_back(family.model_type);
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

Architecture read_hf_config(const Json& config, const std::string& where) {
  return read_hf_config(config, where, find_catalog());
}

Architecture read_hf_config(const Json& config, const std::string& where, const Catalog& catalog,
                            const std::vector<std::string>& ignored) {
  if (!ignored.empty()) {
    Architecture a = read_hf_config(without_keys(config, where, ignored), where, catalog);
    a.notes.push_back("ignored as --ignore-key asks: " + join(ignored));
    return a;
  }
  TextPart part = find_text_part(config);
  if (part.path.empty()) return read_text_part(config, where, "", catalog);
  const std::vector<std::string> filled = fill_sizes(part.object);
  Architecture a = read_text_part(part.object, where, part.path, catalog);
  a.notes.insert(a.notes.begin(), "text part only");
  if (!filled.empty()) a.notes.push_back("left to the family by the file: " + join(filled));
  return a;
}

Json parse_hf_json(std::string_view text, const std::string& where) {
  if (text.size() > kMostConfigBytes) {
    throw InputError({.where = where,
                      .value = std::to_string(text.size()) + " bytes",
                      .problem = "is too long for a configuration file",
                      .allowed = "at most " + std::to_string(kMostConfigBytes) + " bytes"});
  }
  return parse_json(plain_json(text, where), where);
}

Architecture parse_hf_config(std::string_view text, const std::string& where) {
  return read_hf_config(parse_hf_json(text, where), where);
}

}  // namespace placet
