#include "catalog/ordinary_decoder.h"

#include <cmath>
#include <cstdlib>

#include "catalog/hf_config.h"
#include "catalog/model_catalog.h"
#include "catalog/reader.h"
#include "model/build.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::string_view kWord = "decoder=";
constexpr std::int64_t kMostBlocks = 1024;
constexpr double kTolerance = 0.01;
/// Beyond what any shape of the rule has, and far from overflow.
constexpr std::int64_t kMostDecoder = 100'000'000'000'000;

struct NamedRule {
  DecoderRule rule;
  Json config;
  std::string where;
};

NamedRule load_rule(const Catalog& catalog) {
  const Document document =
      open_document(file_of(catalog, "decoders", "decoder", "ordinary", "MODEL"));
  const Reader reader(document);
  reader.allow({"schema", "name", "title", "source", "date", "head_size", "hidden_per_block",
                "blocks_in_steps_of", "grouped_from_blocks", "grouped_blocks_in_steps_of",
                "grouped_kv_heads", "ffn_per_hidden", "ffn_in_steps_of", "config"});
  const std::vector<std::string> schemas{"placet.decoder/1"};
  reader.at("schema").one_of(schemas);
  const auto whole = [&](const char* key) {
    return reader.at(key).whole({.least = 1, .greatest = 1 << 20});
  };
  return {
      .rule = {.head_size = whole("head_size"),
               .hidden_per_block = whole("hidden_per_block"),
               .step = whole("blocks_in_steps_of"),
               .grouped_from = whole("grouped_from_blocks"),
               .grouped_step = whole("grouped_blocks_in_steps_of"),
               .grouped_kv_heads = whole("grouped_kv_heads"),
               .ffn_per_hidden = whole("ffn_per_hidden"),
               .ffn_step = whole("ffn_in_steps_of"),
               .vocabulary =
                   reader.at("config").at("vocab_size").whole({.least = 1, .greatest = 1 << 24})},
      .config = reader.at("config").json(),
      .where = document.where + ": config"};
}

/// Of so many blocks, the one with the MLP that comes nearest to the parameters; none: not even the
/// narrowest MLP leaves room.
std::optional<DecoderShape> with_blocks(const DecoderRule& rule, std::int64_t blocks,
                                        std::int64_t parameters) {
  DecoderShape out{.blocks = blocks, .hidden = blocks * rule.hidden_per_block};
  out.heads = out.hidden / rule.head_size;
  if (out.heads < 1 || out.heads * rule.head_size != out.hidden) return std::nullopt;
  out.kv_heads = blocks < rule.grouped_from ? out.heads : rule.grouped_kv_heads;
  const std::int64_t h = out.hidden;
  // Queries and outputs, keys and values; two norms of a block and a last one; embedding and head.
  const std::int64_t attention = 2 * h * h + 2 * h * out.kv_heads * rule.head_size;
  const std::int64_t rest = blocks * (attention + 2 * h) + h + 2 * rule.vocabulary * h;
  const std::int64_t per_column = 3 * h * blocks;  // gate, up and down
  const std::int64_t columns = (parameters - rest + per_column / 2) / per_column;
  out.ffn = (columns + rule.ffn_step / 2) / rule.ffn_step * rule.ffn_step;
  if (out.ffn < rule.ffn_step) return std::nullopt;
  out.parameters = rest + per_column * out.ffn;
  const double missed = static_cast<double>(std::llabs(out.parameters - parameters));
  if (missed > kTolerance * static_cast<double>(parameters)) return std::nullopt;
  return out;
}

double distance_to_wanted(const DecoderRule& rule, const DecoderShape& shape) {
  return std::abs(static_cast<double>(shape.ffn) / static_cast<double>(shape.hidden) -
                  static_cast<double>(rule.ffn_per_hidden));
}

std::string note_of(std::string_view word, const DecoderShape& shape, const DecoderRule& rule) {
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  return std::string(word) + ": an ordinary decoder of " + number(shape.parameters) +
         " parameters, no published model: " + number(shape.blocks) + " blocks of " +
         number(shape.hidden) + ", " + number(shape.heads) + " heads of " + number(rule.head_size) +
         ", " + number(shape.kv_heads) + " of them for keys and values, " + "a gated MLP of " +
         number(shape.ffn) + ", " + number(rule.vocabulary) + " tokens";
}

}  // namespace

std::optional<DecoderShape> decoder_shape(const DecoderRule& rule, std::int64_t parameters) {
  std::optional<DecoderShape> best;
  if (parameters > kMostDecoder) return best;
  for (std::int64_t blocks = rule.step; blocks <= kMostBlocks;
       blocks += blocks < rule.grouped_from ? rule.step : rule.grouped_step) {
    const auto shape = with_blocks(rule, blocks, parameters);
    if (!shape) continue;
    if (!best || distance_to_wanted(rule, *shape) < distance_to_wanted(rule, *best)) best = shape;
  }
  return best;
}

std::optional<Model> ordinary_decoder(const Catalog& catalog, std::string_view word) {
  if (!word.starts_with(kWord)) return std::nullopt;
  const NamedRule named = load_rule(catalog);
  const auto parameters = parse_count(word.substr(kWord.size()));
  const auto shape =
      parameters ? decoder_shape(named.rule, *parameters) : std::optional<DecoderShape>();
  if (!shape) {
    throw InputError({.where = "MODEL",
                      .value = std::string(word),
                      .problem = "is no size of an ordinary decoder",
                      .allowed = "20M to 100T, such as decoder=7B or decoder=7e9"});
  }
  Json config = named.config;
  config["hidden_size"] = shape->hidden;
  config["num_hidden_layers"] = shape->blocks;
  config["num_attention_heads"] = shape->heads;
  config["num_key_value_heads"] = shape->kv_heads;
  config["intermediate_size"] = shape->ffn;
  Architecture architecture = read_hf_config(config, named.where, catalog);
  architecture.name = std::string(word);
  architecture.notes.push_back(note_of(word, *shape, named.rule));
  return build_model(architecture);
}

}  // namespace placet
