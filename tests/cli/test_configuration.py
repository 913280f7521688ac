"""The configuration: option before environment before file before default, and its errors."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.results.made import TWO_TARGETS, make_run
from tests.store.factory import filled

from nephoscope import command_line
from nephoscope.cli.commands import survey
from nephoscope.cli.kit.configuration_keys import KEYS
from nephoscope.core.model import Sample


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration file of a user without any variable of ours."""
    for variable in ("NEPHOSCOPE_CONFIG", "NEPHOSCOPE_STORE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "nephoscope" / "config.toml"
    path.parent.mkdir()
    return path


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[Any, str]]:
    """Key -> value and source, as `nephoscope config` prints them."""
    assert command_line.main(["config", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)["values"]
    return {one["key"]: (one["value"], one["source"]) for one in values}


def test_without_a_file_every_value_is_a_default(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(capsys) == {
        "store": (None, "default"),
        "confidence": ("95%", "default"),
        "margin": ("3%", "default"),
        "targets": (["local"], "default"),
        "colour": ("auto", "default"),
    }
    assert command_line.main(["config"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"File: {file} (not found)\n")


def test_the_environment_comes_before_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text('# mine\nmargin = "5%"\nconfidence = "90%"\nstore = "~/runs"\n')
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("NEPHOSCOPE_CONFIDENCE", "99%")
    monkeypatch.setenv("NEPHOSCOPE_TARGETS", "local, ssh:db2")
    values = printed(capsys)
    assert values["margin"] == ("5%", f"{file}:2")
    assert values["confidence"] == ("99%", "NEPHOSCOPE_CONFIDENCE")
    assert values["store"] == ("/home/someone/runs", f"{file}:4")
    assert values["targets"] == (["local", "ssh:db2"], "NEPHOSCOPE_TARGETS")


def test_an_option_comes_before_the_file_and_the_file_before_the_default(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def steady(*_: object) -> list[Sample]:
        return [Sample("null_ns", 100.0)]

    run = make_run(tmp_path / "own", TWO_TARGETS, steady, rounds=7)
    file.write_text(f'store = "{tmp_path / "own"}"\nmargin = "7%"\n')
    assert command_line.main(["compare", run.id]) == 0
    assert "margin 7 %" in capsys.readouterr().out
    assert command_line.main(["compare", run.id, "--margin", "4%"]) == 0
    assert "margin 4 %" in capsys.readouterr().out
    assert command_line.main(["study", "show", "zhuang-2012"]) == 0, (
        "commands below a group have it too"
    )


def test_the_variable_of_the_store_comes_before_the_file(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = filled(tmp_path / "other", rounds=1)
    file.write_text('store = "/nowhere"\n')
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path / "other"))
    assert command_line.main(["runs", "--ids"]) == 0
    assert capsys.readouterr().out.strip() == run.id


def test_configured_targets_are_measured_by_the_survey_only(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('targets = ["ssh:db2"]\n')
    fitted: list[tuple[str, ...]] = []

    def refuse(plan: object, texts: tuple[str, ...]) -> None:
        fitted.append(texts)
        raise KeyboardInterrupt

    monkeypatch.setattr(survey.measuring, "fitted", refuse)
    assert command_line.main(["survey", "--quick"]) == 130
    assert fitted == [("ssh:db2",)]
    assert command_line.main(["runs", "--ids"]) == 0, "its --target is a filter"


def test_a_key_of_one_command_leaves_options_of_that_name_elsewhere_alone(file: Path) -> None:
    file.write_text('margin = "5%"\nconfidence = "90%"\n')
    assert command_line.main(["bench", "null", "--repetitions", "1"]) == 0


def test_colours_may_be_switched_off(file: Path) -> None:
    file.write_text('colour = "never"\n')
    assert command_line.main(["--version"]) == 0
    assert os.environ["NO_COLOR"] == "1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a = 1\nstroe = "/x"\n', "config.toml:1: unknown key 'a'. Known: store, confidence"),
        ('\nstroe = "/x"\n', "config.toml:2: unknown key 'stroe' (did you mean 'store'?)."),
        ("\n\n[survey]\nx = 1\n", "config.toml:3: unknown key 'survey'."),
        ('store = "runs"\n', "config.toml:1: store: the path is not absolute. Write it from /"),
        ('store = "~no-such-user/x"\n', "config.toml:1: store: there is no such home directory."),
        ("\nmargin = 5\n", "config.toml:2: margin: it must be a text. Put it in quotes."),
        ('margin = "much"\n', "config.toml:1: margin: 'much' is no ratio."),
        ('confidence = "5%"\n', "config.toml:1: confidence: '5%' does not lie between 0.5 and"),
        ('targets = ["moon:x"]\n', "config.toml:1: targets: 'moon:x' is no target."),
        ("targets = []\n", "config.toml:1: targets: it must be a list of targets."),
        ('targets = "local"\n', "config.toml:1: targets: it must be a list of targets."),
        ("targets = [1]\n", "config.toml:1: targets: it must be a text."),
        ('colour = "red"\n', "config.toml:1: colour: 'red' is no choice. Write auto or never."),
        ("store =\n", "config.toml: this is no valid TOML: Invalid value (at line 1, column 8)."),
    ],
)
def test_a_mistake_is_one_sentence_with_file_and_line(
    text: str, expected: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    assert command_line.main(["--version"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert expected in line


def test_a_mistake_in_a_variable_names_the_variable(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEPHOSCOPE_MARGIN", "much")
    assert command_line.main(["--version"]) == 2
    assert "NEPHOSCOPE_MARGIN: margin: 'much' is no ratio." in capsys.readouterr().err


def test_a_named_file_has_to_exist_and_an_empty_name_means_none(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("unknown = 1\n")
    monkeypatch.setenv("NEPHOSCOPE_CONFIG", "")
    assert command_line.main(["--version"]) == 0
    monkeypatch.setenv("NEPHOSCOPE_CONFIG", str(file.with_name("other.toml")))
    assert command_line.main(["--version"]) == 2
    assert "other.toml: there is no such file." in capsys.readouterr().err


def test_the_reference_lists_every_key() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "generated/configuration.md"
    rows = re.findall(r"^\| (\w+) \| `", page.read_text(encoding="utf-8"), flags=re.M)
    assert rows == list(KEYS)
