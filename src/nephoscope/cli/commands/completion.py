"""`nephoscope completion SHELL`: completes commands, options and the names that they take."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from nephoscope.cli.kit import output
from nephoscope.cli.kit.command import command
from nephoscope.cli.kit.options import argument, flag

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
    install: bool = flag("--install", "Write it where the shell looks for it, for this user.")


@command(
    examples=(
        "bash",
        "zsh",
    )
)
def completion(args: _CompletionArguments) -> None:
    """Print the completion script of a shell.

    bash: source <(nephoscope completion bash), for example in ~/.bashrc. zsh: the same, in
    ~/.zshrc. --install writes a file that new shells read by themselves; zsh needs the line that
    it prints.
    """
    if not args.install:
        output.say(_script(args.shell))
        return
    from nephoscope.store.files import translating_os_errors, write_atomically

    path = _place(args.shell)
    with translating_os_errors(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, _script(args.shell).encode() + b"\n")
    output.say(str(path))
    if args.shell == "zsh":
        output.log(f"Add to ~/.zshrc, before compinit: fpath+=({shlex.quote(str(path.parent))})")


def _script(shell: str) -> str:
    if shell == "bash":
        return _BASH
    script = get_completion_class(shell)
    assert script is not None
    variable = output.COMPLETION_VARIABLE
    return script(click.Command("nephoscope"), {}, "nephoscope", variable).source()


def _place(shell: str) -> Path:
    """Returns the file that a new shell of the user reads."""
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    if shell == "bash":
        return data / "bash-completion" / "completions" / "nephoscope"
    if shell == "zsh":
        return data / "zsh" / "site-functions" / "_nephoscope"
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return settings / "fish" / "completions" / "nephoscope.fish"
