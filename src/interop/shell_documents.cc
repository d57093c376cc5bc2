#include "interop/shell_documents.h"

#include <algorithm>
#include <set>

#include "interop/shell_text.h"

namespace placet {
namespace {

constexpr const char* kEndOfWord = " \t<>|;&()";

// The word that begins at a place or behind the blanks there, without its quotes.
std::string plain_word_at(const std::string& line, std::size_t at, bool* is_quoted = nullptr) {
  const std::size_t begin = line.find_first_not_of(" \t", at);
  if (begin == std::string::npos) return {};
  const bool quoted = line[begin] == '"' || line[begin] == '\'';
  if (is_quoted != nullptr) *is_quoted = quoted || line[begin] == '\\';
  const std::size_t end = quoted ? line.find(line[begin], begin + 1)
                                 : std::min(line.find_first_of(kEndOfWord, begin), line.size());
  if (end == std::string::npos) return {};
  std::string word = line.substr(begin, end - begin);
  word.erase(0, word.find_first_not_of("\"'\\"));
  return word;
}

// The file that the command of a line writes: behind '>', or what tee is given.
std::string written_by(const std::string& line, const std::string& program) {
  if (const std::size_t arrow = line.find('>'); arrow != std::string::npos) {
    return plain_word_at(line, std::min(line.find_first_not_of('>', arrow), line.size()));
  }
  if (program != "tee") return {};
  std::size_t at = line.find("tee") + 3;
  std::string word = plain_word_at(line, at);
  if (word == "-a") word = plain_word_at(line, line.find("-a", at) + 2);
  return word.starts_with('-') ? std::string() : word;
}

// The first word that is no assignment.
std::string program_of(const std::string& line) {
  std::size_t at = 0;
  std::string word = plain_word_at(line, at);
  while (word.find('=') != std::string::npos) {
    at = line.find(word, at) + word.size();
    word = plain_word_at(line, at);
  }
  return word.substr(word.rfind('/') + 1);
}

// Whether what a program reads may be commands of a shell. Those that read a language of their own
// are named; any other may hand them on ("srun bash", "ssh").
bool hands_to_shell(const std::string& program) {
  static const std::set<std::string> kOthers = {"python", "python3", "perl", "ruby",  "node",
                                                "awk",    "sed",     "jq",   "mysql", "sqlite3"};
  return !kOthers.contains(program);
}

}  // namespace

std::optional<OpenedDocument> document_opened_by(const std::string& line) {
  const std::size_t mark = line.find("<<");
  if (mark == std::string::npos || line.compare(mark, 3, "<<<") == 0) return std::nullopt;
  if (is_inside_quotes(line, mark)) return std::nullopt;
  const std::string program = program_of(line);
  const bool writes = program == "cat" || program == "tee";
  OpenedDocument opened{.file = writes ? written_by(line, program) : "", .end = {}};
  opened.drops_tabs = line.compare(mark, 3, "<<-") == 0;
  bool is_quoted = false;
  opened.end = plain_word_at(line, mark + (opened.drops_tabs ? 3 : 2), &is_quoted);
  opened.has_variables = !is_quoted;
  const bool is_of_shell = writes ? opened.file.empty() : hands_to_shell(program);
  opened.goes = is_of_shell ? OpenedDocument::Goes::to_shell
                : writes    ? OpenedDocument::Goes::into_file
                            : OpenedDocument::Goes::to_program;
  if (opened.end.empty()) return std::nullopt;
  return opened;
}

std::optional<std::size_t> lines_of_document(const OpenedDocument& opened,
                                             const std::vector<std::string>& lines,
                                             std::size_t opener) {
  for (std::size_t i = opener + 1; i < lines.size(); ++i) {
    if (line_of_document(opened, lines[i]) == opened.end) return i - opener - 1;
  }
  return std::nullopt;
}

std::string line_of_document(const OpenedDocument& opened, const std::string& line) {
  if (!opened.drops_tabs) return line;
  return line.substr(std::min(line.find_first_not_of('\t'), line.size()));
}

bool is_configuration_name(const std::string& name) {
  return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json") ||
         name.ends_with(".toml");
}

}  // namespace placet
