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
#include "interop/shell_ends.h"
#include "interop/shell_lists.h"
#include "interop/shell_words.h"
#include "interop/source_parts.h"

namespace placet {
namespace {

using Variables = std::map<std::string, std::string>;

bool is_name(const std::string& word) {
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word[0])) != 0) return false;
  for (const char c : word) {
    if (!is_of_variable(c)) return false;
  }
  return true;
}

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
  while (end < word.size() && is_of_variable(word[end])) ++end;
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

// What a launcher sets for each process: "${NAME:-1}" is not 1 there. Source: mpirun(1) of Open
// MPI, ENVIRONMENT VARIABLES.
bool is_of_launcher(const std::string& name) {
  return name.starts_with("OMPI_") || name.starts_with("PMI_") || name.starts_with("PMIX_");
}

// "$NAME" and "${NAME}" by their values, once and where they are known.
std::string resolved(const std::string& word, const Variables& variables) {
  std::string text;
  for (std::size_t i = 0; i < word.size();) {
    if (text.size() > kLongestValue) return word;
    const Reference reference = word[i] == '$' ? reference_at(word, i) : Reference{};
    const auto found = variables.find(reference.name);
    const bool has_default = reference.otherwise && !is_of_launcher(reference.name);
    const bool is_known = found != variables.end() || has_default;
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

bool is_script_file(const std::string& word) {
  return word.ends_with(".py") || word.ends_with(".sh");
}

// Where a further program begins, behind what starts it.
bool starts_program(const std::string& word) {
  static const std::set<std::string, std::less<>> kPrograms = {"python", "python3", "torchrun",
                                                               "bash",   "sh",      "env"};
  return kPrograms.contains(word.substr(word.rfind('/') + 1));
}

// Where a command ends or its output goes: "|", "&&", ">", "2>&1", and the program or script that
// it runs.
bool ends_options(const std::string& word) {
  const std::size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
  const bool is_operator =
      digits < word.size() && std::string_view("|&<>").find(word[digits]) != std::string_view::npos;
  return is_operator || is_script_file(word) || starts_program(word);
}

// A line's settings, given what the lines before it left open.
class Lines {
 public:
  void take(const std::string& line, std::size_t number) {
    take_line(line, number);
    if (runs_ == Runs::no) passed_over.insert(number);
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

  // Lists of options, which are no values: of one that begins on a line by itself nothing else is
  // seen.
  void expect(const std::vector<OptionList>& lists, std::map<std::size_t, std::size_t> cut_off) {
    for (const OptionList& list : lists) lists_.insert(list.name);
    cut_off_ = std::move(cut_off);
  }

  // What lists hold that no command gets goes to what is idle. They come line by line.
  void leave_out(const std::vector<OptionList>& lists) {
    const auto list_of = [&](const Setting& setting) {
      const auto after = std::ranges::upper_bound(lists, setting.line, {}, &OptionList::first);
      const bool is_inside = after != lists.begin() && setting.line <= std::prev(after)->last;
      return is_inside ? &*std::prev(after) : nullptr;
    };
    std::vector<Setting> rest;
    for (Setting& setting : settings) {
      const OptionList* list = list_of(setting);
      if (list != nullptr) setting.unused_list = list->name;
      (list != nullptr ? idle : rest).push_back(std::move(setting));
    }
    settings = std::move(rest);
    std::erase_if(operands, [&](const Setting& operand) { return list_of(operand) != nullptr; });
  }

  const std::vector<BranchBlock>& blocks() const { return branches_.blocks(); }

  std::vector<Setting> settings;
  std::vector<Setting> idle;          // of branches that are not taken, and of lists
  std::set<std::size_t> passed_over;  // lines in branches that are not taken
  std::set<std::string> commands;
  std::vector<Setting> operands;
  std::vector<ScriptFile> written;

 private:
  static constexpr std::size_t kMostCommands = 1000;
  static constexpr std::size_t kLongestCommand = 200;
  static constexpr std::size_t kMostDocuments = 16;

  void take_line(const std::string& line, std::size_t number) {
    const std::size_t before = settings.size();
    take_commands(line, number);
    const auto end = cut_off_.find(number);
    if (end == cut_off_.end()) return;
    for (std::size_t i = before; i < settings.size(); ++i) {
      settings[i].ended_at = end->second;
      idle.push_back(std::move(settings[i]));
    }
    settings.resize(std::min(before, settings.size()));
  }

  void take_commands(const std::string& line, std::size_t number) {
    const std::size_t first = line.find_first_not_of(" \t");
    goes_on_ = line.ends_with('\\');
    if (first != std::string::npos && line.compare(first, 8, "#SBATCH ") == 0) {
      runs_ = Runs::yes;
      const std::size_t before = settings.size();
      const std::size_t asked_before = operands.size();
      take_words(line.substr(first + 8), number, "sbatch");
      for (std::size_t i = before; i < settings.size(); ++i) note_allotted(settings[i]);
      for (std::size_t i = asked_before; i < operands.size(); ++i) note_allotted(operands[i]);
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

  void take_words(const std::string& text, std::size_t number, const std::string& caller = "") {
    open_.reset();
    program_.clear();
    caller_.clear();
    short_option_.clear();
    if (!was_open_line_ || has_ended_) {
      launcher_ = caller;
      command_ = caller.empty() ? number : 0;  // what is asked of a batch system is for all
    }
    was_open_line_ = goes_on_;
    has_ended_ = goes_on_ && ends_command(text);
    for (const LineWord& word : words_of(text)) {
      if (holds_options(word.text)) {
        for (const LineWord& inner : words_of(word.text)) take_word(inner, number);
      } else {
        take_word(word, number);
      }
      if (word.is_open) command_ = 0;  // what follows is of a variable
    }
    open_.reset();
  }

  // "run.py && \\" and "run.py; \\": another command begins on the next line.
  static bool ends_command(const std::string& text) {
    const std::size_t last = text.find_last_not_of(" \t\\");
    return last == std::string::npos || text.substr(0, last + 1).ends_with("&&");
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
    if (word == "--") return open_.reset();  // a command follows
    if (is_short_option(word)) return take_short_option(word, line);
    const std::size_t equals = word.find('=');
    if (word.starts_with("--") && word.size() > 2) {
      take_option(taken, line);
    } else if (equals != std::string::npos && is_name(assigned_name(word, equals))) {
      take_assignment(assigned_name(word, equals), word.substr(equals + 1), line,
                      word[equals - 1] == '+');
    } else if (open_ && (ends_options(word) || names_list(word))) {
      open_.reset();
      note_command(word, line);
    } else if (open_) {
      extend(settings[*open_], taken);
    } else {
      note_command(word, line);
    }
  }

  // "-np", but not "-1".
  static bool is_short_option(const std::string& word) {
    return word.size() > 1 && word[0] == '-' &&
           std::isalpha(static_cast<unsigned char>(word[1])) != 0;
  }

  // The word behind it may be its value, "-N 2"; a number may also stand in it, "-N2".
  void take_short_option(const std::string& word, std::size_t line) {
    open_.reset();
    short_option_ = word;
    if (word == "-m") short_option_.clear();  // of Python: a module follows
    if (word.size() == 2 || !whole_number(word.substr(2))) return;
    short_option_ = word.substr(0, 2);
    note_short_option(word.substr(2), line);
  }

  // "mpirun -np 16": the value of a short option, by the program and the option.
  void note_short_option(const std::string& value, std::size_t line) {
    const std::string option = std::exchange(short_option_, "");
    if (option.empty() || launcher_.empty() || operands.size() >= kMostCommands) return;
    for (const std::string& name : names_of(launcher_)) {
      operands.push_back({.path = "$" + name, .value = value_of(value), .line = line});
      operands.back().command = command_;
      operands.back().path.append(" ").append(option);
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
    if (!launcher_.empty() && !is_in_list_) settings.back().command = command_;
    fresh_ = true;
    if (equals == std::string::npos) return;
    extend(settings.back(), {.text = word.substr(equals + 1), .is_quoted = taken.is_quoted});
    open_.reset();
  }

  // What a batch system gives a script in variables: what its own lines ask for. Source: sbatch(1),
  // OUTPUT ENVIRONMENT VARIABLES.
  void note_allotted(const Setting& asked) {
    static const std::map<std::string, std::vector<std::string>, std::less<>> kNames = {
        {"$sbatch -N", {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}},
        {"--nodes", {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}},
        {"$sbatch -n", {"SLURM_NTASKS", "SLURM_NPROCS"}},
        {"--ntasks", {"SLURM_NTASKS", "SLURM_NPROCS"}},
        {"--ntasks-per-node", {"SLURM_NTASKS_PER_NODE"}},
        {"--gpus-per-node", {"SLURM_GPUS_PER_NODE"}},
        {"$sbatch -c", {"SLURM_CPUS_PER_TASK"}},
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

  // Behind a short option stands its value, or, of one that takes none, what is started.
  void note_launcher(const std::string& word, bool is_plain, std::size_t line) {
    const bool is_program = is_script_file(word) || starts_program(word) || word.starts_with('.');
    if (!is_program && !short_option_.empty()) return note_short_option(word, line);
    if (is_plain) launcher_ = word;
    short_option_.clear();
  }

  // Programs, their subcommands and scripts, which say whose options follow.
  void note_command(const std::string& word, std::size_t line) {
    if (commands.size() >= kMostCommands || word.size() > kLongestCommand) return;
    if (word.find_first_of("|&<>") != std::string::npos) is_script_named_ = false;
    if (runs_ == Runs::no) return;
    const bool is_plain = word.find_first_of("$|&<>\"'") == std::string::npos;
    note_launcher(word, is_plain, line);
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
      operands.back().command = command_;
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

  // Options that a variable holds, NAME="--nnodes 2 --node_rank 0", or a whole command with a
  // script: each is a setting where it stands, whoever uses the variable.
  bool take_options(const std::string& name, const std::string& value, std::size_t line) {
    const std::vector<LineWord> words = words_of(value);
    const bool is_command =
        !words.empty() && starts_program(words.front().text) &&
        std::ranges::any_of(words, [](const LineWord& word) { return word.text.ends_with(".py"); });
    if (!is_command && std::ranges::none_of(words, is_option, &LineWord::text)) return false;
    lists_.insert(name);
    open_.reset();
    is_in_list_ = true;
    for (const LineWord& word : words) {
      if (!names_list(word.text)) take_word(word, line);
    }
    is_in_list_ = false;
    open_.reset();
    return true;
  }

  static bool is_option(const std::string& word) {
    return word.starts_with("--") && word.size() > 2 &&
           std::isalpha(static_cast<unsigned char>(word[2])) != 0;
  }

  // "$NAME", "${NAME}" and "${NAME[@]}" of a variable that holds options.
  bool names_list(const std::string& word) const {
    if (!word.starts_with('$')) return false;
    const Reference reference = reference_at(word, 0);
    const bool is_whole = reference.closed && reference.end == word.size();
    const bool is_array = word.ends_with("[@]}") || word.ends_with("[*]}");
    return (is_whole || is_array) && lists_.contains(reference.name);
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
  std::set<std::string> lists_;                 // variables that hold options
  std::map<std::size_t, std::size_t> cut_off_;  // lines that no command gets
  std::optional<std::size_t> open_;             // the option that takes the next words
  bool fresh_ = false;                          // and has none so far
  std::string program_;                         // the command before the word at hand
  std::string caller_;                          // and the one before that
  std::string launcher_;                        // the last one that is no value of a short option
  std::string short_option_;                    // the word before the one at hand
  std::size_t command_ = 0;                     // the line where it begins
  bool is_in_list_ = false;     // the word at hand is of a variable that holds options
  bool goes_on_ = false;        // the line at hand ends in a backslash
  bool was_open_line_ = false;  // and so did the one before
  bool has_ended_ = false;      // and ended its command all the same
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
  const std::vector<OptionList> lists = option_lists(all);
  lines.expect(lists, cut_off_lines(all, lists));
  for (std::size_t i = 0; i < all.size(); ++i) {
    lines.take(all[i], i + 1);
    i += lines.take_document(all, i);
  }
  const std::vector<OptionList> unused = unused_lists(all, lines.passed_over);
  if (!unused.empty()) lines.leave_out(unused);
  return {.settings = std::move(lines.settings),
          .idle = std::move(lines.idle),
          .blocks = lines.blocks(),
          .commands = std::move(lines.commands),
          .operands = std::move(lines.operands),
          .written = std::move(lines.written)};
}

}  // namespace placet
