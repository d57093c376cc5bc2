// Scripts that call one training after the other.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "interop/import_parts.h"
#include "interop/undecided.h"
#include "units/error.h"

namespace placet {
namespace {

/// What one command says to a dialect.
struct ScriptCommand {
  std::size_t line = 0;
  Words said;
  const Setting* first = nullptr;
};

// With fewer words a command starts or copies something.
constexpr std::size_t kFewestWords = 3;
constexpr std::size_t kFewestShared = 2;

std::vector<ScriptCommand> commands_in(const Source& source, const Dialect& dialect) {
  std::map<std::size_t, ScriptCommand> by_line;
  for (const Setting& setting : source.settings) {
    const KeyMeaning* meaning = setting.command == 0 ? nullptr : meaning_of(dialect, setting.path);
    if (meaning == nullptr || meaning->word.empty() || setting.is_of_container) continue;
    ScriptCommand& command = by_line[setting.command];
    command.line = setting.command;
    command.said[meaning->word] = plain_spelling(setting.value, meaning->kind);
    if (command.first == nullptr) command.first = &setting;
  }
  std::vector<ScriptCommand> commands;
  commands.reserve(by_line.size());
  for (auto& [line, command] : by_line) commands.push_back(std::move(command));
  return commands;
}

const ScriptCommand& longest_of(const std::vector<ScriptCommand>& commands) {
  return *std::ranges::max_element(commands, {},
                                   [](const ScriptCommand& c) { return c.said.size(); });
}

// Whether a command is a training beside the one that says most: it says half as much, of the same
// things, and not the same.
bool is_rival(const ScriptCommand& command, const ScriptCommand& most) {
  if (command.line == most.line || command.said.size() < kFewestWords) return false;
  const auto shared = std::ranges::count_if(
      command.said, [&](const auto& word) { return most.said.contains(word.first); });
  return 2 * command.said.size() >= most.said.size() &&
         static_cast<std::size_t>(shared) >= kFewestShared && command.said != most.said &&
         !exclude_each_other(*command.first, *most.first);
}

std::string text_of(const std::vector<std::size_t>& lines) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += i + 1 < lines.size() ? ", " : " and ";
    text += std::to_string(lines[i]);
  }
  return text;
}

// The line that a flag names among those.
std::size_t named_line(const std::string& text, const std::vector<std::size_t>& lines) {
  const auto number = whole_number(text);
  const auto named = std::ranges::find_if(lines, [&](std::size_t line) {
    return number && *number >= 0 && line == static_cast<std::size_t>(*number);
  });
  if (named != lines.end()) return *named;
  throw InputError({.where = "--set command",
                    .value = text,
                    .problem = "is no line at which a training begins",
                    .allowed = "one of " + text_of(lines),
                    .nearest = {},
                    .excerpt = {}});
}

// Settings for which it holds are of no effect: those of the command at `line` are read.
template <class IsOther>
void leave_out(Source& source, std::size_t line, IsOther is_other) {
  std::vector<Setting> rest;
  for (Setting& setting : source.settings) {
    const bool is_left = setting.command != 0 && setting.command != line && is_other(setting);
    if (is_left) setting.other_command = line;
    (is_left ? source.idle : rest).push_back(std::move(setting));
  }
  source.settings = std::move(rest);
}

// What the command says wins over what smaller ones say.
void prefer(Source& source, const Dialect& dialect, const ScriptCommand& chosen) {
  const Words said = chosen.said;
  leave_out(source, chosen.line, [&](const Setting& setting) {
    const KeyMeaning* meaning = meaning_of(dialect, setting.path);
    const auto own = meaning == nullptr ? said.end() : said.find(meaning->word);
    return own != said.end() && own->second != plain_spelling(setting.value, meaning->kind);
  });
}

}  // namespace

void choose_command(Source& source, const Dialect& dialect, Words& given,
                    std::vector<MissingFact>& missing) {
  if (source.form != SourceForm::arguments) return;
  const std::vector<ScriptCommand> commands = commands_in(source, dialect);
  if (commands.size() < 2) return;
  const ScriptCommand& most = longest_of(commands);
  if (most.said.size() < kFewestWords) return;
  std::vector<std::size_t> lines;
  for (const ScriptCommand& command : commands) {
    if (command.line == most.line || is_rival(command, most)) lines.push_back(command.line);
  }
  if (lines.size() < 2) return prefer(source, dialect, most);
  const auto flag = given.find("command");
  if (flag == given.end()) {
    missing.push_back(
        {"which training of " + source.file + " is meant, of those at lines " + text_of(lines),
         "--set command=LINE"});
    return;
  }
  const std::size_t line = named_line(flag->second, lines);
  given.erase(flag);
  leave_out(source, line, [&](const Setting& setting) {
    return std::ranges::find(lines, setting.command) != lines.end();
  });
  prefer(source, dialect, *std::ranges::find(commands, line, &ScriptCommand::line));
}

}  // namespace placet
