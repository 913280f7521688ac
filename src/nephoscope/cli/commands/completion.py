"""`nephoscope completion SHELL`: completes commands, options and the names that they take."""

from __future__ import annotations

from dataclasses import dataclass

import click
from click.shell_completion import get_completion_class

from nephoscope.cli.kit import output
from nephoscope.cli.kit.command import command
from nephoscope.cli.kit.options import argument

_BASH = """_nephoscope_completion() {
    local line="${COMP_LINE:0:COMP_POINT}" type value
    local -a words
    read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    # Bash splits words at colons, which names of targets contain.
    local current="${words[-1]}"
    local before="${current%"${current##*:}"}"
    COMPREPLY=()
    while IFS=, read -r type value; do
        case "$type" in
            plain) COMPREPLY+=("${value#"$before"}") ;;
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
        esac
    done < <(COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) \\
        _NEPHOSCOPE_COMPLETE=bash_complete "${words[0]}")
}

complete -o nosort -F _nephoscope_completion nephoscope
"""


@dataclass(frozen=True, slots=True)
class _CompletionArguments:
    shell: str = argument(click.Choice(["bash", "zsh", "fish"]))


@command(
    examples=(
        "bash",
        "zsh",
    )
)
def completion(args: _CompletionArguments) -> None:
    """Print the completion script of a shell.

    bash: source <(nephoscope completion bash), for example in ~/.bashrc. zsh: the same, in
    ~/.zshrc. fish: nephoscope completion fish > ~/.config/fish/completions/nephoscope.fish.
    """
    if args.shell == "bash":
        output.say(_BASH)
        return
    script = get_completion_class(args.shell)
    assert script is not None
    variable = output.COMPLETION_VARIABLE
    output.say(script(click.Command("nephoscope"), {}, "nephoscope", variable).source())
