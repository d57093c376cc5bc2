#include "cli/flag_words.h"

#include <algorithm>
#include <array>
#include <optional>

#include "catalog/word_file.h"
#include "cli/data_flag.h"
#include "units/error.h"

namespace placet {
namespace {

bool is_flag(const std::string& word) {
  return word.size() > 2 && word[0] == '-' && (word[1] < '0' || word[1] > '9') && word[1] != '.';
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

/// Without dashes in front, in lower case, underscores as dashes.
std::string plain(const std::string& flag) {
  std::string text = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  for (char& c : text) {
    if (c == '_') c = '-';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

/// "-ofile" is the flag -o with its value, and "-html" the flag --html.
bool is_short_with_value(const CLI::App* command, const std::string& word) {
  if (word[1] == '-' || command == nullptr) return false;
  const std::string flag = "--" + plain(word.substr(0, word.find('=')));
  return command->get_option_no_throw(word.substr(0, 2)) != nullptr &&
         command->get_option_no_throw(flag) == nullptr;
}

class FlagWords {
 public:
  FlagWords(const CLI::App& program, const CLI::App* command)
      : name_(command == nullptr ? "placet" : "placet " + command->get_name()),
        known_(flag_names(program, command)) {}

  std::string known(const std::string& word) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string flag = word.substr(0, equals);
    if (contains(known_, flag)) return word;
    const std::string wanted = plain(flag);
    if (contains(known_, "--" + wanted)) return "--" + wanted + word.substr(equals);
    for (const Alias& alias : words().aliases) {
      if (alias.word == wanted && contains(known_, "--" + alias.means)) {
        return "--" + alias.means + word.substr(equals);
      }
    }
    for (const Alias& answer : words().answers) {
      if (answer.word != wanted) continue;
      throw InputError({.where = name_,
                        .value = flag,
                        .problem = "is not a flag here",
                        .allowed = answer.means});
    }
    return word;
  }

 private:
  const WordFile& words() {
    if (!words_) {
      const std::optional<Catalog> catalog = catalog_if_any();
      words_ = catalog ? load_words(*catalog, "flags") : WordFile{};
    }
    return *words_;
  }

  /// A catalogue that is not there is another command's fault to tell.
  static std::optional<Catalog> catalog_if_any() {
    try {
      return called_catalog();
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  std::string name_;
  std::vector<std::string> known_;
  std::optional<WordFile> words_;
};

}  // namespace

bool is_followed_by_value(const std::string& word) {
  static constexpr std::array<std::string_view, 4> kWithValue = {"color", "width", "memory-limit",
                                                                 "data"};
  return word.starts_with('-') && std::ranges::find(kWithValue, plain(word)) != kWithValue.end();
}

std::vector<std::string> flag_names(const CLI::App& program, const CLI::App* command) {
  std::vector<std::string> names;
  for (const CLI::App* app : {command, &program}) {
    if (app == nullptr) continue;
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

std::vector<std::string> with_known_flags(const CLI::App& program, const std::string& called,
                                          int argc, const char* const* argv) {
  const CLI::App* command = called.empty() ? nullptr : program.get_subcommand(called);
  FlagWords flags(program, command);
  std::vector<std::string> words;
  bool ended = false;
  for (int i = 0; i < argc; ++i) {
    std::string word = argv[i];
    ended = ended || word == "--";
    const bool may_be = i > 0 && !ended && is_flag(word) && !is_short_with_value(command, word);
    words.push_back(may_be ? flags.known(word) : std::move(word));
  }
  return words;
}

}  // namespace placet
