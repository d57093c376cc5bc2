#include "execute/meanings.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <sstream>

#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

struct Word {
  std::string_view name;
  std::function<std::string(const Meanings&)> get;
  std::function<bool(Meanings&, const std::string&)> set;  // false: no such value
  std::string_view allowed;
};

std::string text_of(double value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

bool read_number(const std::string& text, double& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && value - value == 0;
}

constexpr std::array<std::pair<std::string_view, Meanings::Activation>, 5> kActivations = {{
    {"gelu", Meanings::Activation::gelu},
    {"gelu-tanh", Meanings::Activation::gelu_tanh},
    {"silu", Meanings::Activation::silu},
    {"relu", Meanings::Activation::relu},
    {"relu-squared", Meanings::Activation::relu_squared},
}};

Word number(std::string_view name, double Meanings::*member, double least, double most,
            std::string_view allowed) {
  return {name, [member](const Meanings& m) { return text_of(m.*member); },
          [member, least, most](Meanings& m, const std::string& text) {
            double value = 0;
            if (!read_number(text, value) || value < least || value > most) return false;
            m.*member = value;
            return true;
          },
          allowed};
}

Word choice(std::string_view name, bool Meanings::*member) {
  return {name, [member](const Meanings& m) { return std::string(m.*member ? "yes" : "no"); },
          [member](Meanings& m, const std::string& text) {
            m.*member = text == "yes";
            return text == "yes" || text == "no";
          },
          "yes or no"};
}

Word activation_word() {
  return {"activation",
          [](const Meanings& m) {
            const auto* found =
                std::ranges::find(kActivations, m.activation,
                                  &std::pair<std::string_view, Meanings::Activation>::second);
            return std::string(found->first);
          },
          [](Meanings& m, const std::string& text) {
            const auto* found = std::ranges::find(
                kActivations, text, &std::pair<std::string_view, Meanings::Activation>::first);
            if (found == kActivations.end()) return false;
            m.activation = found->second;
            return true;
          },
          "gelu, gelu-tanh, silu, relu or relu-squared"};
}

Word whole(std::string_view name, const std::function<std::int64_t(const Meanings&)>& get,
           const std::function<void(Meanings&, std::int64_t)>& set) {
  return {name, [get](const Meanings& m) { return std::to_string(get(m)); },
          [set](Meanings& m, const std::string& text) {
            std::int64_t value = 0;
            const char* end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data(), end, value);
            if (error != std::errc() || stop != end || value < 1) return false;
            set(m, value);
            return true;
          },
          "a whole number from 1"};
}

const std::vector<Word>& words() {
  constexpr std::string_view kPart = "a number from 0 to 1";
  constexpr std::string_view kPositive = "a number above 0";
  constexpr double kLeast = 1e-30;
  constexpr double kMost = 1e9;
  static const std::vector<Word> kWords = {
      activation_word(),
      number("norm-epsilon", &Meanings::norm_epsilon, kLeast, 1, kPositive),
      number("rotary-base", &Meanings::rotary_base, 1, 1e12, "a number from 1"),
      choice("rotary-pairs", &Meanings::rotary_pairs),
      choice("scaled-attention", &Meanings::scales_attention),
      number("score-cap", &Meanings::score_cap, kLeast, kMost, kPositive),
      number("logit-cap", &Meanings::logit_cap, kLeast, kMost, kPositive),
      number("dropout", &Meanings::dropout, 0, 0.99, "a number from 0 to 0.99"),
      choice("weights-among-chosen", &Meanings::routes_among_chosen),
      number("balance-weight", &Meanings::balance_weight, 0, 1, kPart),
      number("prediction-weight", &Meanings::prediction_weight, 0, 1, kPart),
      number("clip", &Meanings::clip, kLeast, kMost, kPositive),
      number("learning-rate", &Meanings::learning_rate, 0, 1, kPart),
      number("first-decay", &Meanings::first_decay, 0, 0.999999, "a number from 0 to 0.999999"),
      number("second-decay", &Meanings::second_decay, 0, 0.999999, "a number from 0 to 0.999999"),
      number("update-epsilon", &Meanings::update_epsilon, kLeast, 1, kPositive),
      choice("steps-by-sign", &Meanings::steps_by_sign),
      number("weight-decay", &Meanings::weight_decay, 0, 1, kPart),
      number("loss-scale", &Meanings::loss_scale, kLeast, kMost, kPositive),
      whole(
          "scale-interval", [](const Meanings& m) { return m.scale_interval; },
          [](Meanings& m, std::int64_t n) { m.scale_interval = n; }),
      whole(
          "seed", [](const Meanings& m) { return static_cast<std::int64_t>(m.seed); },
          [](Meanings& m, std::int64_t n) { m.seed = static_cast<std::uint64_t>(n); })};
  return kWords;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

void set_meaning(Meanings& meanings, const std::string& text) {
  const std::size_t sign = text.find('=');
  const std::string name = text.substr(0, sign);
  const auto word = std::ranges::find(words(), name, &Word::name);
  if (sign == std::string::npos || word == words().end()) {
    std::vector<std::string> names;
    names.reserve(words().size());
    for (const Word& w : words()) names.emplace_back(w.name);
    throw InputError({.where = "--meaning",
                      .value = text,
                      .problem = sign == std::string::npos ? "gives no value" : "is no meaning",
                      .allowed = "NAME=VALUE with one of " + joined(names),
                      .nearest = nearest(name, names)});
  }
  const std::string value = text.substr(sign + 1);
  if (!word->set(meanings, value)) {
    throw InputError({.where = "--meaning " + name,
                      .value = value,
                      .problem = "is not possible",
                      .allowed = std::string(word->allowed)});
  }
}

std::vector<std::string> words_of(const Meanings& meanings) {
  std::vector<std::string> all;
  all.reserve(words().size());
  for (const Word& w : words()) all.push_back(std::string(w.name) + "=" + w.get(meanings));
  if (meanings.corpus != nullptr) all.push_back(kCorpusWord + name_with_digest(*meanings.corpus));
  return all;
}

void read_updates(Meanings& meanings, const Reference& reference) {
  meanings.updates.clear();
  meanings.updates.reserve(reference.rules.size());
  for (const UpdateRule& rule : reference.rules) {
    const std::vector<std::string>& states = rule.states;
    if (states.empty()) {
      meanings.updates.push_back(Meanings::Update::sgd);
    } else if (states.size() == 2 && states[0] == "first moment" && states[1] == "second moment") {
      meanings.updates.push_back(Meanings::Update::adam);
    } else if (states.size() == 1 && states[0] == "momentum") {
      meanings.updates.push_back(meanings.steps_by_sign ? Meanings::Update::signs
                                                        : Meanings::Update::momentum);
    } else {
      throw InputError({.where = "program",
                        .value = states.front(),
                        .problem = "is a state of no optimizer that can be run",
                        .allowed = "none, momentum, or first moment and second moment"});
    }
  }
}

}  // namespace placet
