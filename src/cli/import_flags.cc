#include "cli/import_flags.h"

#include <iostream>
#include <iterator>

#include "call/configurations.h"
#include "cli/data_flag.h"

namespace placet {

void take_source(const std::string& name, SourceTexts& texts) {
  if (name != "-" || texts.contains(name)) return;
  constexpr std::size_t kMost = std::size_t{8} << 20;  // more than any source may have
  std::string& text = texts[name];
  for (std::istreambuf_iterator<char> at(std::cin), end; at != end && text.size() < kMost; ++at) {
    text += *at;
  }
}

void add_import_flags(CLI::App& command, ImportFlags& flags) {
  command
      .add_option("SOURCES", flags.words.sources,
                  "Configuration files and launch scripts; '-': standard input")
      ->each([&flags](const std::string& name) { take_source(name, flags.words.texts); });
  command.add_option("--dialect", flags.words.dialect,
                     "How the sources are to be read (guessed from their keys)");
  command.add_option("--model", flags.words.model, "The model, where the sources do not say it");
  command.add_option("--cluster", flags.words.cluster, "The cluster; its devices are the world");
  command.add_option("--engine", flags.words.engine, "The engine's version");
  command.add_option("--world-size", flags.words.world, "Number of devices");
  command.add_option("--seq", flags.words.sequence, "Tokens per sample");
  command.add_option("--global-batch", flags.words.global_batch, "Samples per step");
  command.add_option("--micro-batch", flags.words.micro_batch, "Samples per micro-batch");
  command.add_option("--placement", flags.words.placement,
                     "The placement, where the sources do not say one");
  command.add_option("--set", flags.words.set, "A word of the dialect that the sources leave open")
      ->allow_extra_args(false)
      ->type_name("WORD=VALUE");
  command.add_flag("--json", flags.json, "Print one JSON document")->disable_flag_override();
}

Imported import_of(const ImportFlags& flags) { return read_of(called_catalog(), flags.words); }

}  // namespace placet
