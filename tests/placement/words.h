// A small vocabulary for tests, in the terms of the theory: names are made up where it helps to see
// that they carry no meaning.
#pragma once

#include <string>

#include "placement/grammar.h"
#include "placement/strategy.h"

namespace placet::testing {

inline PartialHow modes(std::optional<Mode> parameters, std::optional<Mode> optimizer,
                        std::optional<Mode> gradients,
                        std::optional<Mode> activations = std::nullopt) {
  PartialHow partial;
  partial.modes = {parameters, optimizer, gradients, activations};
  return partial;
}

inline PartialHow cut(Cut cut, std::optional<Mode> parameters = std::nullopt) {
  PartialHow partial;
  partial.cut = cut;
  partial.modes[0] = parameters;
  return partial;
}

inline Strategy strategy(std::string name, PartialHow sets, PartialHow suggests,
                         std::vector<ClassPart> classes = {}) {
  return {.name = std::move(name), .meaning = {sets, suggests, std::move(classes)}};
}

inline Realisation realisation(Realisation::Kind kind, std::string name, std::size_t least = 0,
                               std::size_t most = 0) {
  Realisation word{
      .kind = kind, .name = std::move(name), .least_arguments = least, .most_arguments = most};
  word.meaning.sets.cut = kind == Realisation::Kind::schedule ? Cut::layer : Cut::sequence;
  return word;
}

/// whole, optimizer-sharded, grads-sharded, all-sharded: on a batch axis; kept: all-sharded that
/// keeps gathers; tp, ep: as everywhere; experts-whole: a batch cut for experts alone; host-inputs:
/// checkpoints on the host; swept: a sequence cut that suggests how attention works.
inline Vocabulary vocabulary() {
  using enum Mode;
  const PartialHow batch = cut(Cut::batch);
  PartialHow kept = modes(sharded_gather, sharded, sharded);
  kept.keep = Keep::backward;
  PartialHow swept = cut(Cut::sequence);
  PartialHow rounds;
  rounds.attention = RealisationWord{"ring", {}};
  rounds.schedule = RealisationWord{"in-turn", {}};
  PartialHow on_host;
  on_host.modes[3] = offloaded;
  Vocabulary words;
  words.strategies = {
      strategy("whole", modes(replicated, replicated, replicated), batch),
      strategy("optimizer-sharded", modes(replicated, sharded, replicated), batch),
      strategy("grads-sharded", modes(replicated, sharded, sharded), batch),
      strategy("all-sharded", modes(sharded_gather, sharded, sharded), batch),
      strategy("kept", kept, batch),
      strategy("tp", cut(Cut::tensor, sharded), {}),
      strategy("ep", {}, batch, {{TensorClass::experts, cut(Cut::expert, sharded), {}}}),
      strategy("experts-whole", {}, {}, {{TensorClass::experts, cut(Cut::batch), {}}}),
      strategy("host-inputs", {}, {}, {{Checkpoints{}, on_host, {}}}),
      strategy("swept", swept, rounds)};
  words.realisations = {realisation(Realisation::Kind::schedule, "in-turn"),
                        realisation(Realisation::Kind::schedule, "looped", 1, 2),
                        realisation(Realisation::Kind::attention, "ring"),
                        realisation(Realisation::Kind::attention, "gather")};
  return ordered(words);
}

inline Placement parse(std::string_view text) { return parse_placement(text, vocabulary()); }
inline std::string print(const Placement& placement) {
  return print_placement(placement, vocabulary());
}

}  // namespace placet::testing
