"""PostMark, the benchmark of mail and news servers by Network Appliance, as Debian has it.

It counts time in whole seconds and rounds sizes to two decimals of a scaled unit. It says what it
does while it does it, so the phases' times are those at which its words were seen; its own figures
are kept beside, and have to agree with them to the second that they can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import (
    Output,
    ToolCommand,
    ToolError,
    check_ending,
    last_words,
    matched,
)
from nephoscope.catalog.adapters.quantities import (
    DIRECTORY,
    Params,
    boolean,
    rate,
    throughput,
    time,
    whole,
)
from nephoscope.catalog.adapters.reports import Figures, values_at
from nephoscope.catalog.meaning import RequestLoop, Resource
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample

_BLOCK_BYTES = 4096
# Files take whole blocks of this size on most file systems.


def _command(params: Params) -> ToolCommand:
    if params["min_bytes"] >= params["max_bytes"]:
        raise UsageError(
            f"postmark: min_bytes {params['min_bytes']} must be less than max_bytes "
            f"{params['max_bytes']}.",
            "Set a larger max_bytes.",
        )
    lines = [
        # Its scratch folder: it starts there. A long path makes it crash.
        "set location .",
        f"set number {params['files']}",
        f"set transactions {params['transactions']}",
        f"set size {params['min_bytes']} {params['max_bytes']}",
        # It refuses a 0, which is what it has by itself.
        *([f"set subdirectories {params['directories']}"] if params["directories"] else []),
        f"set read {params['block_bytes']}",
        f"set write {params['block_bytes']}",
        f"set buffering {'true' if params['buffering'] else 'false'}",
        f"set bias read {params['read_bias']}",
        f"set bias create {params['create_bias']}",
        f"set seed {params['seed']}",
        "set report verbose",
        "show",
        "run",
        "quit",
    ]
    # What grows by chance stays within six standard deviations.
    grown = params["transactions"] * max(0.0, params["create_bias"] / 5 - 1)
    by_chance = params["files"] + grown + 6 * params["transactions"] ** 0.5
    # It has a table for twice as many.
    most = min(by_chance, 2 * params["files"])
    blocks = -(-params["max_bytes"] // _BLOCK_BYTES) * _BLOCK_BYTES
    text = "\n".join(lines) + "\n"
    return ToolCommand(input=text, directory=params["directory"], needs_bytes=int(most) * blocks)


def _parse(output: Output) -> list[Sample]:
    check_ending(output)
    if "pm>Eh?" in output.stdout:
        raise ToolError("it did not understand what it was told.")
    if "out of files!" in output.stdout:
        raise ToolError("it ran out of files: take more files, or fewer transactions.")
    if output.stderr.strip():
        more = len(output.stderr.strip().splitlines()) - 1
        more_errors = f" And {more} more." if more else ""
        raise ToolError(f"it met errors.{last_words(output)}{more_errors}")
    counts = values_at(output, _REPORT)
    sizes_bytes = {word: _size_bytes(output, word) for word in ("read", "written")}
    times = _times(output)
    _check(counts, sum(times.values()))
    return list(_samples(counts, sizes_bytes, times))


def _times(output: Output) -> dict[str, int]:
    """Nanoseconds of each phase, from the moments at which its words were seen."""
    words = ("Creating files...", "Performing transactions", "Deleting files...")
    seen = [output.seen_ns(text) for text in words]
    deleting = output.stdout.find(words[-1])
    seen.append(output.seen_ns("Done\n", deleting))
    names = ("create", "transactions", "delete")
    times = {name: end - start for name, (start, end) in zip(names, pairwise(seen), strict=True)}
    for name, elapsed_ns in times.items():
        # Pieces that came together have one time: the phase was too short to be seen.
        if elapsed_ns <= 0:
            raise ToolError(
                f"its phase '{name}' was too short to be seen: take more files and transactions."
            )
    return times


_RATE = r"\([0-9]+ per second\)\n"
_REPORT = (
    Figures("the total time", r"^\t([0-9]+) seconds total\n", {"seconds": 1}),
    Figures(
        "the rate of transactions",
        r"^\t[0-9]+ seconds of transactions \(([0-9]+) per second\)\n",
        {"transactions_per_s": 1},
    ),
    Figures("how many transactions it did", r"^Transactions: ([0-9]+)\n", {"transactions": 1}),
    *(
        Figures(f"files {word}", rf"^\t([0-9]+) {word} {_RATE}", {word: 1})
        for word in ("read", "appended")
    ),
    *(
        Figures(
            f"files {word}",
            rf"^\t([0-9]+) {word} {_RATE}\t\t{title} alone: ([0-9]+) files {_RATE}"
            rf"\t\tMixed with transactions: ([0-9]+) files {_RATE}",
            {word: 1, f"{word}_alone": 1, f"{word}_mixed": 1},
        )
        for word, title in (("created", "Creation"), ("deleted", "Deletion"))
    ),
)
"""Figures of its verbose report."""


def _check(counts: Mapping[str, float], seen_ns: int) -> None:
    """ToolError unless the figures agree with each other and with the time that was seen."""
    for word in ("created", "deleted"):
        whole, alone, mixed = (counts[f"{word}{part}"] for part in ("", "_alone", "_mixed"))
        if whole != alone + mixed:
            raise ToolError(
                f"its report contradicts itself: {whole:.0f} files {word} are not {alone:.0f} and "
                f"{mixed:.0f}."
            )
    # It takes the difference of two clocks of whole seconds, and of a 0 makes a 1.
    seen = seen_ns / 1e9
    if not (seen - 1.2 <= counts["seconds"] <= max(1.0, seen + 1.2)):
        raise ToolError(f"its report says {counts['seconds']:.0f} s, and {seen:.2f} s passed.")


def _size_bytes(output: Output, word: str) -> float:
    units = ("bytes", "kilobytes", "megabytes", "gigabytes", "terabytes")
    pattern = rf"^\t([0-9.]+) ({'|'.join(units)}) {word} \(.*\)\n"
    number, unit = matched(output, pattern, f"the bytes {word}")
    try:
        return float(number) * 1024.0 ** units.index(unit)
    except ValueError as error:
        raise ToolError(f"its report has '{number}' for the bytes {word}.") from error


def _samples(
    counts: Mapping[str, float], sizes_bytes: Mapping[str, float], times: Mapping[str, int]
) -> Iterator[Sample]:
    total_ns = sum(times.values())

    def sample(metric: str, value: float, phase: str = "") -> Sample:
        return Sample(metric, value, 1, total_ns, {"phase": phase} if phase else {})

    yield sample("transactions_per_s", counts["transactions"] * 1e9 / times["transactions"])
    for phase, elapsed_ns in times.items():
        yield sample("elapsed_ns", elapsed_ns, phase)
    yield sample("elapsed_ns", total_ns, "all")
    files = (
        ("created", "create", "created_alone"),
        ("created", "transactions", "created_mixed"),
        ("read", "transactions", "read"),
        ("appended", "transactions", "appended"),
        ("deleted", "transactions", "deleted_mixed"),
        ("deleted", "delete", "deleted_alone"),
    )
    for word, phase, count in files:
        yield sample(f"files_{word}_per_s", counts[count] * 1e9 / times[phase], phase)
    for word, size_bytes in sizes_bytes.items():
        yield sample(f"{word}_bytes_per_s", size_bytes * 1e9 / total_ns, "all")
    yield sample("reported_transactions_per_s", counts["transactions_per_s"])
    yield sample("reported_elapsed_ns", counts["seconds"] * 1e9)


ADAPTER = adapter(
    "postmark",
    "PostMark: a mail server's small files, by the original tool",
    resource=Resource.DISK_WRITE,
    request_loop=RequestLoop.CLOSED,
    params=(
        DIRECTORY,
        whole("files", 3_000, 1, 1_000_000, "Files created at first (`set number`)."),
        whole("transactions", 15_000, 10, 100_000_000, "Transactions (`set transactions`)."),
        whole("min_bytes", 1_024, 1, 1 << 30, "Smallest new file (`set size`).", "bytes"),
        whole("max_bytes", 20_480, 2, 1 << 30, "Largest new file (`set size`).", "bytes"),
        whole("directories", 10, 0, 100_000, "Folders; 0 has none (`set subdirectories`)."),
        whole(
            "block_bytes", 4_096, 1, 1 << 30, "Bytes of one read or write (`set read`).", "bytes"
        ),
        boolean("buffering", False, "Use the C library's buffers (`set buffering`)."),
        whole("read_bias", 5, 0, 10, "Transactions out of ten that read (`set bias read`)."),
        whole(
            "create_bias",
            5,
            0,
            10,
            "Transactions out of ten that create a file (`set bias create`).",
        ),
        whole("seed", 42, 1, 2**31 - 1, "Seed of everything drawn (`set seed`)."),
    ),
    metrics=(
        rate("transactions_per_s", "Transactions per second of their phase."),
        time(
            "elapsed_ns",
            "Time of a phase (create, transactions, delete) and of all three, as its output shows.",
        ),
        rate("files_created_per_s", "Files created per second of a phase.", headline=False),
        rate("files_read_per_s", "Files read per second of the transactions.", headline=False),
        rate(
            "files_appended_per_s",
            "Files appended to per second of the transactions.",
            headline=False,
        ),
        rate("files_deleted_per_s", "Files deleted per second of a phase.", headline=False),
        throughput("read_bytes_per_s", "Bytes read per second of all phases.", headline=False),
        throughput(
            "written_bytes_per_s", "Bytes written per second of all phases.", headline=False
        ),
        rate(
            "reported_transactions_per_s",
            "The tool's own figure, of whole seconds.",
            headline=False,
        ),
        time("reported_elapsed_ns", "The tool's own total, in whole seconds."),
    ),
    overhead="files, transactions and their bytes; the folder goes away at the end",
    source="Katcher, PostMark: a new file system benchmark, Network Appliance TR3022, 1997",
    minimum="1.51",
    command=_command,
    version_command=ToolCommand(input="quit\n"),
    version=r"PostMark v([0-9]+(?:\.[0-9]+)*)",
    parse=_parse,
    measures="""
How a file system serves a mail or news server, by the tool that made this workload known: files are
made, then read, added to, made and deleted in transactions, then deleted.""",
    how="""
The tool is driven by commands on its standard input, in a scratch folder of its own. It says when a
phase begins and ends; the times of the phases are those at which these words were seen, so that
they are not bound to the whole seconds in which it counts. Rates are its counts over these times.
""",
    truth="""
The counts add up: files made and deleted, with and without transactions, are all that were made and
deleted. Its own total agrees with the time that was seen to the second that it can tell. An error
that it prints makes the trial fail, although it would report figures all the same.""",
    cross_check="""
`disk.files` does the same work natively; `benchmarks/mail.py` runs both in turn.""",
    overhead_page="""
Takes the disk space of its files. One CPU, mostly in the kernel. The folder is removed at the end,
also when the trial is cancelled; after a SIGKILL the next one in the same directory removes it.""",
    caveats="""
The page cache takes part, and nothing is synced: where the files fit into memory this tells of the
file system's code and of memory. It does not check its writes: on a full disk it goes on. What it
would add to a file that is full already it leaves out, uncounted; so it does with files to make
once there are twice as many as at first. With fewer than ten transactions it crashes. Its sizes
are rounded to two decimals of kilobytes or megabytes (of 1024). The tool's packages 1.53 and older
call themselves 1.51.""",
)
