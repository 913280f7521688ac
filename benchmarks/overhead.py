"""What the program spends on itself, alternated with another version's command: wall and CPU time.

`--against COMMAND` names the other version's `nephoscope`. Fixed cost is a `bench null` of ten
repetitions, cost per trial the slope from ten to 110. CPU time (user and system, with that of the
probe) is printed beside wall time, since other work on the machine hits wall time first.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from _paired import alternate, machine, paired_ratio, version, write_result

OURS = str(Path(__file__).resolve().parents[1] / ".venv" / "bin" / "nephoscope")
CASES = {
    "--help": ["--help"],
    "runs, empty store": ["runs"],
    "bench null, 10 repetitions": ["bench", "null", "--repetitions", "10"],
    "bench null, 110 repetitions": ["bench", "null", "--repetitions", "110"],
}
BOUNDS_S = {"--help": 0.3, "runs, empty store": 0.25, "bench null, 10 repetitions": 1.2}
TRIAL_BOUND_S = 0.008


def measure(command: str, words: list[str]) -> tuple[float, float]:
    """Returns wall and CPU seconds of one command in an empty store."""
    with tempfile.TemporaryDirectory() as store:
        environment = {**os.environ, "NEPHOSCOPE_STORE": store}
        with Path(os.devnull).open("w") as nowhere:
            started = time.perf_counter()
            child = os.posix_spawn(
                command,
                [command, *words],
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1),
                    (os.POSIX_SPAWN_DUP2, nowhere.fileno(), 2),
                ],
            )
            _, status, usage = os.wait4(child, 0)
        wall_s = time.perf_counter() - started
    if status:
        raise SystemExit(f"{command} {' '.join(words)} ended with status {status}")
    return wall_s, usage.ru_utime + usage.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", required=True, metavar="COMMAND", help="the other version")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--write", action="store_true", help="store the dated result")
    options = parser.parse_args()
    commands = {"ours": OURS, "theirs": options.against}
    for command in commands.values():  # the first start compiles bytecode
        measure(command, CASES["bench null, 10 repetitions"])
    record: dict[str, object] = {}
    wall: dict[tuple[str, str], list[float]] = {}
    cpu: dict[tuple[str, str], list[float]] = {}
    for case, words in CASES.items():
        times = alternate(
            {name: lambda c=command, w=words: measure(c, w) for name, command in commands.items()},
            options.rounds,
            seed=1,
        )
        for name, pairs in times.items():
            wall[case, name] = [pair[0] for pair in pairs]
            cpu[case, name] = [pair[1] for pair in pairs]
    few, many = "bench null, 10 repetitions", "bench null, 110 repetitions"
    for values in (wall, cpu):
        for name in commands:
            pairs = zip(values[many, name], values[few, name], strict=True)
            values["one more trial", name] = [max(1e-6, (a - b) / 100) for a, b in pairs]
    for case in (*CASES, "one more trial"):
        entry = {}
        for kind, values in (("wall", wall), ("cpu", cpu)):
            ours, theirs = sorted(values[case, "ours"]), sorted(values[case, "theirs"])
            ratio = paired_ratio(values[case, "ours"], values[case, "theirs"])
            middle = len(ours) // 2
            print(
                f"{case:28s} {kind:4s} {theirs[middle]:7.4f} s -> {ours[middle]:7.4f} s, ratio "
                f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}], n = {ratio.n}"
            )
            entry[kind] = {"ours_s": ours, "theirs_s": theirs, "ratio": ratio.__dict__}
        record[case] = entry
    held = all(
        sorted(wall[case, "ours"])[options.rounds // 2] < bound
        for case, bound in (BOUNDS_S | {"one more trial": TRIAL_BOUND_S}).items()
    )
    print(f"bounds {'hold' if held else 'do not hold'}; load {os.getloadavg()[0]:.1f}")
    if options.write:
        facts = {"machine": machine(), "load": os.getloadavg(), "bounds_hold": held}
        facts["versions"] = {
            name: version(command, "version") for name, command in commands.items()
        }
        write_result("overhead", {**facts, "cases": record})
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
