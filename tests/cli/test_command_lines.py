"""`bench --command`: command lines, parameters and options become a plan; its results a text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, get_args

import click
import pytest

from nephoscope import catalog
from nephoscope.cli.commands.command_lines import executions, plan, text
from nephoscope.cli.commands.command_lines import options as command_options
from nephoscope.cli.commands.command_lines.options import CommandOptions
from nephoscope.cli.kit import command
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, VerdictWord
from nephoscope.features.experiments.records import Against
from nephoscope.measure import plans
from nephoscope.measure.targets.kinds.local import LocalRecord
from nephoscope.stats import compare


def planned(**options: Any) -> tuple[list[plan.CommandLine], plans.Plan]:
    declared = click.Command("bench", params=list(command.parameters(CommandOptions)))
    given = command.filled(CommandOptions, {**declared.make_context("bench", []).params, **options})
    lines = plan.expand_commands(given)
    return lines, plan.plan_of(given, lines, {}, LocalRecord())


def params(made: plans.Plan) -> list[dict[str, Any]]:
    return [entry.params for entry in made.benchmarks]


def test_commands_are_split_into_words_and_no_shell_reads_them() -> None:
    _, made = planned(commands=("grep -r 'two words' $HOME *", "true"))
    assert params(made)[0]["argv"] == ["grep", "-r", "two words", "$HOME", "*"]
    assert all("shell" not in one for one in params(made))
    assert made.design.baseline == {"label": "grep -r 'two words' $HOME *"}


def test_a_shell_gets_the_text_as_it_is() -> None:
    _, made = planned(commands=("echo {n} | wc -c",), shell="bash --norc", prepare=("sync; true",))
    (only,) = params(made)
    assert only["argv"] == ["echo {n} | wc -c"]
    assert only["shell"] == ["bash", "--norc"]
    assert only["prepare"] == ["sync; true"]


def test_parameters_are_crossed_and_stand_in_every_command() -> None:
    lines, made = planned(
        commands=("cc -O{level} {file}", "wc {file}"),
        lists=(("level", "0,2"), ("file", "a.c,b.c")),
        prepare=("touch {file}",),
        names=("compile {file}",),
    )
    assert [line.label for line in lines] == [
        "compile a.c (level=0)",
        "compile b.c (level=0)",
        "compile a.c (level=2)",
        "compile b.c (level=2)",
        "wc a.c (level=0)",
        "wc b.c (level=0)",
        "wc a.c (level=2)",
        "wc b.c (level=2)",
    ]
    assert params(made)[3]["argv"] == ["cc", "-O2", "b.c"]
    assert params(made)[3]["prepare"] == ["touch", "b.c"]
    assert lines[3].parameters == {"level": "2", "file": "b.c"}


def test_a_scan_has_decimal_steps() -> None:
    lines, _ = planned(commands=("sleep {s}",), scan=("s", "0.1", "0.4"), scan_step="0.1")
    assert [line.text for line in lines] == ["sleep 0.1", "sleep 0.2", "sleep 0.3", "sleep 0.4"]


def test_numbers_of_a_scan_have_no_exponent() -> None:
    lines, _ = planned(commands=("{s}",), scan=("s", "0", "2E-7"), scan_step="0.0000001")
    assert [line.text for line in lines] == ["0.0000000", "0.0000001", "0.0000002"]


def test_equal_commands_are_told_apart_by_their_labels_alone() -> None:
    _, made = planned(commands=("true", "true"))
    settings = plans.expand(made, catalog.load())
    assert [setting.factors for setting in settings] == [{"label": "true"}, {"label": "true (2)"}]
    assert settings[1].baseline == {"local": (0, "local")}


@pytest.mark.parametrize(
    ("options", "rounds", "runs"),
    [
        ({}, (10, 30), {"minimum_runs": 1}),
        ({"runs": 12}, (12, 12), {"minimum_runs": 1, "maximum_runs": 1}),
        ({"runs": 100}, (25, 25), {"minimum_runs": 4, "maximum_runs": 4}),
        ({"minimum_runs": 45}, (10, 30), {"minimum_runs": 5}),
        ({"minimum_runs": 3}, (3, 30), {"minimum_runs": 1}),
        ({"maximum_runs": 5}, (5, 5), {"minimum_runs": 1, "maximum_runs": 1}),
        ({"maximum_runs": 90}, (10, 30), {"minimum_runs": 1, "maximum_runs": 3}),
        (
            {"minimum_runs": 20, "maximum_runs": 21},
            (10, 10),
            {"minimum_runs": 2, "maximum_runs": 2},
        ),
    ],
)
def test_numbers_of_executions_become_rounds(
    options: dict[str, int], rounds: tuple[int, int], runs: dict[str, int]
) -> None:
    _, made = planned(commands=("true",), **options)
    assert (made.repeat.min, made.repeat.max) == rounds
    (own,) = params(made)
    assert {name: own[name] for name in own if name.endswith("_runs")} == runs


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"commands": ("it's",)}, "cannot be split into words"),
        ({"commands": (" ",)}, "--command is empty"),
        ({"commands": ("true",), "names": ("a", "b")}, "2 names for 1 commands"),
        ({"commands": ("true",), "lists": (("n", "1,2"),)}, "No command contains {n}"),
        ({"commands": ("{n}",), "scan": ("n", "5", "1")}, "has no values"),
        ({"commands": ("{n}",), "scan": ("n", "1", "x")}, "takes numbers"),
        ({"commands": ("{n}",), "scan": ("n", "0", "1e9")}, "more than 1000"),
        ({"commands": ("{n}",), "scan": ("n", "1", "1e99999")}, "numbers below 1e+15"),
        ({"commands": ("{n}",), "scan": ("n", "0", "1"), "scan_step": "1e-9999999"}, "more than"),
        ({"commands": ("true",), "scan_step": "2"}, "Add --parameter-scan"),
        ({"commands": ("{n}",), "scan": ("n", "1", "2"), "lists": (("m", "1"),)}, "exclude"),
        ({"commands": ("{n}",), "lists": (("n", "1"), ("n", "2"))}, "given twice"),
        ({"commands": ("true",) * 3, "prepare": ("a", "b")}, "2 times for 3 commands"),
        ({"commands": ("true",), "outputs": ("inherit",)}, "mix the output"),
        ({"commands": ("true",), "outputs": ("out",)}, "Write ./out"),
        ({"commands": ("true",), "runs": 5, "minimum_runs": 2}, "Omit --min-runs"),
        ({"commands": ("true",), "minimum_runs": 5, "maximum_runs": 2}, "less than"),
        ({"duet": ("a", "b"), "commands": ("c",)}, "--duet and --command exclude each other"),
        ({"duet": ("{n}", "b"), "lists": (("n", "1"),)}, "--duet and --parameter-list exclude"),
        ({"duet": ("{n}", "b"), "scan": ("n", "1", "2")}, "--duet and --parameter-scan exclude"),
        ({"duet": ("a", "b"), "figures": ("x=(.)",)}, "--duet and --figure exclude each other"),
        ({"duet": ("a", "b"), "until_decided": True}, "--duet and --until-decided exclude"),
        ({"duet": ("a", "b"), "prepare": ("a",) * 3}, "3 times for 2 commands"),
        ({"duet": ("a", "")}, "--duet is empty"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_sentence(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError) as error:
        planned(**options)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_duet_is_one_entry_with_the_parameters_of_both() -> None:
    lines, made = planned(
        duet=("old/app 'a b'", "new/app"),
        names=("old",),
        prepare=("sync", "true"),
        outputs=("./1", "./2"),
        setup="make all",
        runs=25,
    )
    assert [line.label for line in lines] == ["old", "new/app"]
    (own,) = params(made)
    assert made.benchmarks[0].benchmark == "command.duet"
    assert not made.design.baseline
    assert (own["argv"], own["second_argv"]) == (["old/app", "a b"], ["new/app"])
    assert (own["label"], own["second_label"]) == ("old", "new/app")
    assert (own["prepare"], own["second_prepare"]) == (["sync"], ["true"])
    assert (own["output"], own["second_output"]) == ("./1", "./2")
    assert own["setup"] == ["make", "all"]
    # Each trial has two windows, of which each executes both commands.
    assert (made.repeat.min, own["minimum_runs"]) == (13, 1)


def test_the_export_has_hyperfines_keys() -> None:
    line = plan.CommandLine("sleep 1", 0, "nap", {"n": "1"})
    found = executions.Executions(
        wall_ns=[1e9, 3e9, 2e9],
        user_ns=[1e6, 1e6, 4e6],
        system_ns=[0.0, 0.0, 3e6],
        max_rss_bytes=[4096] * 3,
        exit_codes=[0, 0, 137],
    )
    (result,) = json.loads(json.dumps(executions.document([line], {"nap": found})))["results"]
    assert result == {
        "command": "nap",
        "mean": 2.0,
        "stddev": 1.0,
        "median": 2.0,
        "user": 0.002,
        "system": 0.001,
        "min": 1.0,
        "max": 3.0,
        "times": [1.0, 3.0, 2.0],
        "memory_usage_byte": [4096] * 3,
        "exit_codes": [0, 0, 137],
        "parameters": {"n": "1"},
    }


NOISE = [0.99, 1.0, 1.01, 0.995, 1.005, 1.002, 0.998, 1.0, 0.997, 1.003]


def against(label: str, first: list[float], other: list[float]) -> Against:
    return Against(
        benchmark="command",
        metric="wall_ns",
        headline=True,
        target="local",
        factors={"label": label},
        baseline_target="local",
        baseline_factors={"label": "first"},
        comparison=compare.paired(first, other, better=Better.LOWER, unit="ns"),
        interference=None,
    )


@pytest.mark.parametrize(
    ("factor", "noise", "sentence"),
    [
        (0.5, NOISE[::-1], r"other is 2\.0\d* \[.*\] times as fast as first: FASTER\.$"),
        (2.0, NOISE[::-1], r"first is 2\.0\d* \[.*\] times as fast as other: FASTER\.$"),
        (1.0, NOISE[::-1], r"is 1(\.00\d*)? \[.*EQUIVALENT \(within ±3 % at 90 %\)\.$"),
        (1.0, [0.5, 2.0] * 5, r"UNDECIDED \(margin ±3 %; more executions"),
        (1.0, [1.0, 1.01], r"\[\?, \?\] .*UNDECIDED \(2 rounds are too few"),
    ],
)
def test_the_faster_command_is_the_subject_of_the_verdict(
    factor: float, noise: list[float], sentence: str
) -> None:
    lines, _ = planned(commands=("first", "other"))
    first = [100 * value for value in NOISE[: len(noise)]]
    other = [100 * factor * value for value in noise]
    printed = text.comparison([against("other", first, other)], lines, {})
    assert re.search(sentence, " ".join(printed.split())), printed


def test_a_command_without_a_result_is_not_compared() -> None:
    lines, _ = planned(commands=("first", "other"))
    assert text.comparison([], lines, {}) == "other cannot be compared with first."


def test_figures_are_parameters_of_every_command() -> None:
    _, made = planned(commands=("a", "b"), figures=("rate:higher=([0-9]+)/s",))
    assert [entry["figures"] for entry in params(made)] == [["rate:higher=([0-9]+)/s"]] * 2


@pytest.mark.parametrize("figure", ["rate", "=x", "rate="])
def test_a_figure_needs_a_name_and_a_pattern(figure: str) -> None:
    with pytest.raises(UsageError, match="is not of the form NAME=PATTERN"):
        command_options._figure(figure)


def test_figures_are_compared_in_their_own_direction() -> None:
    lines, _ = planned(commands=("first", "other"))
    rates = [value * 2 for value in NOISE]
    row = replace(
        against("other", NOISE, rates),
        metric="higher_figure",
        factors={"label": "other", "figure": "rate"},
        comparison=compare.paired(NOISE, rates, better=Better.HIGHER, unit="none"),
    )
    assert "rate of other is 2.00 [2.00, 2.00] times that of first: BETTER." in text.comparison(
        [row], lines, {}
    )


def test_words_of_verdicts_cover_every_verdict() -> None:
    assert set(text.WORDS) == set(get_args(VerdictWord))
