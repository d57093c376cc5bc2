#include "catalog/config_object.h"

#include <algorithm>
#include <array>
#include <utility>

#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

// Keys of published configurations that say nothing about shapes, apart from those that finish()
// lets pass by their value or because their name is not that of a size, and from kLeftOut.
constexpr std::array kIrrelevant{
    // training and generation
    "initializer_range", "init_std", "initializer_factor", "use_cache", "pad_token_id",
    "bos_token_id", "eos_token_id", "eod_token_id", "sep_token_id", "decoder_start_token_id",
    "unk_token_id", "mask_token_id", "image_token_id", "im_start_id", "im_end_id", "num_beams",
    "num_beam_groups", "num_return_sequences", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "chunk_size_feed_forward", "top_k", "top_p", "typical_p",
    "temperature", "max_length", "min_length", "length_penalty", "repetition_penalty",
    "diversity_penalty", "num_logits_to_keep", "num_labels", "id2label", "label2id", "problem_type",
    "task_specific_params", "prefix", "finetuning_task", "do_sample", "early_stopping",
    "bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "forced_bos_token_id",
    "forced_eos_token_id", "exponential_decay_length_penalty", "remove_invalid_values",
    "classifier_dropout", "classifier_dropout_prob", "summary_type", "summary_use_proj",
    "summary_activation", "summary_proj_to_labels", "summary_first_dropout", "layerdrop",
    // the file itself and how it is run
    "architectures", "model_type", "auto_map", "torch_dtype", "dtype", "transformers_version",
    "_name_or_path", "name_or_path", "_attn_implementation", "_attn_implementation_autoset",
    "_commit_hash", "transformers.js_config", "unsloth_fixed", "unsloth_version", "torchscript",
    "return_dict", "output_hidden_states", "output_attentions", "output_scores",
    "return_dict_in_generate", "use_bfloat16", "tf_legacy_loss", "tokenizer_class",
    "tie_encoder_decoder", "is_encoder_decoder", "is_decoder", "add_cross_attention",
    "cross_attention_hidden_size", "num_image_tokens", "quantization_config", "compression_config",
    "pretraining_tp", "use_flash_attn", "flash_attn", "attn_implementation", "use_mamba_kernels",
    "gradient_checkpointing", "use_flash_attention", "model_parallel", "use_logn_attn",
    // numerics of norms, positions, routing and losses
    "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon",
    "layernorm_epsilon", "rope_theta", "rope_scaling", "rope_parameters", "rope_ratio",
    "rope_interleave", "rotary_emb_base", "rope_local_base_freq", "rope_type", "original_rope",
    "original_max_position_embeddings", "partial_rotary_factor", "rotary_pct", "scale_attn_weights",
    "reorder_and_upcast_attn", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
    "softmax_scale", "query_pre_attn_scalar", "attn_scale", "floor_scale", "residual_in_fp32",
    "rescale_prenorm_residual", "router_aux_loss_coef", "output_router_logits", "aux_loss_alpha",
    "seq_aux", "scoring_func", "topk_method", "topk_group", "norm_topk_prob", "ep_size",
    "moe_loss_weight", "moe_normalize_expert_weights", "moe_norm_min"};

/// Keys of what is computed and says nothing of shapes: no step program has it, and each says so.
struct LeftOut {
  std::string_view key;
  std::string_view what;
  double neutral = 0;          // the value that changes nothing
  std::string_view same = {};  // a key with the same value changes nothing either
};
constexpr std::array<LeftOut, 21> kLeftOut{{
    {"clip_qkv", "queries, keys and values are clipped"},
    {"attn_temperature_tuning", "queries are scaled by their position"},
    {"router_z_loss_coef", "a loss of the router's logits"},
    {"z_loss_coefficient", "a loss of the logits"},
    {"router_jitter_noise", "noise on what the router takes"},
    {"input_jitter_noise", "noise on what the experts take"},
    {"moe_jitter_eps", "noise on what the router takes"},
    {"embedding_multiplier", "a constant factor of the embedding", 1},
    {"scale_emb", "a constant factor of the embedding", 1},
    {"residual_multiplier", "a constant factor of what blocks add", 1},
    {"scale_depth", "a constant factor of what blocks add", 1},
    {"logits_scaling", "a constant factor of the logits", 1},
    {"logit_scale", "a constant factor of the logits", 1},
    {"attention_multiplier", "a constant factor of the scores"},
    {"scale_attn_by_inverse_layer_idx", "scores are divided by the number of the block"},
    {"dim_model_base", "a constant factor of the logits"},
    {"gate_lower_bound", "the decays of delta attention have a lower bound"},
    {"routed_scaling_factor", "a constant factor of what experts add", 1},
    {"n_group", "experts are chosen among those of a few groups", 1, "topk_group"},
    {"num_expert_group", "experts are chosen among those of a few groups", 1, "topk_group"},
    {"num_limited_groups", "experts are chosen among those of a few groups", 1, "topk_group"},
}};

std::vector<std::string> left_out_of(const Json& object) {
  std::vector<std::string> out;
  for (const LeftOut& one : kLeftOut) {
    const auto found = object.find(std::string(one.key));
    if (found == object.end() || found->is_null() || *found == Json(false)) continue;
    if (found->is_number() && found->get<double>() == one.neutral) continue;
    if (object.value(std::string(one.same), Json()) == *found) continue;
    const std::string value = found->is_boolean() ? "" : " " + shorten(*found);
    out.push_back(std::string(one.what) + " (" + std::string(one.key) + value + ")");
  }
  return out;
}

bool is_irrelevant(std::string_view key) {
  return std::ranges::find(kIrrelevant, key) != kIrrelevant.end() ||
         std::ranges::find(kLeftOut, key, &LeftOut::key) != kLeftOut.end();
}

bool begins_with_any(std::string_view name, Keys words) {
  return std::ranges::any_of(words, [name](std::string_view w) { return name.starts_with(w); });
}

bool ends_with_any(std::string_view name, Keys words) {
  return std::ranges::any_of(words, [name](std::string_view w) { return name.ends_with(w); });
}

// Settings that change tensors in the families that know them.
constexpr std::array kForeignShapes{
    "multi_query", "multi_query_attention",    "parallel_attn",    "multi_query_group_num",
    "use_cla",     "new_decoder_architecture", "cla_share_factor", "cross_layer_sharing"};

/// Whether a key's name is that of a size, a count, or a switch for weights. Windows of attention
/// make no tensors.
bool looks_like_shape(std::string_view name) {
  if (name.find("window") != std::string_view::npos) return false;
  if (std::ranges::find(kForeignShapes, name) != kForeignShapes.end()) return true;
  return begins_with_any(name, {"num_", "n_", "d_", "dim_"}) ||
         ends_with_any(name, {"_size", "_sizes", "_dim", "_dims", "_rank", "_ranks", "_layers",
                              "_layer", "_experts", "_expert", "_heads", "_head", "_width",
                              "_groups", "_bias", "_ratio", "_embeddings", "_kernel", "_expand"}) ||
         name.find("qk_norm") != std::string_view::npos ||
         name.find("qk_layernorm") != std::string_view::npos || name == "bias" || name == "no_bias";
}

/// Whether a value looks like a setting for every layer that may change its tensors: lists of token
/// numbers may be as long, short lists may be anything, and fractions and switches of positions
/// (rotary factors, "rope") make no tensors.
bool is_one_per_layer(std::string_view name, const Json& value, std::int64_t layers) {
  if (layers <= 3 || !value.is_array() || value.size() != static_cast<std::size_t>(layers)) {
    return false;
  }
  const bool rotates = name.find("rope") != std::string_view::npos ||
                       name.find("rotary") != std::string_view::npos ||
                       name.find("window") != std::string_view::npos;
  return !rotates && !ends_with_any(name, {"_id", "_ids"}) && !value.front().is_number_float();
}

/// A key in small letters without what parts its words: "numKeyValueHeads" is "numkeyvalueheads".
std::string letters_of(std::string_view key) {
  std::string letters;
  for (const char c : key) {
    if (c == '_' || c == '-' || c == '.') continue;
    letters += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return letters;
}

/// The key that another one is with a slip of the pen; empty: it is none. The library keeps some
/// keys twice, once behind a line.
std::string slip_of(std::string_view key, const std::vector<std::string>& known) {
  constexpr std::size_t kShortest = 6;
  constexpr std::size_t kLong = 12;
  const std::string letters = letters_of(key);
  if (letters.size() < kShortest || key.starts_with('_')) return {};
  const std::size_t most = letters.size() < kLong ? 1 : 2;
  for (const std::string& other : known) {
    if (edit_distance(letters, letters_of(other)) <= most) return other;
  }
  return {};
}

/// The key that was meant by one that is not known. What older files call kv is key_value here.
std::string meant_by(const std::string& key, const std::vector<std::string>& known) {
  std::string slip = slip_of(key, known);
  if (!slip.empty()) return slip;
  std::string full = key;
  const std::size_t place = full.find("kv_");
  if (place != std::string::npos) full.replace(place, 3, "key_value_");
  return nearest(full, known);
}

/// Nothing, in whatever form: no entries, no text.
bool is_empty(const Json& value) {
  return (value.is_structured() && value.empty()) || value == Json("");
}

/// What a key is about, whatever the order and form of its words: those of "n_kv_heads" and
/// "num_key_value_heads" are alike.
std::set<std::string> words_of_key(std::string_view key) {
  std::set<std::string> words;
  std::string word;
  const auto close = [&] {
    if (word.size() > 1 && word.ends_with('s')) word.pop_back();
    if (word == "kv") {
      words.insert({"key", "value"});
    } else if (!word.empty() && word != "num" && word != "n" && word != "of") {
      words.insert(word);
    }
    word.clear();
  };
  for (const char c : key) {
    if (c == '_' || c == '-' || c == '.') {
      close();
    } else {
      word += c;
    }
  }
  close();
  return words;
}

/// The library writes infinity as an object.
bool is_list_of_objects(const Json& value) {
  return value.is_array() && std::ranges::any_of(value, [](const Json& entry) {
           return entry.is_object() && !entry.contains("__float__");
         });
}

/// Whether a value can be that of a size or of a switch: no word is.
bool is_word(const Json& value) {
  return value.is_string() &&
         value.get<std::string>().find_first_not_of("0123456789") != std::string::npos;
}

std::string join(std::string_view a, std::string_view b) {
  std::string text(a);
  if (!a.empty() && !b.empty()) text += ".";
  return text.append(b);
}

const Json& null_json() {
  static const Json kNull;
  return kNull;
}

}  // namespace

std::string shorten(const Json& value) {
  constexpr std::size_t kMost = 60;
  if (value.is_object() && value.size() > 4) return "an object";
  if (value.is_array() && value.size() > 16) return "a list of " + std::to_string(value.size());
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

ConfigObject::ConfigObject(const Json& object, std::string where, std::string path)
    : object_(&object), where_(std::move(where)), path_(std::move(path)) {
  if (!object.is_object()) {
    throw InputError({.where = path_.empty() ? where_ : where_ + ": " + path_,
                      // A whole file may be anybody's: what it is, not what it says.
                      .value = path_.empty() ? object.type_name() : shorten(object),
                      .problem = "is not an object",
                      .allowed = "a JSON object of settings"});
  }
}

std::string ConfigObject::place_of(std::string_view key) const {
  return where_ + ": " + join(path_, key);
}

void ConfigObject::fail(std::string_view key, std::string problem, std::string allowed) const {
  const auto found = object_->find(key);
  throw InputError({.where = place_of(key),
                    .value = found == object_->end() ? "" : shorten(*found),
                    .problem = std::move(problem),
                    .allowed = std::move(allowed)});
}

void ConfigObject::fail_value(std::string_view key, const Json& value, std::string allowed) const {
  throw InputError(
      {.where = place_of(key), .value = shorten(value), .allowed = std::move(allowed)});
}

void ConfigObject::require_multiple(std::string_view key, std::int64_t number,
                                    std::int64_t parts) const {
  if (parts > 0 && number % parts == 0) return;
  fail(key, "does not divide " + std::to_string(number), "a divisor of that");
}

bool ConfigObject::has(std::string_view key) const {
  const auto found = object_->find(key);
  return found != object_->end() && !found->is_null();
}

bool ConfigObject::is_null(std::string_view key) const {
  const auto found = object_->find(key);
  return found != object_->end() && found->is_null();
}

const Json* ConfigObject::find(Keys keys) {
  const Json* result = nullptr;
  std::string_view first;
  for (const std::string_view key : keys) {
    known_.emplace(key);
    if (!has(key)) continue;
    const Json& value = *object_->find(key);
    if (result == nullptr) {
      result = &value;
      first = key;
    } else if (*result != value) {
      fail(key, "contradicts " + std::string(first) + " = " + shorten(*result));
    }
  }
  return result;
}

const Json& ConfigObject::require(Keys keys, const std::string& allowed) {
  if (const Json* value = find(keys)) return *value;
  // The nearest key of the file, if it is near: probably the same word with a slip of the pen.
  std::vector<std::string> others;
  for (const auto& item : object_->items()) {
    if (!known_.contains(item.key())) others.push_back(item.key());
  }
  const std::string near = nearest(*keys.begin(), others);
  std::string problem = "missing";
  if (!near.empty()) problem += " (the file has '" + near + "')";
  throw InputError({.where = place_of(*keys.begin()), .problem = problem, .allowed = allowed});
}

std::int64_t ConfigObject::whole(Keys keys, const Json& value, std::int64_t least,
                                 std::int64_t most) const {
  const std::string allowed =
      "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  std::string_view key = *keys.begin();
  for (const std::string_view k : keys) {
    if (has(k)) {
      key = k;
      break;
    }
  }
  const bool beyond = value.is_number_unsigned() &&
                      value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  if (!value.is_number_integer() || beyond) fail_value(key, value, allowed);
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most) fail_value(key, value, allowed);
  return number;
}

std::int64_t ConfigObject::size(Keys keys, std::int64_t most) {
  const Json& value = require(keys, "a whole number from 1 to " + std::to_string(most));
  return whole(keys, value, 1, most);
}

std::int64_t ConfigObject::size_or(Keys keys, std::int64_t fallback, std::int64_t most) {
  const Json* value = find(keys);
  return value == nullptr ? fallback : whole(keys, *value, 1, most);
}

std::int64_t ConfigObject::count_or(Keys keys, std::int64_t fallback, std::int64_t most) {
  const Json* value = find(keys);
  return value == nullptr ? fallback : whole(keys, *value, 0, most);
}

bool ConfigObject::flag_or(Keys keys, bool fallback) {
  const Json* value = find(keys);
  if (value == nullptr) {
    // A switch that is null is off, whatever it would be were it not there.
    const auto null = [this](std::string_view key) { return is_null(key); };
    return fallback && std::ranges::none_of(keys, null);
  }
  if (!value->is_boolean()) fail_value(*keys.begin(), *value, "true or false");
  return value->get<bool>();
}

double ConfigObject::limit_or(std::string_view key, double fallback, double most) {
  const auto said = object_->find(std::string(key));
  if (said == object_->end() || !said->is_null()) return number_or({key}, fallback, 0, most);
  know({key});
  return 0;
}

double ConfigObject::number_or(Keys keys, double fallback, double least, double most) {
  const Json* value = find(keys);
  if (value == nullptr) return fallback;
  const auto bound = [](double x) {
    return x == static_cast<double>(static_cast<std::int64_t>(x))
               ? std::to_string(static_cast<std::int64_t>(x))
               : std::to_string(x);
  };
  const std::string allowed = "a number from " + bound(least) + " to " + bound(most);
  if (!value->is_number()) fail_value(*keys.begin(), *value, allowed);
  const auto number = value->get<double>();
  if (!(number >= least && number <= most)) fail_value(*keys.begin(), *value, allowed);
  return number;
}

std::string ConfigObject::text_or(Keys keys, std::string fallback) {
  const Json* value = find(keys);
  if (value == nullptr) return fallback;
  if (!value->is_string()) fail_value(*keys.begin(), *value, "a word");
  return value->get<std::string>();
}

const Json& ConfigObject::raw(std::string_view key) {
  const Json* value = find({key});
  return value == nullptr ? null_json() : *value;
}

std::optional<std::vector<std::int64_t>> ConfigObject::numbers(std::string_view key,
                                                               std::int64_t most_entries) {
  const Json& value = raw(key);
  if (value.is_null()) return std::nullopt;
  const std::string allowed =
      "a list of at most " + std::to_string(most_entries) + " whole numbers";
  if (!value.is_array() || value.size() > static_cast<std::size_t>(most_entries)) {
    fail_value(key, value, allowed);
  }
  std::vector<std::int64_t> result;
  for (const Json& entry : value) {
    if (!entry.is_number_integer()) fail_value(key, value, allowed);
    result.push_back(whole({key}, entry, -kMostRows, kMostRows));
  }
  return result;
}

std::optional<std::vector<std::string>> ConfigObject::words(std::string_view key,
                                                            std::int64_t most_entries) {
  const Json& value = raw(key);
  if (value.is_null()) return std::nullopt;
  const std::string allowed = "a list of at most " + std::to_string(most_entries) + " words";
  if (!value.is_array() || value.size() > static_cast<std::size_t>(most_entries)) {
    fail_value(key, value, allowed);
  }
  std::vector<std::string> result;
  for (const Json& entry : value) {
    if (!entry.is_string()) fail_value(key, value, allowed);
    result.push_back(entry.get<std::string>());
  }
  return result;
}

ConfigObject ConfigObject::object(std::string_view key) {
  return {require({key}, "an object"), where_, join(path_, key)};
}

std::vector<ConfigObject> ConfigObject::objects(std::string_view key, std::int64_t most_entries) {
  const Json& value = require({key}, "a list of objects");
  if (!value.is_array() || value.size() > static_cast<std::size_t>(most_entries)) {
    fail_value(key, value, "a list of at most " + std::to_string(most_entries) + " objects");
  }
  std::vector<ConfigObject> result;
  for (std::size_t i = 0; i < value.size(); ++i) {
    result.emplace_back(value[i], where_, join(path_, key) + "[" + std::to_string(i) + "]");
  }
  return result;
}

void ConfigObject::know(Keys keys) {
  for (const std::string_view key : keys) known_.emplace(key);
}

bool ConfigObject::repeats_known(std::string_view key, const Json& value) const {
  if (!value.is_number_integer()) return false;
  const std::set<std::string> words = words_of_key(key);
  return std::ranges::any_of(known_, [&](const std::string& other) {
    return has(other) && *object_->find(other) == value && words_of_key(other) == words;
  });
}

std::vector<std::string> ConfigObject::left_out() const {
  std::vector<std::string> out = left_out_of(*object_);
  for (const char* part : {"attn_config", "ffn_config", "linear_attn_config"}) {
    const auto found = object_->find(part);
    if (found == object_->end() || !found->is_object()) continue;
    for (std::string& one : left_out_of(*found)) {
      if (std::ranges::find(out, one) == out.end()) out.push_back(std::move(one));
    }
  }
  return out;
}

std::vector<std::string> ConfigObject::finish(std::int64_t layers) const {
  std::vector<std::string> noted;
  const std::vector<std::string> spellings(known_.begin(), known_.end());
  for (const auto& [key, value] : object_->items()) {
    // Null, false, and none of something that nobody asked for.
    if (known_.contains(key) || value.is_null() || value == Json(false) || value == Json(0))
      continue;
    if (is_irrelevant(key)) continue;
    if (is_empty(value) || repeats_known(key, value)) {
      noted.push_back(key);
      continue;
    }
    const bool may_change_shapes = (looks_like_shape(key) && !is_word(value)) ||
                                   is_one_per_layer(key, value, layers) ||
                                   is_list_of_objects(value) || !slip_of(key, spellings).empty();
    if (!may_change_shapes) {
      noted.push_back(key);
      continue;
    }
    throw InputError({.where = where_,
                      .problem = "config key '" + join(path_, key) + "' (" + shorten(value) +
                                 ") may change tensor shapes and Placet does not know it for this "
                                 "model family (ignore it with --ignore-key)",
                      .nearest = meant_by(key, spellings)});
  }
  return noted;
}

}  // namespace placet
