// placet completion bash|zsh|fish: a script that completes subcommands, flags and catalogue names.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string_view>

#include "cli/command.h"
#include "cli/output.h"

namespace placet {
namespace {

// What a flag's value, or a subcommand's argument, may be. The shells offer nothing for the values
// of flags that are not listed.
struct Values {
  std::string_view of;
  std::string_view words;
  std::string_view listings;  // subcommands whose --names are values
  bool files = false;         // files too, where no word fits
  bool more = false;          // a word is seldom the whole value: no space after it
};
constexpr std::array kFlagValues = {
    Values{.of = "--job", .files = true},
    Values{.of = "--data", .files = true},
    Values{.of = "--html", .files = true},
    Values{.of = "--trace", .files = true},
    Values{.of = "--cluster", .listings = "devices clusters", .files = true, .more = true},
    Values{.of = "--engine", .listings = "engines"},
    Values{.of = "--placement", .listings = "strategies schedules", .more = true},
    Values{.of = "--recompute", .words = "none full selective every= first=", .more = true},
    Values{.of = "--routing", .words = "balanced expected= capacity= worst", .more = true},
    Values{.of = "--balance-loss", .words = "none sequence micro-batch global"},
    Values{.of = "--accept", .words = "aux-scope"},
    Values{.of = "--loss", .words = "token-mean"},
    Values{.of = "--explain",
           .words = "memory communication parameters optimizer gradients activations transient "
                    "overhead"},
    Values{.of = "--fault",
           .words = "delete( duplicate( move( regroup( rescale( reduce_op( swap_shards( "
                    "shift_slice( drop_zero( add_zero( early_free( reuse_buffer( drop_wait( "
                    "drop_record( stale( skip_update( local_norm( local_weight( wrong_key( "
                    "copy_key( drop_use( detach_adjoint( swap_order( substitute( redim( "
                    "drop_position( compress( mask(",
           .more = true},
    Values{.of = "--goal", .words = "time memory cost"},
    Values{.of = "--mode", .words = "canonical declared f32 f64"},
    Values{.of = "--experiment", .words = "memory communication integrity"},
    Values{.of = "--require", .listings = "strategies schedules", .more = true},
    Values{.of = "--color", .words = "auto always never"}};
constexpr std::array kArguments = {Values{.of = "model", .listings = "models", .files = true},
                                   Values{.of = "derive", .listings = "models", .files = true},
                                   Values{.of = "simulate", .listings = "models", .files = true},
                                   Values{.of = "compare", .listings = "models", .files = true},
                                   Values{.of = "lower", .listings = "models", .files = true},
                                   Values{.of = "check", .listings = "models", .files = true},
                                   Values{.of = "verify", .listings = "models", .files = true},
                                   Values{.of = "run", .listings = "models", .files = true},
                                   Values{.of = "bugs", .listings = "bugs"},
                                   Values{.of = "plan", .listings = "models", .files = true},
                                   Values{.of = "validate", .files = true},
                                   Values{.of = "explain", .listings = "explain"},
                                   Values{.of = "data", .words = "check list", .files = true},
                                   Values{.of = "completion", .words = "bash zsh fish"}};

template <std::size_t N>
Values values_of(const std::array<Values, N>& table, std::string_view name) {
  const auto at = std::find_if(table.begin(), table.end(),
                               [&](const Values& values) { return values.of == name; });
  return at == table.end() ? Values{.of = name} : *at;
}

bool needs_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

std::vector<std::string> commands_of(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

bool is_listed(std::string_view flag) {
  return std::any_of(kFlagValues.begin(), kFlagValues.end(),
                     [&](const Values& values) { return values.of == flag; });
}

void add_flags_with_any_value(const CLI::App& app, std::set<std::string>& flags) {
  for (const CLI::Option* option : app.get_options()) {
    if (!needs_value(*option)) continue;
    for (const std::string& name : option->get_lnames()) {
      if (!is_listed("--" + name)) flags.insert("--" + name);
    }
  }
}

// Flags of any subcommand after which a value must stand of which nothing can be said.
std::set<std::string> flags_with_any_value(const CLI::App& program) {
  std::set<std::string> flags;
  add_flags_with_any_value(program, flags);
  for (const CLI::App* command : program.get_subcommands({})) {
    add_flags_with_any_value(*command, flags);
  }
  return flags;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// The calls of the program that print the values.
std::string names_of(std::string_view listings) {
  std::string calls;
  for (const std::string_view listing : split_words(listings)) {
    calls +=
        fmt::format("{}$(\"$program\" {} --names 2>/dev/null)", calls.empty() ? "" : " ", listing);
  }
  return calls;
}

// --- bash and zsh --------------------------------------------------------------------------------

// bash cuts words at separators of its own (: = @) and puts a choice in place of the last piece
// only. So the word is read off the line, and what stands before the last separator is taken off
// each choice. zsh cuts at blanks alone and has no such separators. A word with a quote is left to
// the shell.
constexpr std::string_view kBashHead = R"(_placet() {
  COMPREPLY=()
  case "${COMP_WORDS[COMP_CWORD]}" in *[\"\']*) return ;; esac
  local program="${COMP_WORDS[0]}" line="${COMP_LINE:0:$COMP_POINT}" command="" before="" word=""
  local rest="" part="" flags="" list="" kept="" files="" more="" cut=""
  command -v "$program" >/dev/null 2>&1 || program=placet
  word="${line##*[[:space:]]}"
  rest="${line%"$word"}"
  rest="${rest#*[[:space:]]}"
  while [ -n "$rest" ]; do
    part="${rest%%[[:space:]]*}"
    rest="${rest#"$part"}"
    rest="${rest#[[:space:]]}"
    [ -n "$part" ] || continue
    case "$before $part" in
      "--color "* | "--width "* | "--data "* | "--memory-limit "* | *" -"*) ;;
      *) [ -n "$command" ] || command="$part" ;;
    esac
    before="$part"
  done
  case "$word" in
    --*=*) before="${word%%=*}" kept="${word%%=*}=" ;;
    -*) before=- ;;
  esac
)";

constexpr std::string_view kBashTail = R"(  [ -n "$files" ] || compopt +o default 2>/dev/null
  [ -z "$more" ] || compopt -o nospace 2>/dev/null
  cut="$word"
  for part in : = @; do
    case "${COMP_WORDBREAKS-}" in *"$part"*) cut="${cut##*"$part"}" ;; esac
  done
  cut="${word%"$cut"}"
  for part in $list; do
    part="$kept$part"
    case "$part" in "$word"*) COMPREPLY+=("${part#"$cut"}") ;; esac
  done
}
complete -o default -F _placet placet
)";

// One line of a case: what is set for a flag or a subcommand.
std::string bash_case(const Values& values) {
  std::string sets;
  // A term of a placement follows a colon or a plus.
  if (values.of == "--placement") sets += " kept=\"${word%\"${word##*[:+]}\"}\"";
  const std::string list =
      values.listings.empty() ? std::string(values.words) : names_of(values.listings);
  if (!list.empty()) sets += fmt::format(" list=\"{}\"", list);
  if (values.files) sets += " files=1";
  if (values.more) sets += " more=1";
  return fmt::format("    {}){} ;;\n", values.of, sets);
}

std::string bash_script(const CLI::App& program) {
  const std::string commands = fmt::format("{}", fmt::join(commands_of(program), " "));
  std::string text(kBashHead);
  text += "  case \"$command\" in\n";
  for (const CLI::App* command : program.get_subcommands({})) {
    text += fmt::format("    {}) flags=\"{}\" ;;\n", command->get_name(),
                        fmt::join(flags_of(*command), " "));
  }
  text += "  esac\n  case \"$before\" in\n";
  text += fmt::format("    -) list=\"$flags {}\" ;;\n", fmt::join(flags_of(program), " "));
  for (const Values& values : kFlagValues) text += bash_case(values);
  text += fmt::format("    {}) ;;\n", fmt::join(flags_with_any_value(program), " | "));
  text += "    *) case \"$command\" in\n";
  text += bash_case({.of = "\"\"", .words = commands});
  for (const Values& values : kArguments) text += bash_case(values);
  return text + "    esac ;;\n  esac\n" + std::string(kBashTail);
}

std::string zsh_script(const CLI::App& program) {
  return "# zsh completion for placet: source <(placet completion zsh)\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_script(program);
}

// --- fish ----------------------------------------------------------------------------------------

// What follows the flag or argument: files or not, and the words.
std::string fish_values(const Values& values) {
  std::string words(values.words);
  for (const std::string_view listing : split_words(values.listings)) {
    words += fmt::format("{}(placet {} --names)", words.empty() ? "" : " ", listing);
  }
  return (values.files ? " -F" : "") + (words.empty() ? words : fmt::format(" -a '{}'", words));
}

// Text in single quotes.
std::string fish_quoted(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return "'" + quoted + "'";
}

std::string fish_flags(const CLI::App& app, const std::string& where) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      const Values values = values_of(kFlagValues, "--" + name);
      const char* exclusive = !needs_value(*option) ? "" : values.files ? " -r" : " -x";
      text += fmt::format("complete -c placet{} -l {}{}{} -d {}\n", where, name, exclusive,
                          fish_values(values), fish_quoted(option->get_description()));
    }
  }
  return text;
}

std::string fish_script(const CLI::App& program) {
  std::string text =
      "# fish completion for placet: placet completion fish | source\n"
      "complete -c placet -f\n" +
      fish_flags(program, "");
  for (const CLI::App* command : program.get_subcommands({})) {
    const std::string where =
        fmt::format(" -n '__fish_seen_subcommand_from {}'", command->get_name());
    const std::string arguments = fish_values(values_of(kArguments, command->get_name()));
    text += fmt::format("complete -c placet -n __fish_use_subcommand -a {} -d {}\n",
                        command->get_name(), fish_quoted(command->get_description()));
    if (!arguments.empty()) text += fmt::format("complete -c placet{}{}\n", where, arguments);
    text += fish_flags(*command, where);
  }
  return text;
}

}  // namespace

void add_completion_command(CLI::App& program, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("completion", "A completion script for your shell");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer("\nExample: source <(placet completion bash)\n");
  command->callback([shell, &program, &action] {
    action = [shell, &program] {
      print(*shell == "bash"  ? bash_script(program)
            : *shell == "zsh" ? zsh_script(program)
                              : fish_script(program));
      return kGood;
    };
  });
}

}  // namespace placet
