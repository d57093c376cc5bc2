// The facts of an engine that are one value each, as a table: key, member, allowed values.
#include <functional>
#include <utility>

#include "catalog/profile_catalog.h"
#include "catalog/profile_facts.h"
#include "catalog/training_catalog.h"
#include "catalog/words.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::int64_t kMostElements = 1'000'000'000'000;
constexpr std::int64_t kMostBytes = 1'000'000'000'000'000;
constexpr std::int64_t kMostPadding = 1'000'000'000;

// A fact: its key and how the value enters the profile.
struct ScalarFact {
  std::string key;
  std::function<void(const Reader&, Profile&)> set;
};
using ScalarFacts = std::vector<ScalarFact>;

ScalarFact flag(const char* key, bool Profile::*field) {
  return {key, [field](const Reader& value, Profile& p) { p.*field = value.flag(); }};
}

ScalarFact whole(const char* key, std::int64_t Profile::*field, WholeRange range) {
  return {key, [=](const Reader& value, Profile& p) { p.*field = value.whole(range); }};
}

template <class Enum>
ScalarFact word(const char* key, Enum Profile::*field, std::vector<std::string> words) {
  return {key, [field, words = std::move(words)](const Reader& value, Profile& p) {
            p.*field = static_cast<Enum>(value.one_of(words));
          }};
}

ScalarFact message_grain(const char* key, MessageGrain Profile::*field) {
  return word(key, field, {"unit", "everything", "bucket", "tensor"});
}

/// {"dtype": "int8", "constants": "fp32", "block": 8000}; without a block: one per row or column.
ScalarFact quantised(const char* key, std::optional<Quantised> Profile::*field, bool in_blocks) {
  return {key, [=](const Reader& value, Profile& p) {
            std::vector<std::string> keys = {"dtype", "constants"};
            if (in_blocks) keys.emplace_back("block");
            value.allow(keys);
            Quantised format{.dtype = read_dtype(value.at("dtype")),
                             .constants = read_dtype(value.at("constants"))};
            if (in_blocks) format.block = value.at("block").whole({1, kMostElements});
            p.*field = format;
          }};
}

void read_autocasts(const Reader& value, Profile& profile) {
  const std::vector<std::string> words = {"linear", "grouped_linear", "attention", "convolution"};
  profile.autocasts.clear();
  for (const Reader& kind : value.items()) {
    profile.autocasts.push_back(
        *op_kind_named(words[static_cast<std::size_t>(kind.one_of(words))]));
  }
}

ScalarFacts gradient_facts() {
  return {word("gradient_life", &Profile::gradient_life, {"resting", "growing"}),
          word("scatter_path", &Profile::scatter_path,
               {"reduce_scatter", "all_reduce_and_slice", "reduce_scatter_if_gathered"}),
          flag("layer_cut_defers_sharding", &Profile::layer_cut_defers_sharding),
          message_grain("gradient_grain", &Profile::gradient_grain),
          message_grain("update_grain", &Profile::update_grain),
          message_grain("gather_grain", &Profile::gather_grain),
          whole("bucket_elements", &Profile::bucket_elements, {0, kMostElements}),
          whole("bucket_elements_per_replica", &Profile::bucket_elements_per_replica,
                {0, kMostElements}),
          whole("bucket_bytes", &Profile::bucket_bytes, {0, kMostBytes}),
          whole("replica_bucket_bytes", &Profile::replica_bucket_bytes, {0, kMostBytes}),
          whole("first_bucket_bytes", &Profile::first_bucket_bytes, {0, kMostBytes}),
          word("bucket_ends", &Profile::bucket_ends, {"before", "after"}),
          flag("joins_inputs", &Profile::joins_inputs),
          flag("clips_by_default", &Profile::clips_by_default),
          {"reduce_over_sequence",
           [](const Reader& value, Profile& p) { p.reduce_over_sequence = read_dtype(value); }},
          quantised("quantised_gathers", &Profile::quantised_gathers, true),
          quantised("quantised_reductions", &Profile::quantised_reductions, false),
          flag("later_stages_use_one_bucket", &Profile::later_stages_use_one_bucket),
          message_grain("shared_gradient_grain", &Profile::shared_gradient_grain),
          flag("shared_gradients_whole", &Profile::shared_gradients_whole),
          flag("shared_gradients_as_computed", &Profile::shared_gradients_as_computed),
          flag("table_gradients_whole", &Profile::table_gradients_whole),
          flag("defers_scatter", &Profile::defers_scatter),
          flag("defers_as_reduced", &Profile::defers_as_reduced),
          flag("replicas_follow_scatter", &Profile::replicas_follow_scatter),
          flag("replicas_each_micro_batch", &Profile::replicas_each_micro_batch),
          word("gradient_hold", &Profile::gradient_hold, {"op", "unit", "micro_batch"}),
          flag("parts_stand_apart", &Profile::parts_stand_apart),
          flag("keeps_wide_inputs", &Profile::keeps_wide_inputs),
          {"autocasts", read_autocasts},
          flag("moments_like_parameters", &Profile::moments_like_parameters),
          flag("keeps_weight_copies", &Profile::keeps_weight_copies),
          flag("keeps_attention_result_once", &Profile::keeps_attention_result_once)};
}

ScalarFacts shard_facts() {
  const std::vector<std::string> grains = {"element", "row", "unit", "everything", "tensor"};
  return {word("grain", &Profile::grain, grains),
          {"gathered_grain",
           [grains](const Reader& value, Profile& p) {
             p.gathered_grain = static_cast<ShardGrain>(value.one_of(grains));
           }},
          flag("cuts_inside_few_experts", &Profile::cuts_inside_few_experts),
          whole("pad_elements", &Profile::pad_elements, {1, kMostPadding}),
          whole("pad_total_elements", &Profile::pad_total_elements, {1, kMostPadding}),
          word("flat_rest", &Profile::flat_rest, {"none", "parts", "copies"}),
          flag("parts_beside_whole", &Profile::parts_beside_whole),
          flag("joins_whole_updates", &Profile::joins_whole_updates),
          whole("align_elements", &Profile::align_elements, {1, kMostPadding}),
          whole("persistent_elements", &Profile::persistent_elements, {0, kMostElements}),
          flag("joins_ends", &Profile::joins_ends),
          whole("prefetch", &Profile::prefetch, {0, 1000}),
          whole("reuse_elements", &Profile::reuse_elements, {0, kMostElements}),
          whole("gather_bucket_elements", &Profile::gather_bucket_elements, {0, kMostElements}),
          whole("live_elements", &Profile::live_elements, {0, kMostElements}),
          flag("last_block_stays_gathered", &Profile::last_block_stays_gathered),
          flag("last_unit_stays_gathered", &Profile::last_unit_stays_gathered),
          word("stage_cut", &Profile::stage_cut, {"even", "weighed", "by_cost", "by_cost_late"}),
          whole("embedding_weight", &Profile::embedding_weight, {0, 1000}),
          whole("head_weight", &Profile::head_weight, {0, 1000})};
}

ScalarFact loss_workspace_fact() {
  return {"loss_workspace", [](const Reader& value, Profile& p) {
            p.loss_workspace.clear();
            const std::vector<std::string> words = internals_of(OpKind::loss);
            for (const Reader& item : value.items()) {
              p.loss_workspace.push_back(static_cast<int>(item.one_of(words)));
            }
          }};
}

// A step is {"appears": NAME, "bytes_per_logit": N} or {"vanishes": NAME} of one that has appeared.
LossStep read_loss_step(const Reader& step, const std::vector<LossStep>& before) {
  if (step.has("appears")) {
    step.allow({"appears", "bytes_per_logit"});
    return {.buffer = step.at("appears").text(),
            .appears = true,
            .bytes_per_logit = step.at("bytes_per_logit").whole({1, 64})};
  }
  step.allow({"vanishes"});
  LossStep result{.buffer = step.at("vanishes").text(), .appears = false};
  // The logits themselves stand there when the loss begins, in the compute format.
  bool known = result.buffer == "logits";
  if (known) result.bytes_per_logit = 2;
  for (const LossStep& other : before) {
    if (other.buffer != result.buffer) continue;
    known = other.appears;
    result.bytes_per_logit = other.bytes_per_logit;
  }
  if (!known) step.at("vanishes").fail("is not alive here", "a buffer that has appeared");
  return result;
}

ScalarFact loss_steps_fact(const char* key, std::vector<LossStep> Profile::*field) {
  return {key, [field](const Reader& value, Profile& p) {
            (p.*field).clear();
            for (const Reader& step : value.items()) {
              (p.*field).push_back(read_loss_step(step, p.*field));
            }
          }};
}

void read_resting(const Reader& value, Profile& profile) {
  profile.weights_rest_in.clear();
  for (const Reader& format : value.items()) profile.weights_rest_in.push_back(format.text());
}

void read_discards(const Reader& value, Profile& profile) {
  profile.discards.clear();
  for (const Reader& module : value.items()) {
    profile.discards.push_back(
        read_enum<Module>(module, kModuleCount, [](Module m) { return name_of(m); }));
  }
}

ScalarFacts compute_facts() {
  return {word("gathered_input", &Profile::gathered_input, {"shard", "whole"}),
          flag("residual_shares_gradient", &Profile::residual_shares_gradient),
          flag("rotates_in_place", &Profile::rotates_in_place),
          flag("repeats_kv_heads", &Profile::repeats_kv_heads),
          flag("drops_tokens", &Profile::drops_tokens),
          whole("vocabulary_multiple", &Profile::vocabulary_multiple, {1, 1'000'000}),
          flag("vocabulary_multiple_times_tensor_degree",
               &Profile::vocabulary_multiple_times_tensor_degree),
          flag("vocabulary_divides", &Profile::vocabulary_divides),
          loss_workspace_fact(),
          loss_steps_fact("loss_steps", &Profile::loss_steps),
          loss_steps_fact("loss_steps_cut", &Profile::loss_steps_cut),
          {"discards", read_discards},
          {"weights_rest_in", read_resting},
          flag("fuses_output_and_loss", &Profile::fuses_output_and_loss),
          flag("fuses_loss_sums", &Profile::fuses_loss_sums),
          flag("fuses_weight_gradient", &Profile::fuses_weight_gradient),
          flag("recompute_stops_early", &Profile::recompute_stops_early),
          flag("ring_carries_gradients", &Profile::ring_carries_gradients),
          flag("sends_boundary_in_parts", &Profile::sends_boundary_in_parts),
          word("token_dispatch", &Profile::token_dispatch,
               {"exchange", "gather", "whole_then_exchange", "exchange_once"})};
}

ScalarFacts allocator_facts() {
  return {flag("gathered_input_has_buffer", &Profile::gathered_input_has_buffer),
          flag("caches_blocks", &Profile::caches_blocks),
          flag("expandable_segments", &Profile::expandable_segments),
          flag("gathers_in_own_pool", &Profile::gathers_in_own_pool),
          flag("reduces_in_own_pool", &Profile::reduces_in_own_pool),
          flag("collective_buffers_return_late", &Profile::collective_buffers_return_late),
          flag("host_waits_at_sends", &Profile::host_waits_at_sends),
          whole("launch_queue", &Profile::launch_queue, {1, 1'000'000}),
          whole("launches_per_block", &Profile::launches_per_block, {0, 1'000'000})};
}

const ScalarFacts& scalar_facts() {
  static const ScalarFacts kFacts = [] {
    ScalarFacts all;
    for (const auto& part : {gradient_facts(), shard_facts(), compute_facts(), allocator_facts()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return kFacts;
}

// Messages in buckets need a size of bucket, whoever said that they go in buckets.
void check_buckets(const Reader& reader, const Profile& profile) {
  bool buckets = false;
  for (const MessageGrain grain : {profile.gradient_grain, profile.update_grain,
                                   profile.gather_grain, profile.shared_gradient_grain}) {
    buckets = buckets || grain == MessageGrain::bucket;
  }
  if (buckets && profile.bucket_elements == 0 && profile.bucket_bytes == 0) {
    throw InputError({.where = reader.where(),
                      .problem = "messages go in buckets, but neither 'bucket_elements' nor "
                                 "'bucket_bytes' is given"});
  }
}

}  // namespace

std::vector<std::string> scalar_keys() {
  std::vector<std::string> keys;
  for (const ScalarFact& fact : scalar_facts()) keys.push_back(fact.key);
  return keys;
}

void read_scalars(const Reader& reader, Profile& profile) {
  for (const ScalarFact& scalar : scalar_facts()) {
    const auto fact = reader.find(scalar.key);
    if (!fact) continue;
    fact->allow({"value", "source"});
    scalar.set(fact->at("value"), profile);
    note_fact(profile, scalar.key, fact->at("value").print(), fact->at("source").text());
  }
  check_buckets(reader, profile);
}

}  // namespace placet
