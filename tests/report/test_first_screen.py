"""The default output is one screen, whatever the run, and no figure of it is broken or cut."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.results.made import NULL_PLAN, make_run

from nephoscope import command_line
from nephoscope.core.model import RunResult, Sample
from nephoscope.report import report_files, summary, wording
from nephoscope.results import analyse_run
from report import made

SURVEY = made.result()
STORED = Path(__file__).parents[1] / "golden" / "stored_run" / "runs"
MAX_LINES = 30


def renamed(targets: int) -> RunResult:
    """The survey on several machines, each another one."""
    prints, metrics, findings = {}, [], []
    for number in range(targets):
        name = f"instance-{number}"
        prints[name] = json.loads(json.dumps(SURVEY.fingerprints["local"]))
        prints[name]["cpu"]["model"] = f"Model {number} with a rather long name"
        metrics += [replace(one, target=name) for one in SURVEY.metrics]
        findings += [replace(one, sentence=f"{name}: {one.sentence}") for one in SURVEY.findings]
    return replace(
        SURVEY, fingerprints=prints, metrics=tuple(metrics), findings=tuple(findings), parts=()
    )


RUNS = {
    "survey": SURVEY,
    "two machines": renamed(2),
    "nine machines": renamed(9),
    "long sentences": replace(
        SURVEY,
        run=replace(SURVEY.run, plan="mine", question="How long may a question be? " * 9),
        findings=tuple(replace(one, sentence=one.sentence * 2) for one in SURVEY.findings),
    ),
    "without findings": replace(SURVEY, findings=()),
    "nothing": replace(SURVEY, metrics=(), findings=(), fingerprints={}, parts=()),
}


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("name", RUNS)
def test_it_is_one_screen_in_the_width_of_the_terminal(name: str, columns: int) -> None:
    result = RUNS[name]
    text = report_files.terminal(result, colour=False, width=columns - 1, full=False)
    lines = text.splitlines()
    assert len(lines) <= MAX_LINES - 2  # an empty line and the path of the page follow
    assert max(map(len, lines)) < columns
    for tile in summary.headline_tiles(result, 3):
        (line,) = (line for line in lines if line.startswith(f"  {tile.label}"))
        assert line.endswith(f" {tile.n}")
        assert f" {tile.value} " in line
        assert f" {tile.interval} " in line
    if result.findings:
        sentence = result.findings[0].sentence.rpartition("instance-0: ")[2]
        assert sentence[:20] in " ".join(text.split())


@pytest.mark.parametrize("columns", [80, 200])
def test_no_number_of_the_full_report_is_broken(columns: int) -> None:
    text = report_files.terminal(SURVEY, colour=False, width=columns - 1)
    for metric in SURVEY.metrics:
        if metric.headline and not metric.benchmark.startswith("mem."):
            value, interval = (
                form(metric.estimate) for form in (wording.value_text, wording.interval_text)
            )
            assert any(value in line and interval in line for line in text.splitlines())


def test_full_report_has_every_section() -> None:
    full = report_files.terminal(SURVEY, colour=False, width=79)
    short = report_files.terminal(SURVEY, colour=False, width=79, full=False)
    for title in ("RESULTS", "ENVIRONMENT", "METHOD", "EXCLUDED TRIALS"):
        assert title in full
        assert title not in short
    assert "--full-report" in short


def test_show_prints_one_screen_of_a_stored_run_and_all_of_it_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(STORED, tmp_path / "runs")
    for columns in (80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert command_line.main(["show", "--store", str(tmp_path)]) == 0
        *lines, page = capsys.readouterr().out.splitlines()
        assert len(lines) < MAX_LINES, columns
        assert max(map(len, lines)) < columns
        assert Path(page).is_file()
    assert command_line.main(["show", "--full-report", "--store", str(tmp_path)]) == 0
    assert "METHOD" in capsys.readouterr().out


def test_the_title_names_the_measured_machine(tmp_path: Path) -> None:
    run = make_run(tmp_path, NULL_PLAN, lambda *_: [Sample("null_ns", 100.0)], rounds=6)
    run.event({"event": "session_started", "machine": "build-7"})
    result = analyse_run.build(run)
    assert result.run.host == "build-7"
    text = report_files.terminal(result, colour=False, width=79, full=False)
    assert text.splitlines()[0].endswith("build-7")
    other = replace(SURVEY, run=replace(SURVEY.run, host="web\x1b[31m-1"))
    title = report_files.terminal(other, colour=False, width=79).splitlines()[0]
    assert title == "Benchmark report: web -1"


def test_machines_that_are_alike_share_a_sentence() -> None:
    alike = replace(
        SURVEY,
        fingerprints=dict.fromkeys(("a", "b", "c"), SURVEY.fingerprints["local"]),
        metrics=tuple(
            replace(one, target=name) for name in ("a", "b", "c") for one in SURVEY.metrics
        ),
        invalid=(),
    )
    text = report_files.terminal(alike, colour=False, width=79, full=False)
    assert "a, b and c are alike, each a virtual machine" in " ".join(text.split())


def test_a_finding_of_several_machines_is_stated_once() -> None:
    finding = SURVEY.findings[0]
    two = renamed(2)
    both = tuple(replace(finding, sentence=f"instance-{n}: {finding.sentence}") for n in (0, 1))
    text = report_files.terminal(replace(two, findings=both), colour=False, width=199, full=False)
    assert f"instance-0 and instance-1: {finding.sentence[:30]}" in text
    assert text.count(finding.sentence[:30]) == 1


def test_a_plan_that_varies_threads_is_answered_by_its_scaling() -> None:
    own = replace(SURVEY, run=replace(SURVEY.run, plan="threads", question="Does it scale?"))
    text = " ".join(report_files.terminal(own, colour=False, width=79, full=False).split())
    assert text.index("Question: Does it scale?") < text.index("cpu.pi: 2 threads reach 64.0 %")
    assert "Question" not in report_files.terminal(SURVEY, colour=False, width=79, full=False)


def test_the_readme_shows_the_screen_that_a_survey_prints() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    block = readme.partition("```text\n")[2].partition("```")[0].splitlines()
    printed = report_files.terminal(SURVEY, colour=False, width=79, full=False).splitlines()
    assert len(block) <= MAX_LINES
    assert max(map(len, block)) < 80
    assert [line for line in block if line.isupper()] == ["SUMMARY"]
    for words in ("Next step: ", "are known to ±10 % or better.", "All results: `nephoscope show "):
        assert any(words in line for line in block), words
        assert any(words in line for line in printed), words
    head = ["value", "interval", "n"]
    assert head in [line.split() for line in block]
    assert head in [line.split() for line in printed]
