"""Every error that a user may see. A message says what, where, and the next step.

NephoscopeError
├── UsageError          exit 2   the command or a file of the user's is wrong
│   ├── PlanError                a plan that cannot be used (file, line, column)
│   │   └── PlanErrors           several errors, reported together
│   └── UnknownName              no such benchmark, run, metric, parameter
├── RunFailed           exit 3   a run was started and could not be finished
│   ├── TargetError              the target failed, or ran another probe
│   ├── BenchmarkFailed          the probe said why a trial failed (a named error)
│   └── Interrupted              the user or a signal ended the run; the same command resumes it
├── StoreError          exit 3   a store that cannot be read or written
│   └── LaterFormat              a file of a later format version
└── Lacking             exit 4   the environment lacks something; says the command that installs it
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

EXIT_CODES = {
    0: "Success.",
    1: "A check failed: `compare --fail-on` found such a metric, `lab check` a deviation, `verify` "
    "damage, `size` no deployment that keeps the objective.",
    2: "The command or one of the user's files is wrong; nothing was measured.",
    3: "A run failed, no trial was valid, a target was lost, or the store cannot be used.",
    4: "The environment lacks something; the message has the command that installs it.",
    5: "A check could not be made: `history --check` has a series whose newest runs are too few to "
    "test, and no regression; `size` has data too thin for a deployment.",
    130: "Interrupted; the completed trials are kept, and the same command resumes the run.",
}
"""Exit code -> meaning, of all commands."""


class NephoscopeError(Exception):
    """A failure with a message of one sentence and the next step, never a traceback."""

    exit_code = 3

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    @property
    def sentences(self) -> Sequence[str]:
        """The lines that are printed, each of which stands alone."""
        return (str(self),)


class UsageError(NephoscopeError):
    """The command, or a file that the user wrote, is wrong."""

    exit_code = 2


class PlanError(UsageError):
    """A plan that cannot be used; the message begins with file, line and column."""

    omitted = 0
    """Number of further errors, of which no sentence was made."""
    is_complete = True
    """False where the checks ended early, after many errors."""

    @property
    def each(self) -> Sequence[PlanError]:
        """The single errors, each with its place and next step."""
        return (self,)


class PlanErrors(PlanError):
    """Several errors of one plan, reported together: the first ones, and how many there are.

    omitted: number of further errors, which are not in `errors`. is_complete: False where the
    checks ended early.
    """

    PRINTED = 20

    def __init__(
        self, errors: Sequence[PlanError], omitted: int = 0, *, is_complete: bool = True
    ) -> None:
        self._errors = tuple(errors)
        self.omitted, self.is_complete = omitted, is_complete
        super().__init__("\n".join(self.sentences))

    @property
    def each(self) -> Sequence[PlanError]:
        """The errors in the order of the file."""
        return self._errors

    @property
    def sentences(self) -> Sequence[str]:
        """One sentence for each of the first errors, and one on how many follow."""
        sentences = [str(error) for error in self._errors[: self.PRINTED]]
        more = len(self._errors) + self.omitted - len(sentences)
        if more:
            least = "" if self.is_complete else "At least "
            noun = "error is" if more == 1 else "errors are"
            sentences.append(f"{least}{more:,} more {noun} not shown.")
        return sentences


class UnknownName(UsageError):
    """A benchmark, run, metric or parameter of that name does not exist."""


class RunFailed(NephoscopeError):
    """A run was started and could not be finished."""


class TargetError(RunFailed):
    """A target could not be opened, or ran another probe than the one this package carries."""


class BenchmarkFailed(RunFailed):
    """The probe said why a trial failed.

    name: the stable name of the failure (`no_direct_io`).
    """

    def __init__(self, name: str, message: str, hint: str = "", exit_code: int = 3) -> None:
        super().__init__(message, hint)
        self.name = name
        self.exit_code = exit_code


class Interrupted(RunFailed):
    """The user or a signal ended the run; what was measured is kept."""

    exit_code = 130


class StoreError(NephoscopeError):
    """A store that cannot be read or written."""


class UnreadableRun(UserWarning):
    """A run that is left out because its manifest cannot be read; the command line prints it."""


class UnpublishedRun(UserWarning):
    """A run that an earlier command left on this machine; the command line prints its fate."""


class ReplayedRun(UserWarning):
    """A run that answered from a recording is read; the command line prints it."""


class LaterFormat(StoreError):
    """A file of a format version that this program does not read; see `format_versions`."""


class Lacking(NephoscopeError):
    """The environment lacks something; the hint holds the command that installs it."""

    exit_code = 4


def words_of(error: Exception) -> str:
    """Returns the words of an exception without the number of an error of the operating system:
    'Connection refused', '/etc/key: Permission denied'."""
    text = str(error) or type(error).__name__
    marks = re.findall(r"\[Errno (\d+)\]", text)
    if not marks or not isinstance(error, OSError):
        return text
    path = f"{error.filename}: " if isinstance(error.filename, str) else ""
    return path + os.strerror(int(marks[0]))


def as_defect(error: Exception, where: str = "") -> NephoscopeError:
    """Returns the sentence about an exception that nobody foresaw.

    Its traceback is in a file, which the next step names. where: what was being done, such as
    ' in compare of 20260101-120000-a-1b2c'.
    """
    import tempfile
    import traceback

    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="nephoscope-defect-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
        hint = f"Please report it with the file {file.name}."
    except OSError:
        hint = "Run it again with NEPHOSCOPE_DEBUG=1 and report what it prints."
    kind = type(error).__name__
    return NephoscopeError(f"This is a defect of nephoscope{where} ({kind}: {error}).", hint)
