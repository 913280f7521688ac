"""What is seen first: help by topic, the list by area, former names, habits of other tools."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.e2e.conftest import run_inside

from nephoscope import catalog, command_line
from nephoscope.cli.kit import command as kit
from nephoscope.cli.kit import habits
from nephoscope.cli.kit.summaries import summary_of
from nephoscope.core.reading.unbroken import lines_of, shell_lines
from nephoscope.results.feature import Topic, features

NAMES = dict(kit.walk(command_line.program))


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_help_fits_a_terminal_and_names_every_command_once() -> None:
    text = run_inside(["--help"]).out
    lines = text.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) < 80
    listed = text.partition("Commands:\n")[2].partition("\n\n")[0].split()
    topics = [topic.value for topic in Topic]
    assert [word for word in listed if word in topics] == topics
    own = [name for name in NAMES if " " not in name]
    assert sorted(word for word in listed if word not in topics) == sorted(own)


def test_a_topic_describes_each_of_its_commands_on_a_line() -> None:
    every = run_inside(["help", "all"]).out
    assert every == run_inside(["help", "--all"]).out
    for topic in Topic:
        text = run_inside(["help", topic.value]).out
        references = [one for entry in features() if entry.topic is topic for one in entry.commands]
        assert len(text.splitlines()) == 1 + len(references)
        assert all(summary_of(reference) in text for reference in references)
        assert max(map(len, text.splitlines())) < 80
        assert text.strip() in every


def test_help_of_a_command_is_its_own() -> None:
    assert run_inside(["help", "sla", "verdict"]).out.splitlines() == (
        run_inside(["sla", "verdict", "--help"]).out.splitlines()
    )
    assert run_inside(["help"]).out.splitlines() == run_inside(["--help"]).out.splitlines()
    wrong = run_inside(["help", "sla", "verdikt"])
    assert wrong.code == 2
    assert "'sla verdikt' (did you mean 'verdict'?)" in wrong.err


def test_a_group_without_a_command_lists_its_commands() -> None:
    for name, command in NAMES.items():
        if isinstance(command, kit.CommandGroup) and not command.invoke_without_command:
            done = run_inside([name])
            assert (done.code, done.out) == (2, ""), name
            listed = re.findall(r"^  (\S+) ", done.err.partition("\nCommands:\n")[2], flags=re.M)
            assert [word for word in listed if word != "nephoscope"] == list(command.commands)


def test_the_list_fits_forty_lines_and_has_every_benchmark_once() -> None:
    text = run_inside(["list"]).out
    assert len(text.splitlines()) <= 40
    specs = catalog.load().benchmarks
    names: list[str] = []
    area = ""
    for line in text.partition("\n\n")[0].splitlines():
        first, *more = line.split()
        if not line.startswith(" "):
            area, words = first, more
        else:
            words = [first, *more]
        names += [f"{area}.{word}" if f"{area}.{word}" in specs else word for word in words]
    assert sorted(names) == sorted(specs)


def test_a_list_of_an_area_or_of_a_word() -> None:
    of_area = run_inside(["list", "disk"]).out
    assert re.findall(r"^disk\.\w+", of_area, flags=re.M) == [
        name for name in catalog.load().benchmarks if name.startswith("disk.")
    ]
    searched = run_inside(["list", "--search", "LATENCY"]).out
    assert "mem.latency" in searched
    assert "cpu.pi" not in searched
    none = run_inside(["list", "--search", "nosuch"])
    assert none.code == 2
    assert "No benchmark has 'nosuch'" in none.err


@pytest.mark.parametrize(("former", "now"), habits.MOVED.items())
def test_a_former_name_still_works_and_says_the_new_one(former: str, now: str) -> None:
    words = [] if now.startswith("-") else ["--help"]
    done = run_inside([*former.split(), *words])
    assert done.code == 0
    assert done.err == f"nephoscope: `nephoscope {former}` is now `nephoscope {now}`.\n"
    assert done.out == run_inside([*now.split(), *words]).out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["ls"], "There is no command 'ls'. `nephoscope runs` lists"),
        (["bench", "sleep 1", "sleep 2"], "--command 'sleep 1' --command 'sleep 2'`"),
        (["bench", "-w", "3", "-r", "9", "sleep 1", "ls"], "--command 'sleep 1' --command ls`"),
        (["bench", "ls | wc"], "`nephoscope bench --shell sh --command 'ls | wc'`"),
        (["bench", "cpu.gasp"], "did you mean 'cpu.gaps'"),
        (["bench", "disk.io", "--rw=randread"], "no option --rw. Use --set operation=randread."),
        (["bench", "cpu.pi", "--target", "10.0.0.1"], "Write ssh:10.0.0.1 for a host by ssh."),
        (["load", "http://127.0.0.1/", "--vus", "9"], "no option --vus. Use --connections."),
        (["run", "script.js"], "`nephoscope load URL -c 10 -d 30s`"),
    ],
)
def test_a_habit_of_another_tool_is_answered_with_the_command(
    words: list[str], sentence: str
) -> None:
    done = run_inside(words)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert sentence in done.err


def test_the_letters_of_wrk_and_hey_work() -> None:
    context = NAMES["load"].make_context("load", ["http://x/", "-c", "100", "-d", "30s"])
    assert (context.params["connections"], context.params["duration_s"]) == (100, 30.0)


def test_no_hint_is_for_an_option_or_a_command_that_exists() -> None:
    assert not habits.COMMANDS.keys() & NAMES.keys()
    for (name, option), meant in habits.OPTIONS.items():
        own = [one for parameter in NAMES[name].params for one in parameter.opts]
        assert option not in own
        assert meant.startswith("`") or meant.split()[0].rstrip(";") in own, meant


def test_a_command_in_a_text_is_never_broken() -> None:
    line = "nephoscope show 20261122-194015-survey-quick-1dbd --full-report"
    for width in range(20, 100):
        lines = lines_of(f"All results stand in the report: `{line}`, which is long.", width)
        assert any(f"`{line}`" in one for one in lines)
        assert all(len(one) <= width or f"`{line}`" in one for one in lines)


def test_a_long_example_is_one_command_for_a_shell() -> None:
    line = "nephoscope cloud up ec2 --image 'a --b c' --region eu-west-1 --money 1 -- ls -l"
    lines = shell_lines(line, 40)
    assert len(lines) > 2
    assert " ".join(one.removesuffix(" \\").strip() for one in lines) == line
    assert all(one.endswith(" \\") for one in lines[:-1])
    assert all(len(one) <= 40 for one in lines)


def test_the_commands_of_the_readme_exist_with_their_options() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"`nephoscope ([^`]+)`", readme.partition("## I want to")[2])
    assert len(lines) >= 15
    for line in lines:
        words = shlex.split(line)
        name = next(
            name
            for count in (2, 1)
            if (name := " ".join(words[:count])) in NAMES and len(words) >= count
        )
        options = {one for parameter in NAMES[name].params for one in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= options, line
