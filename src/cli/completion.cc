#include <memory>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/shell_completion.h"

namespace quire::cli {

Command completion_command() {
  const auto shell = std::make_shared<std::string>();
  Command command;
  command.name = "completion";
  command.summary = "Print a shell's completion script";
  command.example =
      "  quire completion bash > ~/.local/share/bash-completion/completions/quire\n"
      "  quire completion zsh > \"${fpath[1]}/_quire\"\n"
      "  quire completion fish > ~/.config/fish/completions/quire.fish";
  command.positional_name = "SHELL";
  command.positional_choices = {"bash", "zsh", "fish"};
  command.positional_help = "One of bash, zsh, fish";
  command.positional = shell.get();
  command.run = [shell]() -> Result<int> {
    const Command root = root_command();
    const std::string script = *shell == "bash"  ? bash_completion(root)
                               : *shell == "zsh" ? zsh_completion(root)
                                                 : fish_completion(root);
    return write_stdout(script) ? kExitOk : kExitFailure;
  };
  return command;
}

}  // namespace quire::cli
