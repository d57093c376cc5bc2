#include "interop/diff.h"

#include <algorithm>
#include <optional>
#include <set>

#include "catalog/reader.h"
#include "interop/dialect.h"
#include "units/error.h"

namespace placet {
namespace {

std::string name_of_cluster(const std::optional<Cluster>& cluster) {
  return cluster ? cluster->name : "none";
}

std::string scope_text(BalanceScope scope) {
  switch (scope) {
    case BalanceScope::none:
      return "none";
    case BalanceScope::sequence:
      return "sequence";
    case BalanceScope::micro_batch:
      return "micro-batch";
    case BalanceScope::global:
      return "global";
  }
  fail_internally("every scope of a balance loss has a name");
}

std::string routing_text(const Routing& routing) {
  switch (routing.kind) {
    case Routing::Kind::balanced:
      return "balanced";
    case Routing::Kind::expected:
      return "expected=" + Json(routing.skew).dump();
    case Routing::Kind::capacity:
      return "capacity=" + std::to_string(routing.capacity.numerator()) + "/" +
             std::to_string(routing.capacity.denominator());
    case Routing::Kind::worst:
      return "worst";
  }
  fail_internally("every routing has a name");
}

// What an axis does, without its name; schedules and exchanges by what they do. Axes of one device
// do nothing.
struct Deeds {
  std::vector<AxisPlacement> axes;
  std::vector<AttentionExchange> attention;
  Schedule schedule;

  friend bool operator==(const Deeds&, const Deeds&) = default;
};

Deeds deeds_of(const Job& job) {
  Deeds deeds;
  bool has_stages = false;
  for (std::size_t i = 0; i < job.placement.axes.size(); ++i) {
    AxisPlacement axis = job.placement.axes[i];
    if (axis.degree == 1) continue;
    has_stages = has_stages || axis.how.cut == Cut::layer;
    axis.axis = AxisName();
    axis.schedule.reset();
    axis.attention.reset();
    if (i < job.attention.size() && axis.how.cut == Cut::sequence) {
      deeds.attention.push_back(job.attention[i]);
      deeds.attention.back().name.clear();
    }
    deeds.axes.push_back(std::move(axis));
  }
  if (has_stages) deeds.schedule = job.schedule;
  deeds.schedule.name.clear();
  return deeds;
}

bool places_alike(const Job& one, const Job& other) {
  return deeds_of(one) == deeds_of(other) && one.methods == other.methods;
}

// An engine's name and its options, whatever their order.
std::set<std::string> options_of(const std::string& engine) {
  std::set<std::string> options;
  for (std::size_t begin = 0; begin < engine.size();) {
    const std::size_t end = std::min(engine.find('+', begin), engine.size());
    options.insert(engine.substr(begin, end - begin));
    begin = end + 1;
  }
  return options;
}

class Differences {
 public:
  void add(const char* word, const std::string& one, const std::string& other) {
    if (one != other) found_.push_back({.word = word, .one = one, .other = other});
  }
  std::vector<JobDifference> found() && { return std::move(found_); }

 private:
  std::vector<JobDifference> found_;
};

std::string batch_text(std::int64_t samples) {
  return samples == 0 ? "one micro-batch" : std::to_string(samples);
}

std::string clip_text(const Job& job) { return job.clips_by_global_norm ? "on" : "off"; }

// What is said of a model is no part of it.
bool models_alike(Model one, Model other) {
  one.notes.clear();
  other.notes.clear();
  return one == other;
}

// A value whose name is the same and whose meaning is not.
std::string told_apart(const std::string& name, bool alike) {
  return alike ? name : name + " (of another meaning)";
}

}  // namespace

std::string recompute_words(const Recompute& recompute) {
  switch (recompute.kind) {
    case Recompute::Kind::none:
      return "none";
    case Recompute::Kind::full:
      return "full";
    case Recompute::Kind::every:
      return "every=" + std::to_string(recompute.count);
    case Recompute::Kind::first:
      return "first=" + std::to_string(recompute.count);
    case Recompute::Kind::uniform:
      return "uniform=" + std::to_string(recompute.count);
    case Recompute::Kind::selective:
      break;
  }
  if (!recompute.policy.empty()) return "selective=" + recompute.policy;
  std::string modules;
  for (const Module module : recompute.modules) {
    modules += (modules.empty() ? "=" : ",") + std::string(name_of(module));
  }
  return "selective" + modules;
}

std::vector<JobDifference> differences_of(const Job& one, const Job& other) {
  Differences differences;
  const bool one_name = one.model.name == other.model.name;
  const std::string model =
      told_apart(other.model.name, !one_name || models_alike(one.model, other.model));
  differences.add("model", one.model.name, model);
  differences.add("cluster", name_of_cluster(one.cluster), name_of_cluster(other.cluster));
  if (!places_alike(one, other)) {
    differences.add("placement", one.placement_text,
                    told_apart(other.placement_text, one.placement_text != other.placement_text));
  }
  differences.add("seq", std::to_string(one.batch.sequence), std::to_string(other.batch.sequence));
  differences.add("global-batch", batch_text(one.batch.global), batch_text(other.batch.global));
  differences.add("micro-batch", std::to_string(one.batch.micro),
                  std::to_string(other.batch.micro));
  differences.add("recompute", recompute_words(one.recompute), recompute_words(other.recompute));
  if (one.precision != other.precision) {
    differences.add("precision", one.precision.name,
                    told_apart(other.precision.name, one.precision.name != other.precision.name));
  }
  differences.add("optimizer", one.optimizer.name, other.optimizer.name);
  differences.add("clip", clip_text(one), clip_text(other));
  differences.add("routing", routing_text(one.routing), routing_text(other.routing));
  differences.add("balance-loss", scope_text(one.balance), scope_text(other.balance));
  if (options_of(one.engine_text) != options_of(other.engine_text)) {
    differences.add("engine", one.engine_text, other.engine_text);
  }
  return std::move(differences).found();
}

namespace {

[[noreturn]] void fail_number(const std::string& where, const std::string& value) {
  throw InputError({.where = where, .value = value, .problem = {}, .allowed = "a number"});
}

std::optional<std::int64_t> whole_of(const std::string& value, const std::string& where) {
  const auto number = whole_number(value);
  if (!number || *number < 1) fail_number(where, value);
  return number;
}

std::optional<double> real_of(const std::string& value, const std::string& where) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0') fail_number(where, value);
  return number;
}

void take(const std::string& word, const std::string& value, const std::string& where,
          JobRequest& request) {
  const std::map<std::string, std::optional<std::string> JobRequest::*> texts = {
      {"model", &JobRequest::model},         {"cluster", &JobRequest::cluster},
      {"placement", &JobRequest::placement}, {"recompute", &JobRequest::recompute},
      {"precision", &JobRequest::precision}, {"optimizer", &JobRequest::optimizer},
      {"lora", &JobRequest::lora},           {"routing", &JobRequest::routing},
      {"engine", &JobRequest::engine},       {"balance-loss", &JobRequest::balance_loss}};
  const std::string place = where + ": " + word;
  if (const auto found = texts.find(word); found != texts.end()) request.*found->second = value;
  if (word == "seq") request.sequence = whole_of(value, place);
  if (word == "global-batch") request.global_batch = whole_of(value, place);
  if (word == "micro-batch") request.micro_batch = whole_of(value, place);
  if (word == "clip") request.clip = real_of(value, place);
  if (word == "freeze") request.freeze = patterns_in(value);
  if (word == "lengths") request.lengths = parse_lengths(value, place);
  if (word == "ignore_keys") request.ignore_keys = {value};
}

}  // namespace

std::vector<std::string> patterns_in(const std::string& list) {
  std::vector<std::string> patterns;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t begin = std::min(list.find_first_not_of(", ", at), list.size());
    at = std::min(list.find_first_of(", ", begin), list.size());
    if (begin < at) patterns.push_back(list.substr(begin, at - begin));
  }
  return patterns;
}

JobRequest request_of_words(const std::map<std::string, std::string>& words,
                            const std::string& where) {
  JobRequest request;
  for (const auto& [word, value] : words) take(word, value, where, request);
  return request;
}

}  // namespace placet
