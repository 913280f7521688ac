"""Nothing that came from outside reaches the terminal as a control character."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.store.factory import SPEC, new_run, record, samples

from nephoscope import command_line
from nephoscope.cli.kit import output
from nephoscope.cli.kit.progress import ProgressDisplay
from nephoscope.core.model import TrialStatus
from nephoscope.core.reading.printable import escaped, printable

EVIL = "\x1b]0;title\x07\x1b[2J\x1b[8m\x9b31m\u202eevil\r\x00"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.mark.parametrize("styled", [False, True])
def test_sequences_and_control_characters_become_blanks(styled: bool) -> None:
    text = printable(f"a{EVIL}b\n\tc", styled=styled)
    assert not CONTROL.search(text)
    assert "title" not in text
    assert "\n\tc" in text


def test_colours_of_our_own_reports_stay_where_they_are_wanted() -> None:
    ours = "\x1b[1;31mbold red\x1b[0m \x1b[2mdim\x1b[m"
    assert printable(ours, styled=True) == ours
    assert printable("\x1b[5;8mhidden\x1b[38;2;1;1;1m", styled=True) == " hidden "


def test_json_keeps_its_meaning() -> None:
    text = json.dumps({"a": EVIL}, ensure_ascii=False, indent=1)
    assert json.loads(escaped(text)) == {"a": EVIL}
    assert not CONTROL.search(escaped(text))


@pytest.mark.parametrize("coloured", [False, True])
@pytest.mark.parametrize(
    "words",
    [["show"], ["show", "--json"], ["show", "--journal"], ["runs"], ["compare", "latest", EVIL]],
    ids=["show", "json", "journal", "runs", "compare"],
)
def test_a_hostile_run_is_printed_harmlessly(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    coloured: bool,
) -> None:
    run, settings = new_run(tmp_path)
    run.update(question=EVIL, fingerprints={"local": {"cpu": {"model": EVIL}}}, refused=[EVIL])
    for number in range(1, 5):
        trial = record(settings[0], number, number, notes=(EVIL,))
        evil = [replace(sample, factors={"op": EVIL}) for sample in samples(100.0 + number)]
        run.append(trial, evil, SPEC)
    failed = record(settings[1], 1, 9, status=TrialStatus.FAILED, reasons=(EVIL,))
    run.append(failed, [], SPEC)
    run.event({"event": "warning", "sentence": EVIL})
    run.finish("finished")
    monkeypatch.setattr(output, "colour_wanted", lambda stream=None: coloured)
    command_line.main([*words, "--store", str(tmp_path)])
    printed = "".join(capsys.readouterr())
    assert "evil" in printed or words == ["runs"]
    assert not CONTROL.search(re.sub(r"\x1b\[[0-9;]*m", "", printed) if coloured else printed)


def test_progress_lines_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    for stream in (terminal, io.StringIO()):
        with ProgressDisplay(stream) as progress:
            progress.reported(EVIL)
            progress.warning(EVIL)
    assert "evil" in terminal.getvalue()
    for part in ("\x1b]0", "\x1b[2J", "\x1b[8m", "\x9b", "\u202e"):
        assert part not in terminal.getvalue()
    assert not CONTROL.search(capsys.readouterr().err)


def test_arguments_that_are_no_text_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["show", "\udcff"]) == 2
    assert "Argument 2 is no UTF-8 text" in capsys.readouterr().err
