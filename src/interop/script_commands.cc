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
  Words files;    // of these, the configurations that it is called with
  Setting first;  // of its settings
};

// With fewer words a command starts or copies something.
constexpr std::size_t kFewestWords = 3;
constexpr std::size_t kFewestShared = 2;

std::vector<ScriptCommand> commands_in(const Source& source, const Dialect& dialect) {
  std::map<std::size_t, ScriptCommand> by_line;
  for (const Setting& setting : source.settings) {
    const KeyMeaning* meaning = setting.command == 0 ? nullptr : meaning_of(dialect, setting.path);
    if (meaning == nullptr || meaning->word.empty() || setting.is_of_container) continue;
    const auto [command, is_new] = by_line.try_emplace(setting.command);
    if (is_new)
      command->second = {.line = setting.command, .said = {}, .files = {}, .first = setting};
    const std::string value = plain_spelling(setting.value, meaning->kind);
    command->second.said[meaning->word] = value;
    if (setting.path.starts_with('$')) command->second.files[meaning->word] = value;
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

std::size_t shared_by(const Words& some, const Words& others) {
  return static_cast<std::size_t>(
      std::ranges::count_if(some, [&](const auto& word) { return others.contains(word.first); }));
}

// Whether a command is a training beside the one that says most: it says half as much, of the same
// things and differently, or is called with another configuration.
bool is_rival(const ScriptCommand& command, const ScriptCommand& most) {
  if (command.line == most.line || command.said == most.said) return false;
  if (exclude_each_other(command.first, most.first)) return false;
  if (shared_by(command.files, most.files) > 0 && command.files != most.files) return true;
  return command.said.size() >= kFewestWords && 2 * command.said.size() >= most.said.size() &&
         shared_by(command.said, most.said) >= kFewestShared;
}

// "3, 12 and 20"; of many the first few.
std::string text_of(const std::vector<std::size_t>& lines) {
  constexpr std::size_t kShown = 6;
  std::string text;
  for (std::size_t i = 0; i < lines.size() && i < kShown; ++i) {
    if (i > 0) text += i + 1 < lines.size() ? ", " : " and ";
    text += std::to_string(lines[i]);
  }
  return text + (lines.size() > kShown ? ", ..." : "");
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
    if (is_left) setting.read_command = line;
    (is_left ? source.idle : rest).push_back(std::move(setting));
  }
  source.settings = std::move(rest);
}

// What is read beside the command: what launches it, where it says nothing else, and what runs in
// another branch.
void prefer(Source& source, const Dialect& dialect, const Dialect& launch,
            const ScriptCommand& chosen) {
  leave_out(source, chosen.line, [&](const Setting& setting) {
    const KeyMeaning* meaning = meaning_of(dialect, setting.path);
    if (meaning == nullptr || meaning->word.empty()) return false;
    if (exclude_each_other(setting, chosen.first)) return false;
    const auto own = chosen.said.find(meaning->word);
    if (own != chosen.said.end()) {
      return own->second != plain_spelling(setting.value, meaning->kind);
    }
    return !setting.path.starts_with('$') && meaning_of(launch, setting.path) == nullptr;
  });
}

}  // namespace

void choose_command(const Catalog& catalog, const Dialect& dialect, Source& source, Words& given,
                    std::vector<MissingFact>& missing) {
  if (source.form != SourceForm::arguments) return;
  const std::vector<ScriptCommand> commands = commands_in(source, dialect);
  if (commands.size() < 2) return;
  const ScriptCommand& most = longest_of(commands);
  const SharedDialect launch = shared_dialect(catalog, "launch", "launch lines");
  std::vector<std::size_t> lines;
  for (const ScriptCommand& command : commands) {
    if (command.line == most.line || is_rival(command, most)) lines.push_back(command.line);
  }
  if (lines.size() < 2) {
    if (most.said.size() >= kFewestWords) prefer(source, dialect, *launch, most);
    return;
  }
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
    return std::ranges::binary_search(lines, setting.command);
  });
  prefer(source, dialect, *launch, *std::ranges::find(commands, line, &ScriptCommand::line));
}

}  // namespace placet
