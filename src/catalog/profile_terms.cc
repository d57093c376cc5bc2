// An engine's own memory terms, messages and refusals.
#include <algorithm>
#include <array>
#include <set>

#include "catalog/job.h"
#include "catalog/profile_catalog.h"
#include "catalog/profile_facts.h"
#include "catalog/words.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr int kCollectiveCount = static_cast<int>(Collective::host_copy) + 1;
constexpr int kReduceOpCount = static_cast<int>(ReduceOp::min) + 1;
constexpr int kPhaseCount = static_cast<int>(Phase::update) + 1;

Amount read_amount(const Reader& reader) {
  if (!reader.is_whole()) return parse_amount(reader.text(), reader.where());
  return {.factor = Rational(reader.whole({0, INT64_MAX}))};
}

std::optional<bool> read_flag(const Reader& reader, std::string_view key) {
  const auto value = reader.find(key);
  return value ? std::optional(value->flag()) : std::nullopt;
}

Comparison read_comparison(const Reader& reader) {
  reader.allow({"relation", "left", "right"});
  const std::vector<std::string> relations = {"not_multiple", "above"};
  Comparison comparison;
  comparison.relation = static_cast<Comparison::Relation>(reader.at("relation").one_of(relations));
  comparison.left = read_amount(reader.at("left"));
  comparison.right = read_amount(reader.at("right"));
  return comparison;
}

// One cut, or a list of which any will do.
std::vector<Cut> read_cuts(const Reader& reader) {
  if (reader.is_text()) return {read_cut(reader)};
  std::vector<Cut> cuts;
  for (const Reader& item : reader.items()) cuts.push_back(read_cut(item));
  if (cuts.empty()) reader.fail("names no cut", "a cut, or a list of cuts");
  return cuts;
}

std::vector<Mode> read_modes(const Reader& reader) {
  std::vector<Mode> modes;
  for (const Reader& mode : reader.items()) {
    modes.push_back(read_enum<Mode>(mode, kModeCount, symbol_of));
  }
  if (modes.empty()) reader.fail("names no mode", "a list of modes");
  return modes;
}

// Of one axis: by state, its modes.
void read_states(const Reader& reader, When& when) {
  std::vector<std::string> names;
  names.reserve(4);
  for (int s = 0; s < 4; ++s) names.emplace_back(name_of(static_cast<State>(s)));
  reader.allow(names);
  for (std::size_t s = 0; s < names.size(); ++s) {
    const auto modes = reader.find(names[s]);
    if (!modes) continue;
    when.states.push_back({.state = static_cast<State>(s), .modes = read_modes(*modes)});
  }
  if (when.states.empty()) reader.fail("names no state", "states with their modes");
}

// The part of a condition that speaks of axes.
void read_axes(const Reader& reader, When& when) {
  if (const auto cut = reader.find("cut")) when.cuts = read_cuts(*cut);
  if (const auto above = reader.find("degree_above")) {
    when.degree_above = above->whole({0, 1'000'000'000});
  }
  when.absent = read_flag(reader, "absent").value_or(false);
  const auto state = reader.find("state");
  if (state || reader.has("modes")) {
    const State own = read_enum<State>(reader.at("state"), 4, [](State s) { return name_of(s); });
    when.states.push_back({.state = own, .modes = read_modes(reader.at("modes"))});
  }
  if (const auto states = reader.find("states")) {
    if (state) reader.fail("has both 'state' and 'states'", "one of the two");
    read_states(*states, when);
  }
}

// The names under a key; none without it.
std::vector<std::string> read_names(const Reader& reader, std::string_view key,
                                    const char* allowed) {
  std::vector<std::string> names;
  const auto list = reader.find(key);
  if (!list) return names;
  for (const Reader& name : list->items()) names.push_back(name.text());
  if (names.empty()) list->fail("names none", allowed);
  return names;
}

// What is kept, in which order axes stand, and what is recomputed.
void read_choices(const Reader& reader, When& when) {
  static const std::vector<std::string> kKinds = {"none", "full",    "every", "first",
                                                  "core", "modules", "policy"};
  static const std::vector<std::string> kTimes = {"none", "backward", "step"};
  if (const auto list = reader.find("recompute_beyond")) {
    for (const Reader& kind : list->items()) {
      when.recompute_beyond.push_back(static_cast<RecomputeKind>(kind.one_of(kKinds)));
    }
    if (when.recompute_beyond.empty()) list->fail("names none", list_words(kKinds));
  }
  if (const auto list = reader.find("keeps")) {
    for (const Reader& time : list->items()) {
      when.keeps.push_back(static_cast<Keep>(time.one_of(kTimes)));
    }
    if (when.keeps.empty()) list->fail("names none", list_words(kTimes));
  }
  if (const auto order = reader.find("order")) {
    order->allow({"outer", "inner"});
    when.order = {.outer = read_cut(order->at("outer")), .inner = read_cut(order->at("inner"))};
  }
}

// The part that asks what else a placement says than cuts and modes.
void read_placement(const Reader& reader, When& when) {
  when.states_stages = read_flag(reader, "states_stages");
  when.divides_checkpoints = read_flag(reader, "divides_checkpoints");
  when.uneven_stages = read_flag(reader, "uneven_stages");
  when.offloads_to_nvme = read_flag(reader, "offloads_to_nvme");
  when.exchanges_heads = read_flag(reader, "exchanges_heads");
  if (const auto offloads = reader.find("offloads")) {
    when.offloads = read_enum<State>(*offloads, 4, [](State s) { return name_of(s); });
  }
  when.partly = read_flag(reader, "partly").value_or(false);
  if (when.partly) reader.at("offloads");
  when.schedule_beyond = read_names(reader, "schedule_beyond", "names of schedules");
  when.exchange_beyond = read_names(reader, "exchange_beyond", "names of exchanges of attention");
  read_choices(reader, when);
}

void read_scopes(const Reader& scopes, When& when) {
  for (const Reader& scope : scopes.items()) {
    when.balance.push_back(parse_balance_loss(scope.text(), scope.where()));
  }
  if (when.balance.empty()) scopes.fail("names none", "scopes of a balance loss");
}

void read_formats(const Reader& reader, When& when) {
  if (const auto compute = reader.find("compute")) when.compute = read_dtype(*compute);
  if (const auto rest = reader.find("parameters")) when.parameters = read_dtype(*rest);
  if (const auto used = reader.find("gather")) when.gather = read_dtype(*used);
}

/// What is asked of the model that is trained.
void read_model(const Reader& reader, When& when) {
  when.has_experts = read_flag(reader, "has_experts");
  when.shares_embedding = read_flag(reader, "shares_embedding");
  when.trains_output = read_flag(reader, "trains_output");
  when.trains_embedding = read_flag(reader, "trains_embedding");
  when.has_adapters = read_flag(reader, "has_adapters");
  when.offsets_choice = read_flag(reader, "offsets_choice");
}

When read_when(const Reader& reader) {
  reader.allow({"cut",
                "degree_above",
                "absent",
                "state",
                "modes",
                "states",
                "first_stage",
                "last_stage",
                "accumulates",
                "recomputes",
                "compute",
                "parameters",
                "gather",
                "clips",
                "scales_loss",
                "has_experts",
                "shares_embedding",
                "trains_output",
                "trains_embedding",
                "has_adapters",
                "offsets_choice",
                "balance_loss",
                "drops_tokens",
                "states_stages",
                "uneven_stages",
                "compares",
                "recomputes_some",
                "recomputes_every",
                "offloads_to_nvme",
                "offloads",
                "partly",
                "divides_checkpoints",
                "exchanges_heads",
                "schedule_beyond",
                "exchange_beyond",
                "recompute_beyond",
                "keeps",
                "order",
                "optimizers"});
  if (reader.json().empty()) reader.fail("says nothing", "at least one condition");
  When when;
  read_axes(reader, when);
  when.first_stage = read_flag(reader, "first_stage");
  when.last_stage = read_flag(reader, "last_stage");
  when.accumulates = read_flag(reader, "accumulates");
  when.recomputes = read_flag(reader, "recomputes");
  when.recomputes_some = read_flag(reader, "recomputes_some");
  when.recomputes_every = read_flag(reader, "recomputes_every");
  read_formats(reader, when);
  when.clips = read_flag(reader, "clips");
  when.drops_tokens = read_flag(reader, "drops_tokens");
  if (const auto scopes = reader.find("balance_loss")) read_scopes(*scopes, when);
  when.optimizers = read_names(reader, "optimizers", "names of optimizers");
  when.scales_loss = read_flag(reader, "scales_loss");
  read_model(reader, when);
  read_placement(reader, when);
  if (const auto compares = reader.find("compares")) when.compares = read_comparison(*compares);
  return when;
}

std::vector<When> read_conditions(const Reader& reader) {
  std::vector<When> conditions;
  const auto when = reader.find("when");
  if (!when) return conditions;
  if (when->is_object()) return {read_when(*when)};
  for (const Reader& item : when->items()) conditions.push_back(read_when(item));
  return conditions;
}

InstantSet read_instants(const Reader& reader) {
  const auto spell = [](Instant instant) { return name_of(instant); };
  if (reader.is_text()) {
    const std::vector<std::string> words = {"all"};
    reader.one_of(words);
    return kEveryInstant;
  }
  InstantSet instants = 0;
  for (const Reader& item : reader.items()) {
    instants |= bit_of(read_enum<Instant>(item, kInstantCount, spell));
  }
  if (instants == 0) reader.fail("names no instant", "\"all\" or a list of instants");
  return instants;
}

EngineMemory read_term(const Reader& reader) {
  reader.allow(
      {"what", "category", "instants", "bytes", "blocks", "when", "in_reserved", "source"});
  EngineMemory term;
  term.category = read_enum<MemoryCategory>(reader.at("category"), kMemoryCategoryCount,
                                            [](MemoryCategory c) { return name_of(c); });
  term.what = reader.at("what").text();
  term.instants = read_instants(reader.at("instants"));
  term.bytes = read_amount(reader.at("bytes"));
  if (const auto blocks = reader.find("blocks")) term.blocks = read_amount(*blocks);
  term.in_reserved = read_flag(reader, "in_reserved").value_or(true);
  term.when = read_conditions(reader);
  term.source = reader.at("source").text();
  return term;
}

// One part of a message's group: a word, or a cut.
void add_to_group(const Reader& over, EngineMessage& message) {
  std::vector<std::string> words = {"all",         "owners",   "experts",
                                    "cut_experts", "instance", "data_owners"};
  const std::size_t cuts = words.size();
  for (int c = 0; c < kCutCount; ++c) words.emplace_back(name_of(static_cast<Cut>(c)));
  const std::size_t word = over.one_of(words);
  message.over_all = message.over_all || word == 0;
  message.over_owners = message.over_owners || word == 1;
  message.over_experts = message.over_experts || word == 2;
  message.over_cut_experts = message.over_cut_experts || word == 3;
  message.over_instance = message.over_instance || word == 4;
  message.over_data_owners = message.over_data_owners || word == 5;
  if (word >= cuts) message.over.push_back(static_cast<Cut>(word - cuts));
}

// Over which axes a message goes: one part, or the union of several.
void read_group(const Reader& over, EngineMessage& message) {
  if (over.is_text()) return add_to_group(over, message);
  const std::vector<Reader> parts = over.items();
  if (parts.empty()) over.fail("names no axis", "words or cuts");
  for (const Reader& part : parts) add_to_group(part, message);
}

EngineMessage read_message(const Reader& reader) {
  reader.allow({"what", "collective", "op", "state", "dtype", "phase", "over", "payload_elements",
                "count", "when", "source"});
  EngineMessage message;
  message.what = reader.at("what").text();
  message.collective = read_enum<Collective>(reader.at("collective"), kCollectiveCount,
                                             [](Collective c) { return name_of(c); });
  if (const auto op = reader.find("op")) {
    message.op = read_enum<ReduceOp>(*op, kReduceOpCount, [](ReduceOp o) { return name_of(o); });
  }
  if (const auto state = reader.find("state")) {
    message.state = read_enum<State>(*state, 4, [](State s) { return name_of(s); });
  }
  message.dtype = read_dtype(reader.at("dtype"));
  message.phase =
      read_enum<Phase>(reader.at("phase"), kPhaseCount, [](Phase p) { return name_of(p); });
  read_group(reader.at("over"), message);
  if (const auto payload = reader.find("payload_elements")) {
    message.payload_elements = read_amount(*payload);
  }
  if (const auto count = reader.find("count")) message.count = read_amount(*count);
  message.when = read_conditions(reader);
  message.source = reader.at("source").text();
  return message;
}

Refusal read_refusal(const Reader& reader) {
  reader.allow({"what", "cure", "when", "source"});
  Refusal refusal;
  refusal.what = reader.at("what").text();
  refusal.cure = reader.at("cure").text();
  refusal.when = read_conditions(reader);
  if (refusal.when.empty()) {
    reader.fail("refuses everything", "the key 'when' with at least one condition");
  }
  refusal.source = reader.at("source").text();
  return refusal;
}

bool is_noted(const std::vector<Fact>& facts, const std::string& key, std::string_view value) {
  return std::ranges::any_of(
      facts, [&](const Fact& fact) { return fact.key == key && fact.value == value; });
}

// Takes out of `entries` the one that `item` names, if it says "remove": true. A list that removed
// it before may say so again.
template <class Entry>
void remove_entry(const Reader& item, std::vector<Entry>& entries,
                  typename std::vector<Entry>::iterator entry, bool was_removed) {
  item.allow({"what", "remove", "source"});
  if (entry == entries.end() && !was_removed) {
    item.at("what").fail("is not inherited", "an inherited entry");
  }
  if (item.at("remove").flag() && entry != entries.end()) entries.erase(entry);
}

// What is noted of an entry: its keys but its name and its source.
std::string noted(const Reader& item) {
  Json value = item.json();
  value.erase("source");
  value.erase("what");
  return value.dump();
}

// Lays one entry of the list `key` over `entries`.
template <class Entry, class Read>
void lay_entry_over(const Reader& item, std::string_view key, std::vector<Entry>& entries,
                    Read read, std::vector<Fact>& facts) {
  const std::string what = item.at("what").text();
  const std::string fact = std::string(key) + "." + what;
  const auto it = std::ranges::find(entries, what, &Entry::what);
  const bool was_removed = is_noted(facts, fact, "removed");
  std::erase_if(facts, [&](const Fact& f) { return f.key == fact; });
  if (item.has("remove")) {
    remove_entry(item, entries, it, was_removed);
    facts.push_back({fact, "removed", item.at("source").text()});
    return;
  }
  Entry entry = read(item);
  facts.push_back({fact, noted(item), entry.source});
  if (it == entries.end()) {
    entries.push_back(std::move(entry));
  } else {
    *it = std::move(entry);
  }
}

// Lays the entries of the list `key` over `entries`: known by `what`, replaced, appended or
// removed.
template <class Entry, class Read>
void lay_over(const Reader& reader, std::string_view key, std::vector<Entry>& entries, Read read,
              std::vector<Fact>& facts) {
  const auto list = reader.find(key);
  if (!list) return;
  std::set<std::string> seen;
  for (const Reader& item : list->items()) {
    if (!seen.insert(item.at("what").text()).second) {
      item.at("what").fail("is given twice", "each entry once");
    }
    lay_entry_over(item, key, entries, read, facts);
  }
}

}  // namespace

void read_memory(const Reader& reader, Profile& profile) {
  lay_over(reader, "memory", profile.memory, read_term, profile.facts);
}

void read_messages(const Reader& reader, Profile& profile) {
  lay_over(reader, "messages", profile.messages, read_message, profile.facts);
}

void read_refusals(const Reader& reader, Profile& profile) {
  lay_over(reader, "refusals", profile.refusals, read_refusal, profile.facts);
}

}  // namespace placet
