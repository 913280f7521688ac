"""The action, the template and the guide: their scripts do what the guide says, on real commits."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from nephoscope import command_line
from nephoscope.measure import plans

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "how-to" / "continuous-integration.md"
FOLDER = GUIDE.parent / "ci"
ACTION = ROOT / "action.yml"
TEMPLATE = FOLDER / "gitlab-ci.yml"

PROGRAM = "#!/bin/sh\nexec sleep {seconds}\n"
FASTER = f'#!/bin/sh\nexec {sys.executable} -m nephoscope "$@" --max-runs 24\n'
"""The program as it is, with twelve short trials at most."""


def of(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


def steps() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = of(ACTION)["runs"]["steps"]
    return found


def scripts_of_action() -> list[str]:
    return [step["run"] for step in steps() if "run" in step]


def scripts_of_template() -> list[str]:
    job = of(TEMPLATE)["performance"]
    return [*job["before_script"], *job["script"]]


def test_the_action_has_the_structure_of_composite_actions() -> None:
    action = of(ACTION)
    assert set(action) == {"name", "description", "inputs", "outputs", "runs", "branding"}
    for entry in action["inputs"].values():
        assert set(entry) <= {"description", "required", "default"}
        assert entry.get("required") or isinstance(entry["default"], str)
    assert action["runs"]["using"] == "composite"
    assert set(action["runs"]) == {"using", "steps"}
    ids = {step["id"] for step in steps() if "id" in step}
    for output in action["outputs"].values():
        (used,) = re.findall(r"steps\.([a-z-]+)\.outputs", output["value"])
        assert used in ids
    for step in steps():
        assert ("run" in step) != ("uses" in step)
        known = {"name", "id", "shell", "env", "run"} if "run" in step else {"name", "uses"}
        assert set(step) <= known | {"if", "with"}
        assert "run" not in step or step["shell"] == "bash"


def test_inputs_reach_the_scripts_as_variables_only() -> None:
    inputs = set(of(ACTION)["inputs"])
    used: set[str] = set()
    for step in steps():
        assert "${{" not in step.get("run", "")
        for text in (*step.get("env", {}).values(), *step.get("with", {}).values(), step.get("if")):
            used |= set(re.findall(r"inputs\.([a-z-]+)", str(text)))
        read = set(re.findall(r"\$\{?([A-Z_]+)", step.get("run", "")))
        of_service = {"FETCH_HEAD", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"}
        assert read - of_service == set(step.get("env", {}))
    assert used == inputs
    for script in scripts_of_action():
        assert "eval" not in script


def test_the_template_has_the_scripts_of_the_action() -> None:
    assert [text.strip() for text in scripts_of_template()] == [
        text.strip() for text in scripts_of_action()
    ]
    variables = of(TEMPLATE)["performance"]["variables"]
    assert set(variables) == {name for step in steps() for name in step.get("env", {})}


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three commits: `base`, `equal` to it, and `slower`, which takes a fifth more time."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    git(folder, "init")
    for name, seconds in (("base", 0.05), ("equal", 0.05), ("slower", 0.06)):
        (folder / "src" / "app").write_text(PROGRAM.format(seconds=seconds))
        (folder / "notes").write_text(name)
        git(folder, "add", ".")
        git(folder, "commit", "-m", f"make it {name}")
        git(folder, "tag", name)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "nephoscope").write_text(FASTER)
    (programs / "nephoscope").chmod(0o755)
    return folder


def run_scripts(
    folder: Path, scripts: Sequence[str], variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs scripts as both services do: one after the other, until one of them fails."""
    path = f"{folder.parent / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1", **variables}
    for script in scripts:
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            break
    return done


VARIABLES = {
    "BUILD": "mkdir build && install src/app build/app",
    "COMMAND": "build/app 'a b'",
    "BASE": "base",
    "HEAD": "slower",
    "METHOD": "duet",
    "MARGIN": "3%",
    "FAIL_ON": "worse",
    "BUDGET": "1min",
}


@pytest.mark.alone
def test_the_action_fails_a_head_that_is_slower(repository: Path) -> None:
    files = {name: repository.parent / name for name in ("summary", "output")}
    service = {"GITHUB_STEP_SUMMARY": str(files["summary"]), "GITHUB_OUTPUT": str(files["output"])}
    done = run_scripts(repository, scripts_of_action()[1:], {**VARIABLES, **service})
    assert done.returncode == 1, done.stderr
    summary = files["summary"].read_text()
    assert summary.startswith("### Performance of head against base: failed\n")
    assert re.search(
        r"base is 1\.\d+ \[.*\] times as fast as head: FASTER", " ".join(summary.split())
    )
    assert "--fail-on worse: failed, by 1 of 1 command: head worse (+" in summary
    assert files["output"].read_text() == "exit-code=1\n"
    assert list(repository.glob("measurements/runs/*/report/report.html"))


@pytest.mark.alone
def test_the_template_passes_a_head_that_is_equal(repository: Path) -> None:
    # The trial of two commands that wait for a clock is a pair on any machine.
    script = "\n".join(scripts_of_template()[1:])
    done = run_scripts(repository, [script], {**VARIABLES, "HEAD": "equal"})
    assert done.returncode == 0, done.stderr
    summary = (repository / "summary.md").read_text()
    assert summary.startswith("### Performance of head against base: passed\n")
    assert "--fail-on worse: passed, by none of 1 command." in summary


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"BASE": ""}, "There is no commit '' to compare: set base."),
        ({"BASE": "--upload-pack=touch x"}, "There is no commit '--upload-pack=touch x' to"),
        ({"HEAD": "$(touch x)"}, "There is no commit '$(touch x)' to compare: set head."),
        ({"BUILD": "false"}, "The build of base failed."),
        ({"METHOD": "both"}, "The method is duet or alternate, not 'both'."),
        ({"COMMAND": "no-such-program"}, "No such file or directory"),
        ({"COMMAND": "true; touch x"}, "No such file or directory"),
        ({"MARGIN": "$(touch x)"}, "margin"),
    ],
)
def test_what_cannot_be_measured_fails_with_its_reason(
    repository: Path, changed: Mapping[str, str], sentence: str
) -> None:
    done = run_scripts(repository, scripts_of_action()[1:], {**VARIABLES, **changed})
    assert done.returncode > 1
    assert sentence in done.stderr
    assert not list(repository.rglob("x")), "a value of an input was executed"


def test_the_guide_shows_the_files() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for file in ("github-actions.yml", "before.yaml"):
        assert (FOLDER / file).read_text(encoding="utf-8") in text
    given = of(FOLDER / "github-actions.yml")["jobs"]["compare"]["steps"][1]["with"]
    action = of(ACTION)["inputs"]
    assert {name for name, entry in action.items() if entry.get("required")} <= set(given)
    assert set(given) <= set(action)
    for name in action:
        assert f"| `{name}` |" in text


@pytest.mark.parametrize("file", ["before.yaml", "after.yaml"])
def test_the_plans_of_the_guide_can_be_run(file: str) -> None:
    plan = plans.load(FOLDER / file)
    assert [entry.benchmark for entry in plan.benchmarks] == ["command"]


PLAN = """version: 1
name: side
benchmarks:
  - {{benchmark: "null", params: {{value: {value}, noise_ratio: 1%, samples: 20, seed: {seed}}}}}
repeat: {{min: 15, max: 15}}
"""
"""Values that do not depend on the machine: these tests measure nothing."""
OUR_METRIC = {"wall_ns": "null_ns"}
"""Metric of the example -> that of the plan above."""


@pytest.mark.parametrize(("change", "code"), [(0.0, 0), (0.1, 1)])
def test_plans_fail_where_the_change_costs_ten_percent(
    change: float,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "ci").mkdir()
    for seed, name, value in ((1, "before", 100.0), (2, "after", 100.0 * (1 + change))):
        (tmp_path / "ci" / f"{name}.yaml").write_text(PLAN.format(value=value, seed=seed))
    monkeypatch.chdir(tmp_path)
    lines = [
        shlex.split(line)
        for line in GUIDE.read_text(encoding="utf-8").splitlines()
        if line.startswith("nephoscope ")
    ]
    found = {
        words[1]: command_line.main([OUR_METRIC.get(word, word) for word in words[1:]])
        for words in lines
    }
    assert found == {"compare": code, "export": 0}
    assert (tmp_path / "samples.parquet").stat().st_size
    outcome = "failed, by" if code else "passed, by none of"
    assert f"--fail-on worse: {outcome}" in capsys.readouterr().err


PI = """version: 1
name: pi
benchmarks:
  - {{benchmark: cpu.pi, params: {{digits: {digits}, threads: 1}}}}
repeat: {{min: 20, max: 20}}
"""


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize(("digits", "code"), [(10_000, 0), (11_000, 1)])
def test_measured_work_of_ten_percent_more_fails(
    digits: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name, count in (("a", 10_000), ("b", digits)):
        files.append(str(tmp_path / f"{name}.yaml"))
        Path(files[-1]).write_text(PI.format(digits=count))
    words = ["--metric", "pi_time_ns", "--fail-on", "worse"]
    assert command_line.main(["compare", "--interleave", *files, *words]) == code
    assert "1 metric" in capsys.readouterr().err
