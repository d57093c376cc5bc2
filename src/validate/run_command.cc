#include "validate/run_command.h"

#include "catalog/cluster_catalog.h"
#include "catalog/cluster_text.h"
#include "placement/grammar.h"
#include "validate/run_model.h"

namespace placet {
namespace {

// A word of a shell's line; quoted where a shell would read more into it.
std::string quoted(const std::string& word) {
  const std::string plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@+";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string model_word(const RunFacts& facts, CommandFiles& files) {
  if (!facts.shape.catalogue_model.empty()) return facts.shape.catalogue_model;
  return files.path_of("model", print_plain_decoder(decoder_of(facts.shape)));
}

// A name with a size, where that is all; else a file.
std::string cluster_word(const Catalog& catalog, const RunPlan& plan, CommandFiles& files) {
  const DeviceGroup& group = plan.cluster->groups.front();
  const std::string size = std::to_string(group.count) + "x";
  const std::string& network = group.levels.back().link;
  std::string of_network = size + group.device.name;
  of_network.append("@").append(network);
  for (const std::string& word : {size + group.device.name, of_network}) {
    const Cluster named = load_cluster(catalog, word, {}, "--cluster");
    if (named.groups.size() == 1 && named.groups.front() == group) return word;
  }
  return files.path_of("cluster", print_group(catalog, group));
}

std::string recompute_word(const std::string& word) {
  const std::string policy = "policy ";
  return word.starts_with(policy) ? "selective=" + word.substr(policy.size()) : word;
}

}  // namespace

std::string CommandFiles::path_of(const std::string& kind, const std::string& text) {
  auto known = names_.find(text);
  if (known == names_.end()) {
    known = names_.emplace(text, kind + "-" + std::to_string(++counts_[kind]) + ".json").first;
  }
  return folder_.empty() ? known->second : folder_ + "/" + known->second;
}

std::map<std::string, std::string> CommandFiles::files() const {
  std::map<std::string, std::string> files;
  for (const auto& [text, name] : names_) files.emplace(name, text);
  return files;
}

std::string command_of(const Catalog& catalog, const Vocabulary& vocabulary, const RunPlan& plan,
                       const RunFacts& facts, CommandFiles& files) {
  const FrameWords& words = plan.frame->words;
  std::string line = "placet simulate " + quoted(model_word(facts, files));
  const auto add = [&line](const char* flag, const std::string& value) {
    line += std::string(" --") + flag + " " + quoted(value);
  };
  if (plan.cluster) add("cluster", cluster_word(catalog, plan, files));
  add("placement", print_placement(job_of(plan).placement, vocabulary));
  add("seq", std::to_string(plan.batch.sequence));
  add("global-batch", std::to_string(plan.batch.global));
  add("micro-batch", std::to_string(plan.batch.micro));
  if (words.recompute != "none") add("recompute", recompute_word(words.recompute));
  if (words.precision != "engine") add("precision", words.precision);
  add("optimizer", words.optimizer);
  add("engine", words.engine);
  add("clip", "1");
  if (!facts.shape.adapters.empty()) add("lora", facts.shape.adapters);
  return line;
}

}  // namespace placet
