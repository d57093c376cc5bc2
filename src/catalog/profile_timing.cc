// What an engine does with time: facts of EngineTiming (docs/formats.md).
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "catalog/profile_facts.h"
#include "profile/profile.h"

namespace placet {
namespace {

struct TimingFact {
  std::string key;
  std::function<void(const Reader&, EngineTiming&)> set;
};

TimingFact number(const char* key, double EngineTiming::*field) {
  return {key, [field](const Reader& value, EngineTiming& t) {
            t.*field = value.number({0, 100'000});
          }};
}

TimingFact duration(const char* key, Seconds EngineTiming::*field) {
  return {key, [field](const Reader& value, EngineTiming& t) {
            t.*field = microseconds(value.number({0, 100'000'000}));
          }};
}

TimingFact flag(const char* key, bool EngineTiming::*field) {
  return {key, [field](const Reader& value, EngineTiming& t) { t.*field = value.flag(); }};
}

TimingFact count(const char* key, std::int64_t EngineTiming::*field) {
  return {key, [field](const Reader& value, EngineTiming& t) {
            t.*field = value.whole({0, 10'000});
          }};
}

OpKind op_kind(const Reader& word) {
  const auto kind = op_kind_named(word.text());
  if (!kind) word.fail("is no operator", "a kind of operator such as linear or norm");
  return *kind;
}

void set_fused(const Reader& value, EngineTiming& timing) {
  timing.fused.clear();
  for (const Reader& chain : value.items()) {
    std::vector<OpKind>& kinds = timing.fused.emplace_back();
    for (const Reader& word : chain.items()) kinds.push_back(op_kind(word));
    if (kinds.size() < 2) chain.fail("is no chain", "two operators or more");
  }
}

void set_overlaps(const Reader& value, EngineTiming& timing) {
  std::vector<std::string> words;
  words.reserve(kOverlapCount);
  for (int i = 0; i < kOverlapCount; ++i) {
    words.emplace_back(name_of(static_cast<Overlap>(i)));
  }
  timing.overlaps = 0;
  for (const Reader& word : value.items()) {
    timing.overlaps = static_cast<std::uint16_t>(timing.overlaps | 1U << word.one_of(words));
  }
}

// "unfused", or the name of a kernel that devices have figures of.
void set_attention(const Reader& value, EngineTiming& timing) {
  const std::string word = value.text();
  timing.attention_kernel = word == "unfused" ? std::string() : word;
}

/// Two figures, forward and backward.
std::pair<double, double> both_ways(const Reader& value) {
  const std::vector<Reader> figures = value.items();
  if (figures.size() != 2) value.fail("is no pair", "a figure forward and one backward");
  return {figures[0].number({0, 10'000}), figures[1].number({0, 10'000})};
}

void set_steps(const Reader& value, EngineTiming& timing) {
  timing.steps = {};
  for (const auto& [word, entry] : value.members()) {
    const auto kind = op_kind_named(word);
    if (!kind) entry.fail("is of no operator", "a kind of operator such as norm or rotary");
    entry.allow({"bytes", "launches"});
    const auto bytes = both_ways(entry.at("bytes"));
    const auto launches = both_ways(entry.at("launches"));
    timing.steps[static_cast<std::size_t>(*kind)] = {
        .forward_bytes = bytes.first,
        .backward_bytes = bytes.second,
        .forward_launches = std::lround(launches.first),
        .backward_launches = std::lround(launches.second)};
  }
}

const std::vector<TimingFact>& timing_facts() {
  static const std::vector<TimingFact> kFacts = {
      {"fused_kernels", set_fused},
      {"operators_in_steps", set_steps},
      {"attention_kernel", set_attention},
      {"overlaps", set_overlaps},
      number("score_bytes_forward", &EngineTiming::score_bytes_forward),
      number("score_bytes_backward", &EngineTiming::score_bytes_backward),
      number("dropped_score_bytes", &EngineTiming::dropped_score_bytes),
      number("logit_bytes", &EngineTiming::logit_bytes),
      number("update_extra_bytes", &EngineTiming::update_extra_bytes),
      flag("update_in_steps", &EngineTiming::update_in_steps),
      number("clip_bytes", &EngineTiming::clip_bytes),
      duration("host_us_per_launch", &EngineTiming::host_per_launch),
      duration("host_us_per_collective", &EngineTiming::host_per_collective),
      duration("host_us_per_pass", &EngineTiming::host_per_pass),
      duration("host_us_per_step", &EngineTiming::host_per_step),
      count("extra_launches", &EngineTiming::extra_launches),
      count("routing_launches", &EngineTiming::routing_launches),
      count("launches_per_expert", &EngineTiming::launches_per_expert),
      {"host_us_per_expert_launch",
       [](const Reader& value, EngineTiming& t) {
         t.host_per_expert_launch = microseconds(value.number({0, 100'000}));
       }},
      number("cast_bytes", &EngineTiming::cast_bytes),
      number("linear_cast_bytes", &EngineTiming::linear_cast_bytes),
      flag("norm_casts", &EngineTiming::norm_casts),
      flag("narrow_head", &EngineTiming::narrow_head),
      {"scan_chunk",
       [](const Reader& value, EngineTiming& t) {
         t.scan_chunk = value.whole({1, 1'000'000});
       }},
      number("gathered_bytes", &EngineTiming::gathered_bytes),
      number("gradient_bytes", &EngineTiming::gradient_bytes),
      count("narrow_launches", &EngineTiming::narrow_launches),
      count("launches_per_member", &EngineTiming::launches_per_member),
      flag("broadcasts_updates", &EngineTiming::broadcasts_updates),
      number("flattened_bytes", &EngineTiming::flattened_bytes),
      flag("gathers_after_reductions", &EngineTiming::gathers_after_reductions),
      flag("exchanges_once_per_domain", &EngineTiming::exchanges_once_per_domain),
      flag("sorts_on_arrival", &EngineTiming::sorts_on_arrival),
      flag("weighs_in_activation", &EngineTiming::weighs_in_activation),
      flag("waits_for_routing", &EngineTiming::waits_for_routing),
      flag("captures_launches", &EngineTiming::captures_launches),
      flag("captures_to_routing", &EngineTiming::captures_to_routing),
      flag("sends_block", &EngineTiming::sends_block),
      flag("plain_sends_block", &EngineTiming::plain_sends_block)};
  return kFacts;
}

std::vector<std::string> timing_keys() {
  std::vector<std::string> keys;
  for (const TimingFact& fact : timing_facts()) keys.push_back(fact.key);
  return keys;
}

}  // namespace

void read_timing(const Reader& reader, Profile& profile) {
  const auto object = reader.find("timing");
  if (!object) return;
  object->allow(timing_keys());
  for (const TimingFact& timing : timing_facts()) {
    const auto fact = object->find(timing.key);
    if (!fact) continue;
    fact->allow({"value", "source"});
    timing.set(fact->at("value"), profile.timing);
    note_fact(profile, "timing." + timing.key, fact->at("value").print(),
              fact->at("source").text());
  }
}

}  // namespace placet
