// What an engine keeps for backward, operator kind by operator kind.
#include "catalog/profile_catalog.h"
#include "catalog/profile_facts.h"
#include "catalog/words.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

constexpr int kSlots = 16;

std::vector<std::string> op_kind_words() {
  return words_of<OpKind>(kOpKindCount, [](OpKind kind) { return name_of(kind); });
}

// Positions as bits: a list of numbers, or "all".
std::uint16_t read_positions(const Reader& reader) {
  if (reader.is_text()) {
    const std::vector<std::string> all = {"all"};
    reader.one_of(all);
    return UINT16_MAX;
  }
  unsigned bits = 0;
  for (const Reader& item : reader.items()) bits |= 1U << item.whole({0, kSlots - 1});
  return static_cast<std::uint16_t>(bits);
}

std::uint16_t read_internals(const Reader& reader, OpKind kind) {
  const std::vector<std::string> words = internals_of(kind);
  unsigned bits = 0;
  for (const Reader& item : reader.items()) {
    if (words.empty()) item.fail("is not known", "no internals: this kind has none");
    bits |= 1U << item.one_of(words);
  }
  return static_cast<std::uint16_t>(bits);
}

SavedSlots read_slots(const Reader& reader, OpKind kind) {
  reader.allow({"inputs", "outputs", "internals", "source"});
  SavedSlots slots;
  if (const auto inputs = reader.find("inputs")) slots.inputs = read_positions(*inputs);
  if (const auto outputs = reader.find("outputs")) slots.outputs = read_positions(*outputs);
  if (const auto internals = reader.find("internals")) {
    slots.internals = read_internals(*internals, kind);
  }
  return slots;
}

}  // namespace

std::vector<std::string> internals_of(OpKind kind) {
  switch (kind) {
    case OpKind::norm:
      return {"statistics", "input_fp32", "normalized", "normalized_fp32"};
    case OpKind::rotary:
      return {"queries_fp32", "keys_fp32"};
    case OpKind::attention:
      return {"keys_expanded", "values_expanded",      "logsumexp", "scores", "probabilities",
              "dropout_mask",  "probabilities_dropped"};
    case OpKind::gated_activation:
      return {"activated"};
    case OpKind::dropout:
      return {"dropout_mask"};
    case OpKind::router:
      return {"probabilities"};
    case OpKind::loss:
      return {"logits_fp32", "probabilities", "gradient_fp32", "gradient", "max", "sum", "target"};
    case OpKind::embedding:
    case OpKind::position:
    case OpKind::linear:
    case OpKind::grouped_linear:
    case OpKind::bias:
    case OpKind::activation:
    case OpKind::multiply:
    case OpKind::residual_add:
    case OpKind::dispatch:
    case OpKind::combine:
    case OpKind::convolution:
    case OpKind::scan:
      return {};
  }
  return {};
}

namespace {

RecomputePolicy read_policy(const std::string& name, const Reader& reader) {
  reader.allow({"saves", "every", "keeps_unread", "source"});
  RecomputePolicy policy{.name = name};
  const Reader saves = reader.at("saves");
  saves.allow(op_kind_words());
  for (const auto& [word, entry] : saves.members()) {
    const OpKind kind = *op_kind_named(word);
    policy.keeps[static_cast<std::size_t>(kind)] = read_slots(entry, kind);
  }
  if (const auto every = reader.find("every")) policy.every = every->whole({1, 1000});
  if (const auto unread = reader.find("keeps_unread")) policy.keeps_unread = unread->flag();
  return policy;
}

}  // namespace

void read_policies(const Reader& reader, Profile& profile) {
  const auto policies = reader.find("recompute_policies");
  if (!policies) return;
  for (const auto& [name, entry] : policies->members()) {
    const RecomputePolicy policy = read_policy(name, entry);
    std::erase_if(profile.policies,
                  [&](const RecomputePolicy& p) { return p.name == policy.name; });
    profile.policies.push_back(policy);
    Json value = entry.json();
    const std::string source = entry.at("source").text();
    value.erase("source");
    note_fact(profile, "recompute_policies." + name, value.dump(), source);
  }
}

namespace {

void read_saved_table(const Reader& reader, const std::string& key, Profile& profile,
                      SavedTable& table) {
  const auto saves = reader.find(key);
  if (!saves) return;
  saves->allow(op_kind_words());
  for (const auto& [name, entry] : saves->members()) {
    const OpKind kind = *op_kind_named(name);
    table[static_cast<std::size_t>(kind)] = read_slots(entry, kind);
    Json value = entry.json();
    const std::string source = entry.at("source").text();
    value.erase("source");
    note_fact(profile, (key + ".").append(name), value.dump(), source);
  }
}

}  // namespace

void read_saves(const Reader& reader, Profile& profile) {
  read_saved_table(reader, "saves", profile, profile.saved);
  read_saved_table(reader, "inner_gradients", profile, profile.inner_gradients);
}

}  // namespace placet
