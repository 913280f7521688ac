"""What runs in the shell of the far side: POSIX sh and a dozen of the commonest tools.

Needed there: sh, cat, chmod, id, kill, mkdir, mv, rm, touch, tr, uname, wc (coreutils or busybox).
Arguments never become part of a script's text.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

SHELL = "/bin/sh"

# A cache folder must be ours alone (another user may have made one of that name in /tmp), and
# programs in it must be allowed to run (a home may be mounted noexec).
SUPERVISOR = r"""
[ -z "$2" ] || cd -- "$2" || exit 4
printf 'in %s\n' "$(pwd)"
export LC_ALL=C
umask 077
folder=
for at in "${HOME:-/nonexistent}/.cache/nephoscope" "/tmp/nephoscope-$(id -u)"; do
  try=$at/part-$$-try
  mkdir -p "$at" && [ ! -L "$at" ] && [ -O "$at" ] && chmod 700 "$at" && touch "$try" || continue
  printf '#!/bin/sh\n' >"$try"
  chmod 700 "$try"
  if [ ! -s "$try" ] || "$try"; then folder=$at; fi
  rm -f "$try"
  [ -n "$folder" ] && break
done 2>/dev/null
[ -n "$folder" ] || exit 3
alive() {
  [ -r "/proc/$1/cmdline" ] || return 1
  case $(tr '\000' ' ' <"/proc/$1/cmdline") in *nephoscope-*) return 0 ;; esac
  return 1
}
for left in "$folder"/work-* "$folder"/part-*; do
  pid=${left##*/}; pid=${pid#*-}; pid=${pid%%-*}
  [ -e "$left" ] && ! alive "$pid" && rm -rf "$left"
done
work=$folder/work-$$-$1
trap '' HUP
own=${SSH_CONNECTION% *}
own=${own##* }
printf 'at %s %s %s\n' "$(uname -m)" "${own:--}" "$folder"
while read -r verb value; do
  case $verb in
    work) mkdir -p "$work" 2>/dev/null && printf 'work %s\n' "$work" || echo 'work ' ;;
    sum) set -- $(sha256sum <"$value" 2>/dev/null); printf 'sum %s\n' "${1:-}" ;;
    term) kill -TERM "$value" 2>/dev/null ;;
    kill) kill -KILL "$value" 2>/dev/null ;;
  esac
done
rm -rf "$work"
"""
"""Stays as long as the connection; when it is lost, removes the work folder, whatever happened.

$1: a word of ours for the folder's name. $2: the directory to start in; empty for that of the
login. Prints the directory, and then the machine type, the host's own address on the
connection (- where there is none) and the cache folder. Answers `work` and `sum FILE` (SHA-256,
empty where there is no sha256sum or no such file); ends processes on `term PID` and `kill PID`.
Exit code 3: there is no folder that we may write to and run programs from; 4: no directory $2.
"""

INSIDE = 'cd -- "$1" && shift && exec "$@"'
"""Becomes the program that the arguments after $1 name, in the directory $1."""

PUT = r"""
export LC_ALL=C
umask 077
part=${1%/*}/part-$$-put
trap 'rm -f "$part"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "${1%/*}" && cat >"$part" && {
  [ "$(wc -c <"$part")" -eq "$2" ] || { echo 'the copy was cut off' >&2; exit 1; }
} && chmod "$3" "$part" && mv -f "$part" "$1"
"""
"""Standard input to the file $1 of $2 bytes with mode $3: whole, or not at all."""

NAME = "nephoscope-supervisor"
"""Name of our shells in the far process list; the sweep knows them by it."""


def script(text: str, *arguments: str) -> list[str]:
    """The command that runs a script of this module."""
    return [SHELL, "-c", text, NAME, *arguments]


def command_line(command: Sequence[str], mark: str) -> str:
    """Returns what the login shell there is given.

    Its dotfiles may print what they like: our output starts after a line with `mark` and the
    process id, which `exec` hands on to the program. A csh takes neither a line feed nor an
    exclamation mark between quotes: /bin/sh gets what has one as octal numbers.
    """
    line = f"exec {shlex.join(command)}"
    if "\n" in line or "!" in line:
        line = f"exec {SHELL} -c 'eval \"$(printf %b \"$0\")\"' '{_octal(line)}'"
    return f"echo; echo {mark} $$; {line}"


def _octal(text: str) -> str:
    """Returns a text as an argument of printf's %b, of which every shell keeps each character."""
    plain = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_./-= ")
    # Digits too are written as numbers: one could continue the number before it.
    return "".join(
        chr(byte) if byte in plain else f"\\0{byte:03o}"
        for byte in text.encode("utf-8", "surrogateescape")
    )
