// Launch scripts: the words of each line, by quotes and blanks alone. No shell is asked.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "interop/dialect.h"
#include "interop/shell_arithmetic.h"
#include "interop/shell_branches.h"
#include "interop/shell_documents.h"
#include "interop/source_parts.h"

namespace placet {
namespace {

using Variables = std::map<std::string, std::string>;

bool is_name(const std::string& word) {
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word[0])) != 0) return false;
  for (const char c : word) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

struct LineWord {
  std::string text;
  bool is_quoted = false;  // quotes keep what a variable in it stands for in one word
};

// Words of a line. A quote that is not closed on the line belongs to a list of options that goes on
// below, and is left out.
class LineWords {
 public:
  explicit LineWords(const std::string& line) : line_(line) {}

  std::vector<LineWord> all() {
    for (; next_ < line_.size() && !is_comment_; ++next_) take(line_[next_]);
    end_word();
    return std::move(words_);
  }

 private:
  void take(char c) {
    if (quote_ != 0) {
      take_quoted(c);
    } else if (c == '(' && word_.ends_with('$')) {
      take_substitution();
    } else if (c == '"' || c == '\'') {
      if (line_.find(c, next_ + 1) == std::string::npos) return;
      quote_ = c;
      is_quoted_ = true;
    } else if (c == '#' && word_.empty()) {
      is_comment_ = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ';' || begins_list(c)) {
      end_word();
    } else if (is_of_word(c)) {
      word_ += c;
    }
  }

  // "NAME=(--option value" and "NAME+=(--option value": a list of options begins.
  bool begins_list(char c) const {
    if (c != '(' || !word_.ends_with('=')) return false;
    const std::size_t first = line_.find_first_not_of(" \t\"'", next_ + 1);
    return first != std::string::npos && line_.compare(first, 2, "--") == 0;
  }

  // "$(...)" and "$((...))" are of one word, whatever blanks are in them. One that is not closed on
  // the line is read as other words are.
  void take_substitution() {
    std::size_t depth = 0;
    for (std::size_t end = next_; end < line_.size() && scanned_ < kMostScanned; ++end) {
      ++scanned_;
      if (line_[end] == '(') ++depth;
      if (line_[end] != ')' || --depth > 0) continue;
      word_ += line_.substr(next_, end + 1 - next_);
      next_ = end;
      return;
    }
    word_ += '(';
  }

  void take_quoted(char c) {
    if (c == quote_) {
      quote_ = 0;
    } else {
      word_ += c;
    }
  }

  bool is_of_word(char c) {
    const bool is_bracket = c == '(' || c == ')';
    has_dollar_ = has_dollar_ || c == '$';
    return c != '\\' && !(is_bracket && !has_dollar_);
  }

  void end_word() {
    if (!word_.empty()) words_.push_back({.text = word_, .is_quoted = is_quoted_});
    word_.clear();
    has_dollar_ = false;
    is_quoted_ = false;
  }

  static constexpr std::size_t kMostScanned = std::size_t{4} << 20;

  const std::string& line_;
  std::size_t next_ = 0;
  std::size_t scanned_ = 0;  // for ends of substitutions
  char quote_ = 0;
  bool is_comment_ = false;
  bool has_dollar_ = false;
  bool is_quoted_ = false;
  std::string word_;
  std::vector<LineWord> words_;
};

std::vector<LineWord> words_of(const std::string& line) { return LineWords(line).all(); }

// What stands at a '$': a name, what holds where it has no value, and where the text goes on.
struct Reference {
  std::string name;
  std::optional<std::string> otherwise;  // of "${NAME:-text}"
  std::size_t end = 0;
  bool closed = true;
};

Reference reference_at(const std::string& word, std::size_t dollar) {
  const bool braced = dollar + 1 < word.size() && word[dollar + 1] == '{';
  const std::size_t begin = dollar + (braced ? 2 : 1);
  std::size_t end = begin;
  while (end < word.size() &&
         (std::isalnum(static_cast<unsigned char>(word[end])) != 0 || word[end] == '_')) {
    ++end;
  }
  Reference reference{.name = word.substr(begin, end - begin), .otherwise = {}, .end = end};
  if (!braced) return reference;
  const std::size_t close = word.find('}', end);
  if (word.compare(end, 2, ":-") == 0 && close != std::string::npos) {
    reference.otherwise = word.substr(end + 2, close - end - 2);
    end = close;
  }
  reference.closed = end < word.size() && word[end] == '}';
  reference.end = end + 1;
  return reference;
}

constexpr std::size_t kLongestValue = 4096;  // a longer one stays as it is written

constexpr std::size_t kMostAdded = std::size_t{16} << 20;  // bytes of values, in all

// "$NAME" and "${NAME}" by their values, once and where they are known.
std::string resolved(const std::string& word, const Variables& variables) {
  std::string text;
  for (std::size_t i = 0; i < word.size();) {
    if (text.size() > kLongestValue) return word;
    const Reference reference = word[i] == '$' ? reference_at(word, i) : Reference{};
    const auto found = variables.find(reference.name);
    const bool is_known = found != variables.end() || reference.otherwise.has_value();
    if (word[i] != '$' || !is_known || !reference.closed) {
      text += word[i++];
      continue;
    }
    text += found != variables.end() ? found->second : *reference.otherwise;
    i = reference.end;
  }
  const auto number_of = [&](const std::string& name) -> std::optional<long long> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : whole_number(found->second);
  };
  return with_shell_numbers(std::move(text), number_of);
}

// Where a command ends or its output goes: "|", "&&", ">", "2>&1", and the script that it runs.
bool ends_options(const std::string& word) {
  const std::size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
  const bool is_operator =
      digits < word.size() && std::string_view("|&<>").find(word[digits]) != std::string_view::npos;
  return is_operator || word.ends_with(".py") || word.ends_with(".sh");
}

// A line's settings, given what the lines before it left open.
class Lines {
 public:
  void take(const std::string& line, std::size_t number) {
    const std::size_t first = line.find_first_not_of(" \t");
    goes_on_ = line.ends_with('\\');
    if (first != std::string::npos && line.compare(first, 8, "#SBATCH ") == 0) {
      runs_ = Runs::yes;
      const std::size_t before = settings.size();
      take_words(line.substr(first + 8), number);
      for (std::size_t i = before; i < settings.size(); ++i) note_allotted(settings[i]);
      return;
    }
    const auto resolve = [this](const std::string& word) { return value_of(word); };
    for (const std::string& statement : statements_of(line)) {
      const std::string rest = branches_.take(statement, resolve);
      runs_ = branches_.runs();
      if (runs_ == Runs::no) std::swap(settings, idle);
      const std::size_t before = settings.size();
      take_words(rest, number);
      for (std::size_t i = before; i < settings.size(); ++i) {
        settings[i].branches = branches_.places();
      }
      if (runs_ == Runs::no) std::swap(settings, idle);
      if (!goes_on_) is_script_named_ = is_in_container_options_ = is_value_due_ = false;
    }
  }

  // The text behind the line that was taken last: how many of its lines are no commands of this
  // script. One that goes into a configuration is kept.
  std::size_t take_document(const std::vector<std::string>& lines, std::size_t opener) {
    const auto opened = document_opened_by(lines[opener]);
    if (!opened || ++documents_ > kMostDocuments) return 0;
    const auto count = lines_of_document(*opened, lines, opener);
    if (!count || opened->goes == OpenedDocument::Goes::to_shell) return 0;
    if (opened->goes == OpenedDocument::Goes::to_program) return *count;
    const std::string name = value_of(opened->file);
    if (!is_configuration_name(name)) return 0;
    if (runs_ == Runs::no) return *count;
    write(name, text_of(*opened, lines, opener, *count));
    return *count;
  }

  const std::vector<BranchBlock>& blocks() const { return branches_.blocks(); }

  std::vector<Setting> settings;
  std::vector<Setting> idle;  // of branches that are not taken
  std::set<std::string> commands;
  std::vector<Setting> operands;
  std::vector<ScriptFile> written;

 private:
  static constexpr std::size_t kMostCommands = 1000;
  static constexpr std::size_t kLongestCommand = 200;
  static constexpr std::size_t kMostDocuments = 16;

  std::string text_of(const OpenedDocument& opened, const std::vector<std::string>& lines,
                      std::size_t opener, std::size_t count) {
    std::string text;
    for (std::size_t i = opener + 1; i <= opener + count; ++i) {
      const std::string line = line_of_document(opened, lines[i]);
      text += (opened.has_variables ? value_of(line) : line) + "\n";
    }
    return text;
  }

  // Of a name that is written twice nobody knows what is used.
  void write(const std::string& name, std::string text) {
    const auto before = std::ranges::find(written, name, &ScriptFile::name);
    if (before != written.end()) {
      before->is_certain = false;
    } else {
      written.push_back({.name = name, .text = std::move(text), .is_certain = runs_ == Runs::yes});
    }
  }

  void take_words(const std::string& text, std::size_t number) {
    open_.reset();
    program_.clear();
    caller_.clear();
    for (const LineWord& word : words_of(text)) {
      if (holds_options(word.text)) {
        for (const LineWord& inner : words_of(word.text)) take_word(inner, number);
      } else {
        take_word(word, number);
      }
    }
    open_.reset();
  }

  // Options that stand in one pair of quotes: "--vocab-size 128256", but not "--data-path=a b".
  static bool holds_options(const std::string& word) {
    const std::size_t blank = word.find(' ');
    if (!word.starts_with("--") || blank == std::string::npos) return false;
    return word.find('=') > blank || word.find(" --") != std::string::npos;
  }

  // "docker run --network host IMAGE torchrun ...": a container's options take one value at most;
  // its image ends them. Whether the word is of them.
  bool take_container_word(const LineWord& taken, std::size_t line) {
    const std::string& word = taken.text;
    const bool is_short = word.starts_with('-') && !word.starts_with("--");
    if (word.starts_with("--") && word.size() > 2) {
      const std::size_t equals = word.find('=');
      settings.push_back({.path = word.substr(0, equals), .value = "true", .line = line});
      settings.back().is_of_container = true;
      if (equals != std::string::npos) settings.back().value = value_of(word.substr(equals + 1));
      open_ = equals == std::string::npos ? std::optional(settings.size() - 1) : std::nullopt;
    } else if (open_) {
      settings[*open_].value = value_of(word);
      open_.reset();
    } else if (!is_short && !is_value_due_) {
      return false;
    }
    is_value_due_ = is_short;
    return true;
  }

  void take_word(const LineWord& taken, std::size_t line) {
    const std::string& word = taken.text;
    if (is_of_container(taken, line)) return;
    if (open_ && !fresh_ && is_all_arguments(word)) return open_.reset();
    const std::size_t equals = word.find('=');
    if (word.starts_with("--") && word.size() > 2) {
      take_option(taken, line);
    } else if (equals != std::string::npos && is_name(assigned_name(word, equals))) {
      take_assignment(assigned_name(word, equals), word.substr(equals + 1), line,
                      word[equals - 1] == '+');
    } else if (word == "-m") {  // of Python: a module follows
      open_.reset();
    } else if (open_ && (ends_options(word) || names_list(word))) {
      open_.reset();
      note_command(word, line);
    } else if (open_) {
      extend(settings[*open_], taken);
    } else {
      note_command(word, line);
    }
  }

  // What the script itself is called with: options of their own, and no value of the last one.
  static bool is_all_arguments(const std::string& word) {
    return word == "$@" || word == "$*" || word.starts_with("${@") || word.starts_with("${*");
  }

  // Whether a word is an option of what starts a container; an assignment stands in front of none.
  bool is_of_container(const LineWord& taken, std::size_t line) {
    if (!is_in_container_options_) return false;
    const std::size_t equals = taken.text.find('=');
    if (equals != std::string::npos && is_name(taken.text.substr(0, equals))) {
      open_.reset();
      is_value_due_ = false;
      return false;
    }
    is_in_container_options_ = take_container_word(taken, line);
    return is_in_container_options_;
  }

  // "--name" and "--name=value".
  void take_option(const LineWord& taken, std::size_t line) {
    const std::string& word = taken.text;
    const std::size_t equals = word.find('=');
    open_ = settings.size();
    settings.push_back({.path = word.substr(0, equals), .value = "true", .line = line});
    fresh_ = true;
    if (equals == std::string::npos) return;
    extend(settings.back(), {.text = word.substr(equals + 1), .is_quoted = taken.is_quoted});
    open_.reset();
  }

  // What a batch system gives a script in variables: what its own lines ask for. Source: sbatch(1),
  // OUTPUT ENVIRONMENT VARIABLES.
  void note_allotted(const Setting& asked) {
    static const std::map<std::string, std::vector<std::string>, std::less<>> kNames = {
        {"--nodes", {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}},
        {"--ntasks", {"SLURM_NTASKS", "SLURM_NPROCS"}},
        {"--ntasks-per-node", {"SLURM_NTASKS_PER_NODE"}},
        {"--gpus-per-node", {"SLURM_GPUS_PER_NODE"}},
        {"--cpus-per-task", {"SLURM_CPUS_PER_TASK"}}};
    const auto found = kNames.find(asked.path);
    if (found == kNames.end() || !whole_number(asked.value)) return;
    for (const std::string& name : found->second) variables_[name] = asked.value;
    const long long tasks = allotted("SLURM_NNODES") * allotted("SLURM_NTASKS_PER_NODE");
    if (tasks == 0) return;
    for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS"}) {
      variables_.emplace(name, std::to_string(tasks));
    }
  }

  // The number that a variable holds; 0: none, or more than any cluster has.
  long long allotted(const char* name) const {
    constexpr long long kMost = 1'000'000;
    const auto found = variables_.find(name);
    const auto number = found == variables_.end() ? std::nullopt : whole_number(found->second);
    return number && *number <= kMost ? std::max(0LL, *number) : 0;
  }

  // Programs, their subcommands and scripts, which say whose options follow.
  void note_command(const std::string& word, std::size_t line) {
    if (commands.size() >= kMostCommands || word.size() > kLongestCommand) return;
    if (word.find_first_of("|&<>") != std::string::npos) is_script_named_ = false;
    if (runs_ == Runs::no) return;
    const bool is_plain = word.find_first_of("$|&<>\"'") == std::string::npos;
    if (is_plain && is_script(word)) is_script_named_ = true;
    if (note_operand(word, line) || !is_plain) return;
    for (const std::string& name : names_of(word)) commands.insert(name);
    if (!program_.empty()) commands.insert(program_ + " " + word);
    is_in_container_options_ = starts_container(program_, word);
    caller_ = program_;
    program_ = word;
  }

  // Source: docker-run(1), podman-run(1), apptainer exec and run, 2026.
  static bool starts_container(const std::string& program, const std::string& word) {
    static const std::set<std::string, std::less<>> kPrograms = {"docker", "podman", "nerdctl",
                                                                 "apptainer", "singularity"};
    return (word == "run" || word == "exec") && kPrograms.contains(program);
  }

  // What is told settings by their names, NAME=VALUE, behind it.
  static bool is_script(const std::string& word) {
    return word.ends_with(".py") || word.ends_with(".yml") || word.ends_with(".yaml");
  }

  // "a/b/run.py", "b/run.py" and "run.py".
  static std::vector<std::string> names_of(const std::string& path) {
    std::vector<std::string> names = {path};
    const std::size_t last = path.rfind('/');
    if (last == std::string::npos) return names;
    const std::size_t before = last == 0 ? std::string::npos : path.rfind('/', last - 1);
    if (before != std::string::npos) names.push_back(path.substr(before + 1));
    names.push_back(path.substr(last + 1));
    return names;
  }

  // A configuration behind the program that is called with it.
  bool note_operand(const std::string& word, std::size_t line) {
    if (program_.empty() || operands.size() >= kMostCommands) return false;
    const std::string value = value_of(word);
    const bool is_file = value.ends_with(".yaml") || value.ends_with(".yml") ||
                         value.ends_with(".json") || value.starts_with('$');
    if (!is_file) return false;
    std::vector<std::string> names = names_of(program_);
    if (!caller_.empty()) names.push_back(caller_ + " " + program_);
    for (const std::string& name : names) {
      operands.push_back({.path = "$" + name, .value = value, .line = line});
    }
    return true;
  }

  // Of "NAME=VALUE" and of "NAME+=VALUE".
  static std::string assigned_name(const std::string& word, std::size_t equals) {
    const bool is_added = equals > 0 && word[equals - 1] == '+';
    return word.substr(0, equals - (is_added ? 1 : 0));
  }

  void take_assignment(const std::string& name, const std::string& text, std::size_t line,
                       bool is_added) {
    if (take_options(name, text, line)) return;
    std::string value = value_of(text);
    if (value.empty()) return;  // a list of options begins
    if (is_added) value = value_of("${" + name + ":-}") + value;
    open_.reset();
    assign(name, value);
    settings.push_back({.path = name, .value = value, .line = line, .is_told = is_script_named_});
  }

  // Options that a variable holds, NAME="--nnodes 2 --node_rank 0": each is a setting where it
  // stands, whoever uses the variable.
  bool take_options(const std::string& name, const std::string& value, std::size_t line) {
    const std::vector<LineWord> words = words_of(value);
    if (std::ranges::none_of(words, is_option, &LineWord::text)) return false;
    lists_.insert(name);
    open_.reset();
    for (const LineWord& word : words) {
      if (!names_list(word.text)) take_word(word, line);
    }
    open_.reset();
    return true;
  }

  static bool is_option(const std::string& word) {
    return word.starts_with("--") && word.size() > 2 &&
           std::isalpha(static_cast<unsigned char>(word[2])) != 0;
  }

  // "$NAME" and "${NAME}" of a variable that holds options.
  bool names_list(const std::string& word) const {
    if (!word.starts_with('$')) return false;
    const Reference reference = reference_at(word, 0);
    return reference.end == word.size() && lists_.contains(reference.name);
  }

  std::string value_of(const std::string& word) {
    if (added_ > kMostAdded || word.find('$') == std::string::npos) return word;
    std::string value = resolved(word, variables_);
    added_ += value.size();
    return value;
  }

  // Values of a list beyond the longest are passed over.
  void extend(Setting& setting, const LineWord& word) {
    const std::string more = value_of(word.text);
    const bool has_room = fresh_ || setting.value.size() + more.size() < kLongestValue;
    if (!has_room) return;
    const bool is_one = word.is_quoted && more.find_first_of(" \t$") != std::string::npos;
    if (is_one && setting.words.empty() && !fresh_) setting.words = parted(setting.value);
    if (is_one) {
      setting.words.push_back(more);
    } else if (!setting.words.empty()) {
      std::ranges::move(parted(more), std::back_inserter(setting.words));
    }
    setting.value = fresh_ ? more : setting.value + " " + more;
    fresh_ = false;
  }

  static std::vector<std::string> parted(const std::string& value) {
    std::istringstream stream(value);
    return {std::istream_iterator<std::string>(stream), {}};
  }

  // A branch that is taken has the last word. Otherwise a name with two values has none that is
  // plain: of branches that may be taken, or of which a part of a script no longer tells.
  void assign(const std::string& name, const std::string& value) {
    if (runs_ == Runs::no) return;
    if (runs_ == Runs::yes && branches_.is_inside()) {
      ambiguous_.erase(name);
      variables_[name] = value;
      return;
    }
    const auto [known, is_new] = variables_.emplace(name, value);
    if (!is_new && known->second != value) ambiguous_.insert(name);
    if (ambiguous_.contains(name)) variables_.erase(name);
  }

  ShellBranches branches_;
  Runs runs_ = Runs::yes;  // the statement at hand
  Variables variables_;
  std::size_t added_ = 0;      // bytes of values of variables
  std::size_t documents_ = 0;  // texts that go into files
  std::set<std::string> ambiguous_;
  std::set<std::string> lists_;      // variables that hold options
  std::optional<std::size_t> open_;  // the option that takes the next words
  bool fresh_ = false;               // and has none so far
  std::string program_;              // the command before the word at hand
  std::string caller_;               // and the one before that
  bool goes_on_ = false;             // the line before ends in a backslash
  bool is_in_container_options_ = false;
  bool is_value_due_ = false;     // of a container's short option
  bool is_script_named_ = false;  // in the command at hand: what follows is told to it
};

}  // namespace

ScriptSettings script_settings(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  for (std::size_t i = 0; i < all.size(); ++i) {
    lines.take(all[i], i + 1);
    i += lines.take_document(all, i);
  }
  return {.settings = std::move(lines.settings),
          .idle = std::move(lines.idle),
          .blocks = lines.blocks(),
          .commands = std::move(lines.commands),
          .operands = std::move(lines.operands),
          .written = std::move(lines.written)};
}

}  // namespace placet
