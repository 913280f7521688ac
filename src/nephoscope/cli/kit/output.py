"""Prints data on stdout, everything else on stderr, and an error as one sentence."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import itertools
import os
import resource
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO

from nephoscope.core.errors import (
    Lacking,
    ReplayedRun,
    UnpublishedRun,
    UnreadableRun,
    UsageError,
    as_defect,
)
from nephoscope.core.naming import failure_text
from nephoscope.core.reading.column_widths import column_widths
from nephoscope.core.reading.printable import escaped, printable
from nephoscope.core.reading.unbroken import lines_of

COMPLETION_VARIABLE = "_NEPHOSCOPE_COMPLETE"
"""Environment variable by which a shell asks for completions; click derives it from the name."""

MIN_WIDTH = 40
MAX_WIDTH = 200
"""Columns; longer lines are hard to read."""
MAX_WORD = 300
"""Longest word of a sentence that is printed whole: a path may have 255 characters a part."""
_UNREADABLE_NAMED = 3
"""Runs that are left out and named; `verify` names all of them."""
MEMORY_MIN = 640 << 20
"""Bytes of address space with which an analysis ends in a result or a sentence."""
_MEMORY_ADVISED = 1 << 30


FILES_MIN = 64
"""Open files with which every command that measures this machine ends as it should."""


def prepare_streams() -> None:
    """Replaces characters that the terminal cannot show by '?', so that none is an exception.

    A stream that is closed (`2>&-`) becomes the null device: a file that is opened would get its
    number, and receive what programs print. Raises UsageError for a closed stdout.
    """
    closed = [number for number in range(3) if not _is_open(number)]
    if closed:
        null = os.open(os.devnull, os.O_RDWR)  # has the lowest of the closed numbers
        for number in closed:
            os.dup2(null, number)
        if sys.stdin is None:
            sys.stdin = open(0, closefd=False)  # noqa: SIM115
        if sys.stderr is None:
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    if 1 in closed:
        raise UsageError(
            "Standard output is closed, so that nothing can be printed.",
            "Name a file or `/dev/null`: `nephoscope … > FILE`.",
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def refuse_too_few_files() -> None:
    """Raises Lacking where this process may open too few files, which would look like damage."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= FILES_MIN or soft == resource.RLIM_INFINITY:
        return
    if hard == resource.RLIM_INFINITY or hard >= FILES_MIN:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_MIN, hard))
        return
    raise Lacking(
        f"This process may open {hard} files, and needs {FILES_MIN}.",
        f"Raise the limit: `ulimit -n {FILES_MIN}`, as root where it is refused.",
    )


def refuse_undecodable(arguments: Sequence[str]) -> None:
    """Raises UsageError for an argument that is no UTF-8 text, which no file of ours can hold."""
    for number, argument in enumerate(arguments, start=1):
        try:
            argument.encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(
                f"Argument {number} is no UTF-8 text: {argument!a}.",
                "Arguments are UTF-8 text; rename a file that is meant.",
            ) from None


_before_printing: list[Callable[[], None]] = []


def before_printing(erase: Callable[[], None] | None) -> None:
    """Sets what removes a line of progress before anything is printed; None for nothing."""
    _before_printing[:] = [] if erase is None else [erase]


def _erase_progress() -> None:
    for erase in _before_printing:
        erase()


def say(text: str = "") -> None:
    """Prints a line or more of data on stdout, without control characters."""
    _erase_progress()
    sys.stdout.write(printable(text, styled=colour_wanted()) + "\n")


def log(text: str) -> None:
    """Prints a line on stderr; a closed stderr is no reason to fail."""
    _erase_progress()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(printable(text) + "\n")
        sys.stderr.flush()


def document(content: Any) -> None:
    """Prints a record or mapping as a JSON document with the version of its schema."""
    from nephoscope.core import documents

    _erase_progress()
    sys.stdout.write(escaped(documents.to_text(documents.versioned(content))) + "\n")


def is_terminal(stream: TextIO) -> bool:
    """Returns whether the stream is a terminal."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def colour_wanted(stream: TextIO | None = None) -> bool:
    """Returns whether to print colours: on a terminal only, and never when NO_COLOR is set."""
    return is_terminal(stream or sys.stdout) and not os.environ.get("NO_COLOR")


def width() -> int:
    """Returns the columns to print in: the terminal's, less the last one, from 40 to 200."""
    columns = shutil.get_terminal_size((80, 24)).columns
    return max(MIN_WIDTH, min(MAX_WIDTH, columns - 1))


def paragraph(text: str) -> None:
    """Prints sentences on stdout, in lines that the terminal need not break."""
    say(wrapped(text, rest=""))


def wrapped(text: str, first: str = "", rest: str = "  ") -> str:
    """Returns sentences in lines that the terminal need not break; `first`, `rest` begin them.

    A command between backticks stays on one line.
    """
    return "\n".join(lines_of(text, width(), first, rest))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Returns columns as wide as their widest cell, two spaces apart; `right` align to the right.

    On a terminal that is narrower, cells take several lines, and words stay whole.
    """
    # A name with a line break would look like a row of its own.
    lines = [[" ".join(cell.splitlines()) for cell in line] for line in (head, *rows)]
    columns = list(zip(*lines, strict=True))
    widths = [max(map(len, cells)) for cells in columns]
    if is_terminal(sys.stdout):
        words = [
            max(len(word) for cell in cells for word in cell.split() or [""]) for cells in columns
        ]
        widths = column_widths(widths, words, width() - 2 * (len(head) - 1)) or widths
    out = []
    for line in lines:
        parts = [_wrapped(cell, widths[i]) for i, cell in enumerate(line)]
        for pieces in itertools.zip_longest(*parts, fillvalue=""):
            cells = [
                piece.rjust(widths[i]) if i in right else piece.ljust(widths[i])
                for i, piece in enumerate(pieces)
            ]
            out.append("  ".join(cells).rstrip())
    return "\n".join(out)


def _wrapped(cell: str, room: int) -> list[str]:
    """The lines of a cell; one that has room stays as it is."""
    if len(cell) <= room:
        return [cell]
    return textwrap.wrap(cell, room, break_long_words=False, break_on_hyphens=False) or [""]


def one_line(text: str) -> str:
    """Returns the text without line breaks, control characters, doubled spaces and long words."""
    return " ".join(map(_cut, printable(text).split()))


def _cut(word: str) -> str:
    """Shortens what nobody reads: a megabyte of input in a sentence about it."""
    if len(word) <= MAX_WORD:
        return word
    return f"{word[: MAX_WORD // 2]}…{word[-MAX_WORD // 4 :]}"


def warn(sentence: str) -> None:
    """Prints a sentence on stderr, on one line that begins with the program's name."""
    log(f"nephoscope: {one_line(sentence)}")


@contextlib.contextmanager
def unreadable_runs_named() -> Iterator[None]:
    """While it is open, the first runs that are left out, and all that are replays, are named on
    stderr, each once."""
    named: list[str] = []
    replays: list[str] = []

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if str(message) in named or str(message) in replays:
            return
        if category is ReplayedRun:
            replays.append(str(message))
            warn(str(message))
            return
        named.append(str(message))
        if len(named) <= _UNREADABLE_NAMED:
            warn(str(message))
        elif len(named) == _UNREADABLE_NAMED + 1:
            warn("More runs cannot be read. `nephoscope verify` names each of them.")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UnreadableRun)
        warnings.simplefilter("always", UnpublishedRun)
        warnings.simplefilter("always", ReplayedRun)
        warnings.showwarning = show
        yield


_printed_failures: set[str] = set()
"""Reasons of failed trials that this command has printed."""


def print_failure(reason: str, show: Callable[[str], None], head: str = "") -> None:
    """Shows the reason of a failed trial with its head, once in a command."""
    text = one_line(failure_text(reason))
    if text not in _printed_failures:
        _printed_failures.add(text)
        show(f"{head}{text}")


def was_printed(reason: str) -> bool:
    """Returns whether this command has printed the reason of a failed trial, or one with it."""
    text = one_line(failure_text(reason))
    return bool(text) and any(text in printed for printed in _printed_failures)


def forget_failures() -> None:
    """Begins a command, which prints the reasons of its own failures."""
    _printed_failures.clear()


def complain(sentence: str, code: int) -> int:
    """Prints a sentence as `warn` does; returns the exit code, for the caller to return."""
    warn(sentence)
    return code


def refuse_libraries_without_memory() -> None:
    """Makes the import of numerical libraries a MemoryError where they would end the process.

    They reserve memory for each CPU; under a small `ulimit -v` that ends the process or crashes it.
    Under any such limit the C library has one arena for all threads instead of 64 MiB of addresses
    for each.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed == resource.RLIM_INFINITY:
        return
    with contextlib.suppress(OSError, AttributeError):  # Not every C library has it.
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
    if allowed < MEMORY_MIN:
        sys.addaudithook(_refuse_library)


_ARENA_MAX = -8
"""M_ARENA_MAX of glibc's malloc.h."""


def _refuse_library(event: str, details: tuple[Any, ...]) -> None:
    if event == "import" and details[0] in ("numpy", "pyarrow"):
        raise MemoryError


def complain_of_usage(error: Any) -> int:
    """Reports a usage error: the problem, the nearest name, and where to find help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command: its help
        sys.stderr.write(f"{error.format_message()}\n")
        return 2
    path = context.command_path if context is not None else "nephoscope"
    sentence = one_line(error.format_message())
    if option := getattr(error, "option_name", ""):
        from nephoscope.cli.kit.habits import option_hint

        if hint := option_hint(str(context.info_name) if context is not None else "", option):
            return complain(f"There is no option {option}. {hint}", 2)
    stop = "" if sentence.endswith((".", "?", ")")) else "."
    return complain(f"{sentence}{stop} Run `{path} --help`.", 2)


def reader_left() -> int:
    """Returns 0 after the reader of stdout has closed it (`| head`), which is no failure."""
    with contextlib.suppress(OSError):
        # The interpreter flushes stdout once more at exit; it has to go somewhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _memory_sentence() -> str:
    """Returns what the memory of this process is limited by, and what is enough to try next."""
    from nephoscope.core.naming import bytes_text

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        return (
            f"The machine has no more memory for this process, which used {bytes_text(used)}. "
            "Choose fewer runs, metrics or trials, or a machine with more memory; what is measured "
            "already is stored."
        )
    # Below the least that any analysis takes, twice the limit would be refused again.
    wanted = max(2 * limit, _MEMORY_ADVISED)
    return (
        f"This process may use no more memory than {bytes_text(limit)}. Raise its limit to "
        f"{bytes_text(wanted)} (`ulimit -v {wanted >> 10}`), or choose fewer runs, metrics or "
        "trials; what is measured already is stored."
    )


def complain_of_defect(error: Exception) -> int:
    """Reports an unexpected exception: one sentence, and a file for the bug report."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        where = f" '{error.filename}'" if error.filename else " (standard output, or a directory)"
        reader_left()
        return complain(
            f"Cannot write{where}: {error.strerror}. Free disk space or use another directory.", 3
        )
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return complain(
            "This process may open no more files. Raise its limit (`ulimit -n`) to at least 1024; "
            "what is measured already is stored.",
            3,
        )
    if isinstance(error, PermissionError) and error.filename:
        return complain(
            f"{error.filename}: permission is denied. Name a file or a store of your own, or look "
            "at its owner with `ls -ld`.",
            3,
        )
    # How the interpreter reports a limit on memory or processes (`ulimit -v`, `ulimit -u`).
    if isinstance(error, MemoryError):
        return complain(_memory_sentence(), 3)
    if "can't start new thread" in str(error):
        return complain(
            "This process may start no more threads. Raise its limit (`ulimit -u`) by 64; what is "
            "measured already is stored.",
            3,
        )
    import traceback

    if os.environ.get("NEPHOSCOPE_DEBUG"):
        traceback.print_exception(error)
    return complain(str(as_defect(error)), 3)
