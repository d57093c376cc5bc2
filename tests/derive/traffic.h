// Jobs written in the placement grammar, and their communication as lines of text that a test can
// state whole:
//
//   forward all_gather bf16 tp 512x4 attention.norm.output
//
// phase, collective (with its op where that is not a sum), format, axes (with the size of the group
// where that is a part of them), bytes of one call x calls per step, what.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "catalog/profile_catalog.h"
#include "catalog/strategy_catalog.h"
#include "derive/derive.h"
#include "derive/small_llama.h"
#include "placement/grammar.h"

namespace placet {

using Lines = std::vector<std::string>;
using Chosen = std::function<bool(const CommunicationTerm&)>;

inline const Catalog& repository_data() {
  static const Catalog catalog{PLACET_SOURCE_DIR "/data"};
  return catalog;
}

inline const StrategyCatalog& strategies() {
  static const StrategyCatalog loaded = load_strategies(repository_data());
  return loaded;
}

/// Hidden 16, 4 heads of 4, 2 kv heads, a gated MLP of 32, a vocabulary of 64: nothing in it needs
/// padding or replication up to a degree of 2.
inline Architecture wide_architecture(int blocks) {
  Architecture out = small_architecture(blocks);
  out.hidden = 16;
  out.embedding.vocabulary = 64;
  out.embedding.width = 16;
  auto& attention = std::get<Attention>(out.shapes[0][0].branches[0].mixer);
  attention.heads = 4;
  attention.kv_heads = 2;
  std::get<Mlp>(out.shapes[0][1].branches[0].mixer).width = 32;
  return out;
}

inline Attention& attention_in(Architecture& architecture) {
  return std::get<Attention>(architecture.shapes[0][0].branches[0].mixer);
}

/// The same blocks with 4 experts of width 8 in place of the MLP, each token visiting 2 of them.
inline Architecture expert_architecture(int blocks) {
  Architecture out = wide_architecture(blocks);
  Moe moe{.experts = 4, .experts_per_token = 2};
  moe.router.weight = "router";
  moe.expert = {.width = 8, .gated = true};
  moe.expert.gate.weight = "expert.gate";
  moe.expert.up.weight = "expert.up";
  moe.expert.down.weight = "expert.down";
  out.shapes[0][1].branches[0].mixer = moe;
  return out;
}

/// A job of the plain theory: sequences of `sequence` tokens, one sample per micro-batch.
inline Job written_job(Model model, const std::string& placement, std::int64_t sequence,
                       std::int64_t global) {
  Job job = plain_job(std::move(model), {}, sequence, global);
  job.placement = parse_placement(placement, strategies().vocabulary);
  job.schedule = schedule_of(strategies(), job.placement);
  job.attention = attention_of(strategies(), job.placement);
  return job;
}

/// The same with the profile of an engine, and its formats.
inline Job engine_job(const std::string& engine, Model model, const std::string& placement,
                      std::int64_t sequence, std::int64_t global) {
  Job job = written_job(std::move(model), placement, sequence, global);
  job.profile = load_profile(repository_data(), engine, "engine");
  job.precision = job.profile.precision;
  return job;
}

inline std::string axes_of(const Job& job, const CommunicationTerm& term) {
  std::string text;
  std::int64_t degree = 1;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    if ((term.axes >> a & 1U) == 0) continue;
    text += (text.empty() ? "" : "*") + std::string(job.placement.axes[a].axis.text());
    degree *= job.placement.axes[a].degree;
  }
  if (text.empty()) return "-";
  return degree == term.group ? text : text + "/" + std::to_string(term.group);
}

inline std::string line_of(const Job& job, const CommunicationTerm& term) {
  std::string text(name_of(term.phase));
  text += " " + std::string(name_of(term.collective));
  const bool odd = term.op == ReduceOp::max || term.op == ReduceOp::min;
  if (odd) text += "(" + std::string(name_of(term.op)) + ")";
  text += " " + std::string(name_of(term.dtype)) + " " + axes_of(job, term) + " ";
  text += std::to_string(in_bytes(term.payload)) + "x" + std::to_string(term.count);
  return text + " " + std::string(term.what);
}

/// The chosen terms of one stage, in their order.
inline Lines traffic(const Job& job, const Chosen& chosen, std::size_t stage = 0) {
  const Derivation derived = derive(job);
  Lines lines;
  for (const CommunicationTerm& term : derived.communication.at(stage).terms) {
    if (chosen(term)) lines.push_back(line_of(job, term));
  }
  return lines;
}

/// Choices: a state; a state of one kind of unit; a phase; a collective.
inline Chosen of_state(State state) {
  return [state](const CommunicationTerm& t) { return t.state == state; };
}
inline Chosen activations_of(std::string unit) {
  return [unit](const CommunicationTerm& t) {
    return t.state == State::activations && t.unit == unit;
  };
}
inline Chosen moves_states() {
  return
      [](const CommunicationTerm& t) { return t.state != State::activations && t.source.empty(); };
}
/// Messages that only an engine has.
inline Chosen of_engine() {
  return [](const CommunicationTerm& t) { return !t.source.empty(); };
}

/// Bytes sent per device and step with equal shares, exactly.
inline Rational sent_by(const Job& job, const Chosen& chosen, std::size_t stage = 0) {
  const Derivation derived = derive(job);
  Rational sum;
  for (const CommunicationTerm& term : derived.communication.at(stage).terms) {
    if (chosen(term)) sum += exact_sent(term);
  }
  return sum;
}

inline Model wide(int blocks) { return build_model(wide_architecture(blocks)); }

inline Lines of_block(const Job& job) { return traffic(job, activations_of("block")); }
inline Lines of_states(const Job& job, std::size_t stage = 0) {
  return traffic(job, moves_states(), stage);
}

}  // namespace placet
