"""What the probe's `wrap` brings back from a tool, line by line, and the words that call it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nephoscope.catalog.adapters import ADAPTERS, Command, Output, Server, ToolError
from nephoscope.core.errors import BenchmarkFailed, Lacking
from nephoscope.core.model import Sample
from nephoscope.measure.targets.base import Peer
from nephoscope.measure.targets.channels.child import Ended
from nephoscope.measure.targets.probe.tools import (
    client_job,
    served_by,
    server_job,
    version_of,
    wrap,
    wrapped_by,
)

POSTMARK = ADAPTERS["postmark"]
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "postmark"


def done(samples: int = 0, **more: Any) -> dict[str, Any]:
    values = {
        "started_wall_ns": 1,
        "elapsed_ns": 5,
        "samples": samples,
        "counters": {"load_1m": 0.5},
    }
    return {"done": {**values, "notes": ["A note."], **more}}


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in events)


def tool(name: str) -> dict[str, Any]:
    return {"tool": json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["tool"]}


def test_a_trial_has_the_tool_s_figures_and_the_machine_s_counters() -> None:
    trial = wrapped_by(POSTMARK, "1.51")(lines(tool("study"), done()), 0, "")
    assert trial.failure is None
    assert trial.done is not None
    assert trial.done.counters == {"load_1m": 0.5}
    assert trial.done.notes == ("A note.",)
    assert trial.done.samples == len(trial.samples) + 1
    document = trial.documents["tool"]
    assert (document["program"], document["version"]) == ("postmark", "1.51")
    assert "93.38 megabytes read" in document["stdout"]


@pytest.mark.parametrize("name", ["no-folder", "crash", "terse"])
def test_what_is_no_measurement_is_a_named_failure(name: str) -> None:
    trial = wrapped_by(POSTMARK, "1.51")(lines(tool(name), done()), 0, "")
    assert trial.failure is not None
    assert (trial.failure.name, trial.samples) == ("tool_failed", ())
    assert trial.failure.message.startswith("postmark: postmark failed: ")


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("ab", {r"Failed requests: ( +)0": r"Failed requests: \g<1>3"}),
        ("h2load", {r"0 failed, 0 errored, 0 timeout": "3 failed, 3 errored, 3 timeout"}),
        ("siege", {r'"failed_transactions":(\s+)0': r'"failed_transactions":\g<1>3'}),
        ("httperf", {r"Errors: total 0": "Errors: total 3"}),
        ("wrk", {r"errors 0 0 0 0 0": "errors 1 1 1 0 0"}),
    ],
)
def test_requests_that_failed_are_noted_beside_the_latencies(
    name: str, changes: dict[str, str]
) -> None:
    path = GOLDEN.parent / name / "usual.json"
    report = json.loads(path.read_text("utf-8"))["tool"]
    read = wrapped_by(ADAPTERS[name], "1")
    whole = read(lines({"tool": report}, done()), 0, "")
    assert whole.done is not None
    assert whole.done.notes == ("A note.",)
    for pattern, words in changes.items():
        report["stdout"], count = re.subn(pattern, words, report["stdout"])
        assert count == 1
    report["marks"] = [[5, len(report["stdout"].encode())]]
    failed = read(lines({"tool": report}, done()), 0, "")
    assert failed.done is not None, failed.failure
    assert [one.value for one in failed.samples if one.metric == "errors_count"] == [3]
    assert failed.done.notes[1:] == (
        f"3 requests failed or had no answer in time; the latencies of {ADAPTERS[name].spec.tool} "
        "are those of answered requests, and would be longer with the others.",
    )


def test_a_missing_tool_is_lacking_with_the_command_that_installs_it() -> None:
    error = {"name": "no_program", "message": "There is no program.", "hint": "Install it."}
    trial = wrapped_by(POSTMARK, "1.51")(lines({"error": error}), 4, "")
    assert trial.failure is not None
    assert trial.failure.exit_code == 4
    assert "apt-get install postmark" in trial.failure.hint
    ended = Ended(4, lines({"error": error}), "")
    with pytest.raises(Lacking, match=r"here: There is no program") as caught:
        version_of(POSTMARK, ended, "here")
    assert "apt-get install postmark" in caught.value.hint


def test_the_version_is_asked_and_held_to_the_minimum() -> None:
    ended = Ended(0, lines(tool("version"), done()), "")
    assert version_of(POSTMARK, ended, "here") == "1.51"
    newer = replace(POSTMARK, spec=replace(POSTMARK.spec, minimum="1.60"))
    with pytest.raises(Lacking, match=r"is version 1.51, and 1.60 or newer is needed"):
        version_of(newer, ended, "here")
    other = {"tool": {**tool("version")["tool"], "stdout": "usage: postmark FILE\n"}}
    with pytest.raises(Lacking, match="is another program"):
        version_of(POSTMARK, Ended(0, lines(other, done()), ""), "here")


@pytest.mark.parametrize(
    "text",
    [
        lines(done()),
        lines(tool("study"), tool("study"), done()),
        lines({"tool": {"stdout": 3}}, done()),
        lines(tool("study")),
        lines(tool("study"), done())[:-5],
    ],
)
def test_half_an_answer_is_no_trial(text: bytes) -> None:
    trial = wrapped_by(POSTMARK, "1.51")(text, 0, "")
    assert trial.failure is not None
    assert trial.failure.name in ("bad_output", "probe_died")
    assert trial.samples == ()


@pytest.mark.parametrize("samples", [[], [Sample("made_up", 1.0)]])
def test_an_adapter_may_not_make_up_figures(samples: list[Sample]) -> None:
    wrong = replace(POSTMARK, parse=lambda _: samples)
    trial = wrapped_by(wrong, "1.51")(lines(tool("study"), done()), 0, "")
    assert trial.failure is not None
    assert trial.failure.name == "bad_output"


def test_the_tool_s_error_is_not_swallowed() -> None:
    def parse(_: Output) -> list[Sample]:
        raise ToolError("it is tired.")

    trial = wrapped_by(replace(POSTMARK, parse=parse), "1.51")(lines(tool("study"), done()), 0, "")
    assert str(trial.failure).startswith("postmark: postmark failed: it is tired.")


def test_the_words_are_a_list_that_no_shell_reads() -> None:
    command = Command(arguments=("; rm -rf /",), input="$(id)\n")
    words = wrap("/p", command.job("postmark"), 2.5)
    assert words[:3] == ["/p", "wrap", "--job"]
    job = json.loads(words[3])
    assert job["program"] == "postmark"
    assert job["arguments"] == ["; rm -rf /"]
    assert words[4:] == ["--deadline", "2.500", "--with-parent"]


SERVER = Server(
    "postmarkd",
    lambda _: Command(arguments=("--listen", "{address}:{port}")),
    install="apt-get install postmarkd",
    ready_text="listening",
    counters=lambda output: {"served_count": int(output.stdout)},
)
TWO_SIDED = replace(POSTMARK, server=SERVER)


def test_a_client_without_its_server_is_refused() -> None:
    peer = Peer("fd00::1", 5201, "secret")
    assert client_job(TWO_SIDED, {}, peer) == client_job(POSTMARK, {}, None)
    with pytest.raises(BenchmarkFailed, match="no target serves the far one"):
        client_job(TWO_SIDED, {}, None)


def test_a_server_states_when_it_is_ready() -> None:
    job = server_job(TWO_SIDED, {})
    assert (job["program"], job["ready_text"], job["protocol"]) == ("postmarkd", "listening", "tcp")
    with pytest.raises(BenchmarkFailed, match="has no server"):
        server_job(POSTMARK, {})


def test_what_a_server_counted_comes_back() -> None:
    served = {"stdout": "41\n", "stderr": "", "signal": 15, "exit": None, "cpu_ns": 7}
    last = done(samples=0, served={**served, "max_rss_bytes": 9, "program": "postmarkd"})
    trial = served_by(TWO_SIDED)(lines(last), 0, "")
    assert trial.failure is None
    assert trial.done is not None
    assert trial.done.served == {"cpu_ns": 7, "max_rss_bytes": 9, "served_count": 41}
    nothing = served_by(TWO_SIDED)(lines(done(samples=0)), 0, "")
    assert nothing.failure is not None
    assert nothing.failure.name == "bad_output"


def test_a_server_that_is_missing_is_lacking_with_its_own_package() -> None:
    error = {"name": "no_program", "message": "There is no program.", "hint": "Install it."}
    trial = served_by(TWO_SIDED)(lines({"error": error}), 4, "")
    assert trial.failure is not None
    assert "apt-get install postmarkd" in trial.failure.hint
