// placet explain WORD: what it means, and where that comes from.
#include <memory>

#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/output.h"
#include "cli/word_explanations.h"
#include "units/error.h"

namespace placet {
namespace {

struct ExplainCall {
  std::vector<std::string> words;
  bool json = false;
  bool names = false;
};

int explain_word(const ExplainCall& call) {
  const Catalog catalog = called_catalog();
  if (call.names) {
    std::string text;
    for (const std::string& word : explained_words(catalog)) text += word + "\n";
    print(text);
    return kGood;
  }
  if (call.words.empty()) {
    throw InputError({.where = "placet explain: WORD",
                      .problem = "is missing",
                      .allowed = "a strategy, mode, rule, engine, device, link, column or other "
                                 "word that `placet explain --names` lists"});
  }
  std::string asked;  // "tensor parallel" without quotes is one word
  for (const std::string& word : call.words) asked += (asked.empty() ? "" : " ") + word;
  const std::vector<Explanation> found = explanations_of(catalog, asked);
  print(call.json ? explanations_json(asked, found) : explanations_text(found, output_style()));
  return kGood;
}

}  // namespace

void add_explain_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<ExplainCall>();
  CLI::App* command = program.add_subcommand(
      "explain", "What a word means: a strategy, mode, rule, engine, device, column, with source");
  command->add_option("WORD", call->words, "The word, as reports, flags and files spell it");
  command->add_flag("--json", call->json, "Print one JSON document")->disable_flag_override();
  command->add_flag("--names", call->names, "Print all words, one a line")->disable_flag_override();
  command->footer(
      "\nExamples:\n"
      "  placet explain zero3\n"
      "  placet explain 'S*'\n"
      "  placet explain h100-sxm --json\n");
  command->callback([call, &action] { action = [call] { return explain_word(*call); }; });
}

}  // namespace placet
