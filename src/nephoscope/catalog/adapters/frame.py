"""What an adapter is: a declaration, a command made from parameters, a pure parser of the output.

Nothing is run here. A target runs the command under the probe's verb `wrap`, which reads the
machine's counters around it, stamps the output and ends the tool with the trial.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from nephoscope.catalog import BenchmarkSpec, MetricSpec
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, Sample, Shape

SCRATCH = "{scratch}"
"""Stands in arguments and input for the path of the tool's scratch folder, in which it starts."""

ADDRESS, HOST, PORT, TOKEN = "{address}", "{host}", "{port}", "{token}"
"""Stand in a server's arguments and input for where it listens; the token in its input only. HOST
is the address as it stands in a URL."""

PEER_ADDRESS, PEER_HOST, PEER_PORT = "{peer_address}", "{peer_host}", "{peer_port}"
"""Stand in a client's arguments and input for its server."""

PEER_TOKEN = "{peer_token}"
"""Stands in a client's input for the token of its server."""

TOOL = MetricSpec(
    "tool",
    "none",
    Better.NONE,
    Shape.DOCUMENT,
    headline=False,
    doc="The tool, its version, and its report in its own words.",
)
"""Every adapter has this document beside its figures."""


class ToolError(Exception):
    """The tool's output is no measurement; the text is one sentence with the tool's own words."""


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A program that is called beside the tool, in the same scratch folder; it has to succeed."""

    program: str
    arguments: Sequence[str] = ()
    input: str = ""


@dataclass(frozen=True, slots=True)
class ToolCommand:
    """Call of the tool: arguments (no shell reads them), text for its standard input.

    directory: where its scratch folder is made; '' takes $TMPDIR, else /var/tmp. needs_bytes: what
    it will have on the disk at once. prepare: what runs before it, untimed. paths: folders in which
    programs are looked for after PATH; a `*` in one stands for the highest number there. user: the
    account as which all of them run where the probe is root; '' is root. environment: variables
    besides PATH, HOME, LC_ALL and TMPDIR; `{scratch}` is filled in. after: what runs after its end,
    when it succeeded. Of a server, closing: what runs in the end while it still serves. The output
    of both follows its own.
    """

    arguments: Sequence[str] = ()
    input: str = ""
    directory: str = ""
    needs_bytes: int = 0
    prepare: Sequence[ToolStep] = ()
    paths: Sequence[str] = ()
    user: str = ""
    closing: Sequence[ToolStep] = ()
    after: Sequence[ToolStep] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        """All arguments, inputs and variables, also those of its steps."""
        steps = (*self.prepare, *self.closing, *self.after)
        step_texts = [text for step in steps for text in (*step.arguments, step.input)]
        return [*self.arguments, self.input, *self.environment.values(), *step_texts]

    def job(self, tool: str) -> dict[str, Any]:
        """The job for `nephoscope-probe wrap`."""
        return {"program": tool, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Output:
    """Output of the tool.

    exit_code: None when a signal ended it (signal). marks: (ns since the start, bytes of stdout
    that were there then), ascending. elapsed_ns: until its end.
    """

    stdout: str
    stderr: str = ""
    exit_code: int | None = 0
    signal: int | None = None
    marks: Sequence[tuple[int, int]] = field(default=())
    elapsed_ns: int = 0

    def seen_ns(self, text: str, start: int = 0) -> int:
        """Returns when the first `text` at or after position `start` was there, whole. ToolError if
        never.

        What was printed in one piece has one time: that of its last byte.
        """
        at = self.stdout.find(text, start)
        if at < 0:
            raise ToolError(f"it never said '{text.strip()}'.{last_words(self)}")
        end = len(self.stdout[: at + len(text)].encode())
        place = bisect_left([there for _, there in self.marks], end)
        if place == len(self.marks):
            raise ToolError(f"nobody saw when it said '{text.strip()}'.")
        return self.marks[place][0]


@dataclass(frozen=True, slots=True)
class ToolServer:
    """The far side of a tool with two sides; it serves until the probe stops it.

    tool: its program. command: every parameter's value -> how it is called, with `{address}` and
    `{port}` where it is to listen. install: the command that installs it, by default that of its
    client. protocol: of its port, tcp or udp. ready_text: what it prints when it is ready; it
    always has to listen as well. counters: the end of what it printed -> what it counted, by name;
    it raises ToolError for what is no report.
    """

    tool: str
    command: Callable[[Mapping[str, Any]], ToolCommand]
    install: str = ""
    protocol: Literal["tcp", "udp"] = "tcp"
    ready_text: str = ""
    counters: Callable[[Output], Mapping[str, Any]] = lambda output: {}


@dataclass(frozen=True, slots=True)
class Adapter:
    """A well-known tool as a benchmark.

    server: its far side, where it has one; the client's command names it by `{peer_address}` and
    `{peer_port}`.
    command: every parameter's value -> how the tool is called. version_command: prints its
    version. version: what it answered -> the version. parse: what it said -> samples. The last two
    raise ToolError, and never make a zero of what is missing.
    """

    spec: BenchmarkSpec
    command: Callable[[Mapping[str, Any]], ToolCommand]
    version_command: ToolCommand
    version: Callable[[Output], str]
    parse: Callable[[Output], list[Sample]]
    server: ToolServer | None = None

    def build_command(self, params: Mapping[str, Any], *, serving: bool = False) -> ToolCommand:
        """Returns the command for these parameters, defaults filled in; serving: of the server.

        Raises UsageError for an unknown parameter, and for a server that it does not have.
        """
        if serving and self.server is None:
            raise UsageError(f"{self.spec.id}: {self.spec.tool} has no server.", "Drop `peer`.")
        for name in params:
            self.spec.param(name)
        made = self.server.command if serving and self.server else self.command
        command = made({p.id: params.get(p.id, p.default) for p in self.spec.params})
        for text in (*command.texts, command.directory):
            if "\0" in text:
                raise UsageError(f"{self.spec.id}: a parameter has a NUL byte in it.", "Remove it.")
        return command

    def recent(self, version: str) -> bool:
        """Returns whether the version is one that the adapter understands."""
        return _numbers(version) >= _numbers(self.spec.minimum)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def matched(output: Output, pattern: str, what: str) -> tuple[str, ...]:
    """Returns the groups of the one place in the output where a pattern matches, line by line.

    The pattern has to end with the line's end, so that a figure that was cut off is none. Raises
    ToolError where there is no such place, or more than one.
    """
    matches = list(re.finditer(pattern, output.stdout, re.MULTILINE | re.ASCII))
    if len(matches) != 1:
        how = "lacks" if not matches else "has more than once"
        raise ToolError(f"its report {how} {what}.{last_words(output)}")
    return matches[0].groups()


def numbers(output: Output, pattern: str, what: str) -> tuple[float, ...]:
    """Returns the same groups as numbers; ToolError where one is none."""
    groups = matched(output, pattern, what)
    try:
        return tuple(float(group) for group in groups)
    except ValueError as error:
        words = " ".join(groups)
        raise ToolError(f"its report has '{words}' for {what}.") from error


def version_by(pattern: str) -> Callable[[Output], str]:
    """Returns a reader of a tool's version: the pattern's group in whatever the tool printed."""

    def read(output: Output) -> str:
        match = re.search(pattern, f"{output.stdout}\n{output.stderr}", re.MULTILINE | re.ASCII)
        if match is None:
            raise ToolError(f"it does not state its version.{last_words(output)}")
        return match.group(1)

    return read


def last_words(output: Output) -> str:
    """The tool's own words for a sentence: of its errors the first line, else the last it said."""
    errors = [line.strip() for line in output.stderr.splitlines() if line.strip()]
    printed = [line.strip() for line in output.stdout.splitlines() if line.strip()]
    words = errors[:1] or printed[-1:]
    return f" It printed: '{words[0][:200]}'." if words else " It said nothing."


def check_ending(output: Output) -> None:
    """ToolError unless the tool ended by itself with exit code 0."""
    if output.signal is not None:
        raise ToolError(f"it was ended by signal {output.signal}.{last_words(output)}")
    if output.exit_code != 0:
        raise ToolError(f"it ended with exit code {output.exit_code}.{last_words(output)}")
