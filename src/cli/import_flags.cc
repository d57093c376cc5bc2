#include "cli/import_flags.h"

#include <numeric>

#include "catalog/cluster_catalog.h"
#include "cli/data_flag.h"
#include "units/error.h"

namespace placet {
namespace {

void give(Words& words, const char* word, const std::string& value) {
  if (!value.empty()) words[word] = value;
}

void give_whole(Words& words, const char* word, const std::string& value) {
  if (value.empty()) return;
  const auto number = whole_number(value);
  if (!number || *number < 1) {
    throw InputError({.where = std::string("--") + word,
                      .value = value,
                      .problem = {},
                      .allowed = "a whole number from 1",
                      .nearest = {},
                      .excerpt = {}});
  }
  words[word] = value;
}

// "tp=8"
void give_word(Words& words, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw InputError({.where = "--set",
                      .value = text,
                      .problem = "is no word with a value",
                      .allowed = "WORD=VALUE, such as tp=8",
                      .nearest = {},
                      .excerpt = {}});
  }
  words[text.substr(0, equals)] = text.substr(equals + 1);
}

}  // namespace

void add_import_flags(CLI::App& command, ImportFlags& flags) {
  command.add_option("SOURCES", flags.sources, "Configuration files and launch scripts");
  command.add_option("--dialect", flags.dialect,
                     "How the sources are to be read (guessed from their keys)");
  command.add_option("--model", flags.model, "The model, where the sources do not say it");
  command.add_option("--cluster", flags.cluster, "The cluster; its devices are the world");
  command.add_option("--engine", flags.engine, "The engine's version");
  command.add_option("--world-size", flags.world, "Number of devices");
  command.add_option("--seq", flags.sequence, "Tokens per sample");
  command.add_option("--global-batch", flags.global_batch, "Samples per step");
  command.add_option("--micro-batch", flags.micro_batch, "Samples per micro-batch");
  command.add_option("--placement", flags.placement,
                     "The placement, where the sources do not say one");
  command.add_option("--set", flags.set, "A word of the dialect that the sources leave open")
      ->allow_extra_args(false)
      ->type_name("WORD=VALUE");
  command.add_flag("--json", flags.json, "Print one JSON document")->disable_flag_override();
}

Imported import_of(const ImportFlags& flags) {
  if (flags.sources.empty()) {
    throw InputError({.where = "SOURCES",
                      .value = {},
                      .problem = "is missing",
                      .allowed = "configuration files and launch scripts",
                      .nearest = {},
                      .excerpt = {}});
  }
  const Catalog catalog = called_catalog();
  ImportRequest request{.sources = {}, .dialect = flags.dialect, .given = {}};
  give(request.given, "model", flags.model);
  give(request.given, "cluster", flags.cluster);
  give(request.given, "engine", flags.engine);
  give(request.given, "placement", flags.placement);
  for (const std::string& word : flags.set) give_word(request.given, word);
  give_whole(request.given, "world-size", flags.world);
  give_whole(request.given, "seq", flags.sequence);
  give_whole(request.given, "global-batch", flags.global_batch);
  give_whole(request.given, "micro-batch", flags.micro_batch);
  if (!flags.cluster.empty() && flags.world.empty()) {
    const Cluster cluster = load_cluster(catalog, flags.cluster, std::nullopt, "--cluster");
    request.given["world-size"] = std::to_string(devices_of(cluster));
  }
  for (const std::string& file : flags.sources) request.sources.push_back(read_source(file));
  return import_sources(catalog, request);
}

}  // namespace placet
