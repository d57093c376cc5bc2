// placet completion bash|zsh|fish: a script that completes subcommands, flags and catalogue names.
#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/output.h"

namespace placet {
namespace {

std::string flags_of(const CLI::App& command) {
  std::string flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags += " --" + name;
  }
  return flags.empty() ? flags : flags.substr(1);
}

std::string commands_of(const CLI::App& program) {
  std::string names;
  for (const CLI::App* command : program.get_subcommands({})) names += " " + command->get_name();
  return names.substr(1);
}

std::string bash_script(const CLI::App& program) {
  std::string cases;
  for (const CLI::App* command : program.get_subcommands({})) {
    cases += fmt::format("    {}) flags=\"{}\" ;;\n", command->get_name(), flags_of(*command));
  }
  return "# bash completion for placet: source <(placet completion bash)\n"
         "_placet() {\n"
         "  local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
         "  local flags=\"\" command=\"${COMP_WORDS[1]}\"\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         commands_of(program) +
         "\" -- \"$word\")); return\n"
         "  fi\n"
         "  case \"$before\" in\n"
         "    --engine) COMPREPLY=($(compgen -W \"$(placet engines --names)\" -- \"$word\")); "
         "return ;;\n"
         "    --cluster) COMPREPLY=($(compgen -W \"$(placet devices --names) $(placet clusters "
         "--names)\" -- \"$word\")); return ;;\n"
         "    --job|--html) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
         "  esac\n"
         "  case \"$command\" in\n" +
         cases +
         "  esac\n"
         "  case \"$word\" in\n"
         "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -W \"$(placet models --names)\" -- \"$word\") $(compgen -f "
         "-- \"$word\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -F _placet placet\n";
}

std::string zsh_script(const CLI::App& program) {
  return "# zsh completion for placet: source <(placet completion zsh)\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_script(program);
}

std::string fish_flags(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      text +=
          fmt::format("complete -c placet -n '__fish_seen_subcommand_from {}' -l {}{} -d '{}'\n",
                      command.get_name(), name, option->get_type_size() > 0 ? " -r" : "",
                      option->get_description());
    }
  }
  return text;
}

std::string fish_script(const CLI::App& program) {
  std::string text = "# fish completion for placet: placet completion fish | source\n";
  for (const CLI::App* command : program.get_subcommands({})) {
    text += fmt::format("complete -c placet -n __fish_use_subcommand -a {} -d '{}'\n",
                        command->get_name(), command->get_description());
    text += fish_flags(*command);
  }
  return text +
         "complete -c placet -n '__fish_seen_subcommand_from derive compare' -l engine -r -a "
         "'(placet engines --names)'\n"
         "complete -c placet -n '__fish_seen_subcommand_from derive compare' -l cluster -r -a "
         "'(placet devices --names) (placet clusters --names)'\n"
         "complete -c placet -n '__fish_seen_subcommand_from model derive compare' -a '(placet "
         "models --names)'\n";
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
