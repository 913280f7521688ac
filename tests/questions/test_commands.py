"""Questions about command lines: where they run, what a shell adds, and what is refused."""

from __future__ import annotations

import json

import pytest
from tests.attempts import attempt
from tests.questions.conftest import Asking
from tests.tools import needs

ONCE = "-r 1 -w 0"


def run_ids(ask: Asking) -> list[str]:
    return sorted(path.name for path in ask.folder.glob("store/runs/*"))


def test_which_search_is_faster_in_my_sources(
    ask: Asking, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """I am in my project: how long does a search in src take, and is only my build removed?"""
    other = tmp_path_factory.mktemp("other")
    (other / "build").mkdir()
    ask.write("src/main.c", "int main(void) { return 0; }\n")
    ask.write("build/main.o", "")
    ask.write("in.txt", "one\ntwo\n")
    bench = f"nephoscope bench {ONCE}"
    ask(f"{bench} -p 'rm -rf build' --command 'grep -rc main src'").says(
        r"grep -rc main src median"
    )
    assert not (ask.folder / "build").exists()
    assert (other / "build").is_dir()
    ask(f"{bench} --input in.txt --output ./out.txt -c 'touch done' --command 'tail -n 1'")
    assert (ask.folder / "out.txt").read_text() == "two\n"
    assert (ask.folder / "done").exists()
    stored = ask("nephoscope show --json").json()
    assert stored["run"]["directories"] == {"local": str(ask.folder)}
    ask("nephoscope show --full-report").says(rf"Working directory {ask.folder}")

    plan = {
        "name": "hosts",
        "repeat": {"min": 1, "max": 1},
        "warmup": 0,
        "targets": [{"name": "here"}, {"name": "there", "directory": str(other)}],
        "benchmarks": [
            {"benchmark": "command", "params": {"argv": ["touch", "made"]}},
            {
                "benchmark": "disk.sync",
                "params": {"directory": "scratch", "duration_ns": "10ms"},
            },
        ],
    }
    for folder in (ask.folder, other):
        (folder / "scratch").mkdir()
    ask.write("plans/plan.json", json.dumps(plan))
    ask("nephoscope run plans/plan.json")
    assert (ask.folder / "made").exists()
    assert (other / "made").exists()
    assert not (ask.folder / "plans" / "made").exists(), "a plan's paths are those of its user"
    ask(f"{bench} --command ./nowhere", code=4).says(rf"no program './nowhere' in {ask.folder}")


@pytest.mark.alone
def test_how_long_does_true_take_in_a_shell(ask: Asking) -> None:
    """`true` through sh takes next to nothing: what is said of it, and is no trial left out?"""

    def measure() -> tuple[str, bool]:
        answer = ask("nephoscope bench -S sh -r 10 -w 0 --command true --command 'sleep 0.05'")
        answer.says(r"true median (less than|[0-9.]+ (ns|µs|ms) \[0*[1-9.])")
        answer.says("20 valid trials, 0 excluded")
        answer.says(r"the start of sh, [0-9.]+ .s, is measured and subtracted")
        answer.never_says(r"[ \[]-[0-9.]+")
        answer.says(r"true is (at least )?[0-9.]+ .*times as fast as sleep 0\.05: FASTER")
        document = ask("nephoscope show --json").json()
        times = {
            (metric["metric"], metric["factors"]["label"]): metric["estimate"]
            for metric in document["metrics"]
            if metric["metric"].endswith("_ns")
        }
        for estimate in times.values():
            assert estimate["low"] is None or 0 <= estimate["low"] <= estimate["value"]
        # The truth is some microseconds; what is left of the shell's start is below a half of it.
        assert times["wall_ns", "true"]["low"] < times["shell_ns", "true"]["value"] / 2
        slow = times["wall_ns", "sleep 0.05"]
        assert 0.0495e9 < slow["value"] < 0.15e9, "the shell is subtracted, and nothing else"
        return "answered", True

    attempt("true in a shell", measure)


def test_a_refused_command_leaves_the_latest_run(ask: Asking) -> None:
    """I mistype a few commands: is my good run still the latest?"""
    ask(f"nephoscope bench {ONCE} --command true")
    (good,) = run_ids(ask)
    for command, code in (
        ("bench --command nosuchprogram", 4),
        ("bench --command true --input nowhere", 4),
        ("bench nosuch", 2),
        ("bench disk.sync --set directory=nowhere --budget 1s", 2),
        ("bench net.rtt --target ssh:far.invalid", 2),
        ("bench null --budget 1", 2),
        ("bench null --target ssh:127.0.0.1:1", 3),
    ):
        ask(f"nephoscope {command}", code=code)
        assert run_ids(ask) == [good], command
    ask(f"nephoscope bench {ONCE} --command false", code=3)
    (failed,) = set(run_ids(ask)) - {good}
    answer = ask("nephoscope show latest")
    answer.says(f"run {good}|{good}")
    answer.says(f"Run {failed} is newer, but failed")


@pytest.mark.parametrize("unit", ["Mbit/s", "Mbps", "Mb/s", " mbit"])
def test_what_is_the_link_doing(ask: Asking, unit: str) -> None:
    """I measured 941 megabits a second: is the link the limit, however I write the unit?"""
    ask(f"nephoscope network link '941{unit}'").says("99.9 % of what 1 Gb/s Ethernet can carry")


@needs("ip", "tc")
def test_numbers_without_a_unit(ask: Asking) -> None:
    """I leave the unit out: am I asked for it, wherever I write the number?"""
    ask("nephoscope network link 941", code=2).says("'941' needs a unit: 941Mbit/s")
    ask("nephoscope bench null --budget 10", code=2).says("'10' needs a unit: 10s or 10min")
    ask("nephoscope bench null --budget 1h30x", code=2).says("Write a number and a unit")
    url = "http://127.0.0.1:1/"
    capacity = f"nephoscope capacity {url} --objective 'p99<50'"
    ask(capacity, code=2).says("'50' needs a unit: 50ms or 50s")
    topology = "name: t\nhosts: {a: {}, b: {}}\nlinks: {w: {between: [a, b], delay: 5}}\n"
    ask.write("lab.yaml", topology)
    ask("nephoscope lab check lab.yaml", code=2).says("links.w.delay: '5' needs a unit: 5ms, 5s")
    benchmarks = "benchmarks: [{benchmark: 'null'}]\n"
    ask.write("plan.yaml", f"name: p\nbudget: 10\n{benchmarks}")
    ask("nephoscope run plan.yaml", code=2).says("budget: '10' needs a unit: 10ms, 10s or 10min")
    ask.write(
        "varied.yaml",
        f"name: p\n{benchmarks}lab: lab.yaml\ntargets: [{{name: a, kind: lab}}]\n"
        "factors: {far: {path: lab.links.w.delay, levels: [0, 5]}}\n",
    )
    ask.write("lab.yaml", topology.replace("delay: 5", "delay: 5ms"))
    ask("nephoscope run --dry-run varied.yaml", code=2).says("links.w.delay: '5' needs a unit")


def test_commands_with_quotes_and_wildcards(ask: Asking) -> None:
    """My file has a blank in its name, and I use wildcards: when do I need a shell?"""
    ask.write("a b.txt", "x\nx\n")
    ask(f"nephoscope bench {ONCE} --command \"grep -c x 'a b.txt'\"").says("1 valid trial")
    pipe = f"nephoscope bench {ONCE} --command 'ls *.txt | wc -l'"
    ask(pipe, code=3).says(r"--shell")
    ask(pipe.replace("bench", "bench -S sh")).says("1 valid trial")
    ask(f"nephoscope bench {ONCE} -S sh --command 'kill -9 $$'", code=3).says("by signal 9")


@pytest.mark.alone
def test_is_the_new_version_slower_on_a_runner_that_others_disturb(ask: Asking) -> None:
    """My runner is noisy: does the new version take a fifth more time, and is that a failure?"""

    def measure() -> tuple[str, bool]:
        bench = "nephoscope bench --duet 'sleep 0.05' 'sleep 0.06' -n old -n new -r 14 -w 0"
        answer = ask(f"{bench} --fail-on worse", code=1)
        answer.says(r"old is 1\.[12]\d* \[1\.\d+, 1\.\d+\] times as fast as new: FASTER\.")
        answer.says(r"--fail-on worse: failed, by 1 of 1 command: new worse \(\+[12]\d")
        shown = ask("nephoscope show")
        shown.says(r"new is worse than old: \+[12]\d.* \[.*\] at 95 %, all of it beyond the margin")
        (duet,) = ask("nephoscope show --json").json()["duet"]["duets"]
        assert 1.1 < duet["comparison"]["ratio"]["value"] < 1.3
        ask("nephoscope show --full-report").says(r"Both commands ran at the same time, each on \d")

        ask(f"{bench.replace('0.06', '0.05')} --fail-on worse").says("passed, by none of 1 command")
        ask("nephoscope bench --duet true true --command true", code=2).says(
            "--duet and --command exclude each other. Write the two commands after --duet."
        )
        ask("nephoscope bench --command true --fail-on worse", code=2).says(
            "Write a second --command"
        )
        ask(f"{bench} -M 8 --fail-on worse", code=2)
        plan = {
            "name": "versions",
            "repeat": {"min": 8, "max": 8},
            "warmup": 0,
            "benchmarks": [
                {
                    "benchmark": "command.duet",
                    "params": {
                        "argv": ["sleep", "0.05"],
                        "second_argv": ["sleep", "0.1"],
                        "second_label": "longer",
                        "duration_ns": "1ms",
                    },
                }
            ],
        }
        ask.write("plan.json", json.dumps(plan))
        ask("nephoscope run plan.json").says(r"longer is worse than A: (\+\d\d|×[12])")
        return "answered", True

    attempt("a new version", measure)
