#include "catalog/hf_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "catalog/families.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

constexpr int kMostNesting = 32;
constexpr std::size_t kMostShapes = 2048;  // different blocks: each becomes a kind of its own

std::vector<std::span<const ModelFamily>> all_families() {
  return {dense_families(),     sparse_families(),      classic_families(),
          hybrid_families(),    linear_families(),      special_families(),
          irregular_families(), convolution_families(), foreign_families()};
}

const ModelFamily* find_family(std::string_view type) {
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
constexpr std::array kClassNames{
    ClassName{"GPT2LMHeadModel", "gpt2"},          ClassName{"OPTForCausalLM", "opt"},
    ClassName{"GPTNeoXForCausalLM", "gpt_neox"},   ClassName{"GPTNeoForCausalLM", "gpt_neo"},
    ClassName{"GPTJForCausalLM", "gptj"},          ClassName{"BloomForCausalLM", "bloom"},
    ClassName{"LlamaForCausalLM", "llama"},        ClassName{"LLaMAForCausalLM", "llama"},
    ClassName{"MistralForCausalLM", "mistral"},    ClassName{"FalconForCausalLM", "falcon"},
    ClassName{"RWForCausalLM", "RefinedWebModel"}, ClassName{"MPTForCausalLM", "mpt"}};

// Outer objects of files whose text part has no object of its own, and that part's family.
constexpr std::array kFlatMultimodal{ClassName{"qwen2_vl", "qwen2_vl_text"},
                                     ClassName{"qwen2_5_vl", "qwen2_5_vl_text"}};

/// Where files of several parts keep the text part.
constexpr std::array<std::string_view, 4> kTextParts{"text_config", "llm_config", "language_config",
                                                     "thinker_config"};

std::string type_from_class(ConfigObject& config) {
  const auto classes = config.words("architectures", 16);
  for (const std::string& name : classes.value_or(std::vector<std::string>{})) {
    for (const ClassName& known : kClassNames) {
      if (known.architecture == name) return std::string(known.model_type);
    }
  }
  config.fail("model_type", "missing, and architectures names no class that says it",
              "one of " + std::to_string(hf_families().size()) + " families, such as llama");
}

struct Chosen {
  const ModelFamily* family = nullptr;
  std::vector<std::string> notes;
};

Chosen choose_family(ConfigObject& config) {
  Chosen chosen;
  std::string type = config.text_or({"model_type"}, "");
  if (type.empty()) {
    type = type_from_class(config);
    chosen.notes.push_back("model_type is missing; " + type + " by its class name");
  }
  for (const ClassName& flat : kFlatMultimodal) {
    if (flat.architecture != type) continue;
    type = flat.model_type;
    config.know({"vision_config", "vision_start_token_id", "vision_end_token_id", "vision_token_id",
                 "video_token_id"});
    chosen.notes.emplace_back("text part only");
  }
  chosen.family = find_family(type);
  if (chosen.family == nullptr) {
    const std::vector<std::string> families = hf_families();
    throw InputError({.where = config.place_of("model_type"),
                      .value = type,
                      .problem = "is a family that is not known",
                      .allowed = "one of " + std::to_string(families.size()) +
                                 " families, such as llama, qwen3 or deepseek_v3",
                      .nearest = nearest(type, families)});
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

Architecture read_text_part(const Json& object, const std::string& where, const std::string& path) {
  ConfigObject config(object, where, path);
  const Chosen chosen = choose_family(config);
  Architecture a = chosen.family->read(config);
  if (a.shapes.size() > kMostShapes) {
    config.fail("num_hidden_layers", "makes too many different blocks",
                "at most " + std::to_string(kMostShapes) + " different ones");
  }
  a.name = config.text_or({"_name_or_path", "name_or_path"}, "");
  a.stored = stored_format(config.text_or({"torch_dtype", "dtype"}, ""));
  if (a.name.empty()) a.name = a.family;
  const std::vector<std::string> unused = config.finish();
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

std::vector<std::string> hf_families() {
  std::vector<std::string> names;
  for (const std::span<const ModelFamily> group : all_families()) {
    for (const ModelFamily& family : group) names.emplace_back(family.model_type);
  }
  std::ranges::sort(names);
  return names;
}

Architecture read_hf_config(const Json& config, const std::string& where) {
  for (const std::string_view part : kTextParts) {
    if (!config.is_object() || !config.contains(std::string(part))) continue;
    const Json text = with_outer_keys(config, part);
    Architecture a = read_text_part(text, where, std::string(part));
    a.notes.insert(a.notes.begin(), "text part only");
    return a;
  }
  return read_text_part(config, where, "");
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
