#include "cli/program.h"

#include <algorithm>

#include "call/lists.h"
#include "catalog/reader.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/flag_words.h"
#include "cli/memory_limit.h"
#include "cli/output.h"
#include "cli/torch_command.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

/// A subcommand: its name, and what adds it to the program.
struct Command {
  std::string name;
  std::function<void(CLI::App& program, Action& action)> add;
};

// In the order of the program's help.
std::vector<Command> all_commands() {
  std::vector<Command> commands = {{"model", &add_model_command},
                                   {"derive", &add_derive_command},
                                   {"compare", &add_compare_command},
                                   {"simulate", &add_simulate_command},
                                   {"plan", &add_plan_command}};
  for (const ListKind& kind : list_kinds()) {
    commands.push_back({std::string(kind.name), [kind](CLI::App& program, Action& action) {
                          add_list_command(program, kind, action);
                        }});
  }
  const std::vector<Command> others = {
      {"bugs", &add_bugs_command},       {"validate", &add_validate_command},
      {"lower", &add_lower_command},     {"check", &add_check_command},
      {"verify", &add_verify_command},   {"run", &add_run_command},
      {"reshard", &add_reshard_command}, {"explain", &add_explain_command},
      {"data", &add_data_command},       {"completion", &add_completion_command},
      {"import", &add_import_command},   {"lint", &add_lint_command},
      {"export", &add_export_command},   {"diff", &add_diff_command},
      {"serve", &add_serve_command},     {"audit", &add_audit_command}};
  commands.insert(commands.end(), others.begin(), others.end());
  return commands;
}

// The first argument that is no flag and no flag's value; empty where there is none, and where the
// program's own help is asked for before it.
std::string called_word(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "-h" || word == "--help") break;
    if (is_followed_by_value(argv[i])) {
      ++i;
    } else if (!word.starts_with('-')) {
      return std::string(word);
    }
  }
  return "";
}

// The called word must be a subcommand.
void check_command(const std::vector<Command>& commands, const std::string& called) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const Command& command : commands) names.push_back(command.name);
  if (called.empty() || std::ranges::find(names, called) != names.end()) return;
  throw InputError({.where = "subcommand",
                    .value = called,
                    .problem = "is not known",
                    .allowed = list_words(names),
                    .nearest = nearest(called, names)});
}

// A value that is empty is a variable of a script that was not set, not a wish for the default.
void check_not_empty(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string before = argv[i - 1];
    if (word.starts_with("--") && word.ends_with('=')) {
      throw InputError({.where = word.substr(0, word.size() - 1), .problem = "the value is empty"});
    }
    if (!word.empty()) continue;
    if (i > 1 && before.starts_with("--")) {
      throw InputError({.where = before, .problem = "the value is empty"});
    }
    throw InputError({.where = "arguments", .problem = "one of them is empty"});
  }
}

[[noreturn]] void fail_extra(const CLI::App& program) {
  const auto called = program.get_subcommands();
  const CLI::App* command = called.empty() ? nullptr : called.front();
  const std::vector<std::string> extras = program.remaining(true);
  const std::string word = extras.empty() ? std::string() : extras.front();
  const std::string flag = word.substr(0, word.find('='));
  const std::string name = command == nullptr ? "placet" : "placet " + command->get_name();
  if (!word.starts_with('-')) {
    throw InputError({.where = name, .value = word, .problem = "is one argument too many"});
  }
  const auto flags = flag_names(program, command);
  if (std::find(flags.begin(), flags.end(), flag) != flags.end()) {
    throw InputError({.where = name,
                      .value = word,
                      .problem = "stands after '--', where nothing is a flag",
                      .allowed = "flags before it"});
  }
  throw InputError({.where = name,
                    .value = flag,
                    .problem = "is not a flag here",
                    .allowed = "what `" + name + " --help` lists",
                    .nearest = nearest(flag, flags)});
}

// The option of which CLI11's message speaks: it begins with its name.
const CLI::Option* option_of(const CLI::App& program, const std::string& message) {
  constexpr std::string_view kConversion = "Could not convert: ";
  const std::size_t begin = message.starts_with(kConversion) ? kConversion.size() : 0;
  const std::string name = message.substr(begin, message.find_first_of(": ", begin) - begin);
  for (const CLI::App* app : program.get_subcommands()) {
    // Of flags that take no value it speaks without their dashes.
    for (const std::string& spelling : {name, "--" + name}) {
      if (const CLI::Option* option = app->get_option_no_throw(spelling)) return option;
    }
  }
  return program.get_option_no_throw(name);
}

constexpr std::string_view kRange = ":INT in [";  // how CLI11 tells the range of a whole number

// Words that CLI11 knows an option's value to be: "{time,memory,cost}" in its type's name.
std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}');
  std::vector<std::string> words;
  if (open == std::string::npos || close == std::string::npos) return words;
  for (std::size_t begin = open + 1; begin < close;) {
    const std::size_t end = std::min(type.find(',', begin), close);
    words.push_back(type.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string expected_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_description();
  const std::string type = option.get_type_name();  // with what its check says, after a colon
  const std::size_t colon = type.find(':');
  const std::string what = " (" + option.get_description() + ")";
  if (const std::vector<std::string> words = words_of(option); !words.empty()) {
    return list_words(words) + what;
  }
  if (colon == std::string::npos || !type.substr(colon).starts_with(kRange)) {
    return type.substr(0, colon) + what;
  }
  std::string range = type.substr(colon + kRange.size());  // "1 - 100]"
  range.replace(range.find(" - "), 3, " to ");
  return "a whole number from " + range.substr(0, range.find(']')) + what;
}

// What CLI11 finds wrong with the arguments, in the form of our messages.
[[noreturn]] void fail_parse(const CLI::App& program, const CLI::ParseError& error) {
  const auto called = program.get_subcommands();
  const std::string name = called.empty() ? "placet" : "placet " + called.front()->get_name();
  std::string problem = error.what();
  std::replace(problem.begin(), problem.end(), '\n', ' ');
  const CLI::Option* option = option_of(program, problem);
  if (option == nullptr) {
    throw InputError(
        {.where = name, .problem = problem, .allowed = "what `" + name + " --help` lists"});
  }
  InputFault fault{.where = name + ": " + option->get_name(), .allowed = expected_of(*option)};
  const bool is_value = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr ||
                        dynamic_cast<const CLI::ConversionError*>(&error) != nullptr;
  if (is_value && option->count() > 0) {
    fault.value = option->results().back();
    fault.nearest = nearest(fault.value, words_of(*option));
  } else if (option->get_items_expected_max() == 0) {
    fault.problem = "takes no value";
    fault.allowed.clear();
  } else if (option->count() > 1) {
    fault.problem = "is given more than once";
  } else {
    fault.problem = option->get_positional() ? "is missing" : "the value is missing";
  }
  throw InputError(fault);
}

constexpr const char* kFooter =
    "\nExit status: 0 done, judgement good; 1 judgement bad; 2 wrong input; 3 our own fault.\n"
    "Examples:\n"
    "  placet derive llama-3.1-8b --cluster h100-sxm:1 --placement \"dp=8:zero3\"\n"
    "  placet compare 70B --cluster 64xa100-80gb-sxm --placement dp=64:ddp --placement "
    "dp=64:zero3\n"
    "  placet model ./config.json --json\n";

// The program with its subcommands, the called one alone where no other is spoken of: the 500 flags
// of all take as long as to read a small job. `action` is set by the one that is called.
std::unique_ptr<CLI::App> make_program(const std::string& called, Action& action) {
  auto program = std::make_unique<CLI::App>(
      "Placet: say where the training state lives; see what that costs in memory and "
      "communication.",
      "placet");
  program->set_version_flag("--version", "placet " PLACET_VERSION);
  program->set_help_flag("-h,--help", "Print this help and exit");
  program->require_subcommand(0, 1);
  program->fallthrough();
  program->footer(kFooter);
  add_output_flags(*program);
  add_memory_flag(*program);
  add_data_flag(*program);
  const std::vector<Command> commands = all_commands();
  check_command(commands, called);
  const bool speaks_of_all = called.empty() || called == "completion";
  for (const Command& command : commands) {
    if (speaks_of_all || command.name == called) command.add(*program, action);
  }
  return program;
}

}  // namespace

int run(int argc, const char* const* given) {
  hand_over_to_python(argc, given);
  Action action;
  const std::string called = called_word(argc, given);
  const auto program = make_program(called, action);
  const std::vector<std::string> words = with_known_flags(*program, called, argc, given);
  std::vector<const char*> pointers;
  pointers.reserve(words.size());
  for (const std::string& word : words) pointers.push_back(word.c_str());
  const char* const* argv = pointers.data();
  check_not_empty(argc, argv);
  try {
    program->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto commands = program->get_subcommands();
    print(commands.empty() ? program->help() : commands.front()->help("placet"));
    return kGood;
  } catch (const CLI::CallForVersion&) {
    print("placet " PLACET_VERSION "\n");
    return kGood;
  } catch (const CLI::ExtrasError&) {
    fail_extra(*program);
  } catch (const CLI::ParseError& error) {
    fail_parse(*program, error);
  }
  set_memory_limit();
  if (action) return action();
  print(program->help());  // nothing was asked: what can be
  return kGood;
}

}  // namespace placet
