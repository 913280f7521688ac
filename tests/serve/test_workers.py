"""Analyses in worker processes: the documents, failures, and time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.results.made import NULL_PLAN, TWO_TARGETS, make_run

from nephoscope.core.documents import versioned
from nephoscope.core.errors import NephoscopeError
from nephoscope.core.model import Sample, Setting
from nephoscope.features.comparison.result import ComparisonRules
from nephoscope.features.comparison.stored import of_stored_runs
from nephoscope.httpd.responses import Refusal, RenderedResponse
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.serve import worker, workers
from nephoscope.serve.workers import Workers
from nephoscope.store import Store, StoredRun

Ask = Callable[..., Awaitable[RenderedResponse]]


def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    return [Sample("null_ns", 100.0 + (7 * number) % 5 + (target == "two"))]


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    return make_run(tmp_path, TWO_TARGETS, sampler, invalid=(3,))


def with_workers(store: Path, use: Callable[[Workers], Awaitable[None]], **more: Any) -> None:
    async def whole() -> None:
        pool = Workers(store, **more)
        try:
            await use(pool)
        finally:
            await pool.close()

    asyncio.run(whole())


def test_documents_are_those_of_the_command_line(tmp_path: Path, run: StoredRun) -> None:
    async def use(pool: Workers) -> None:
        answer = await pool.answer("result", {"run": run.id, "analyse": True})
        wanted = json.loads(json.dumps(report_files.document(analyse_run.build(run))))
        assert json.loads(answer.body) == wanted
        refused = await pool.answer("result", {"run": run.id, "analyse": False})
        assert refused.status == 503
        report_files.write(analyse_run.build(run), run.report_path)
        stored = await pool.answer("result", {"run": run.id, "analyse": False})
        assert stored.body == (run.report_path / "result.json").read_bytes()
        names = [f"{run.id}:one", f"{run.id}:two"]
        rules = {"margin": 0.03, "confidence": 0.95, "metrics": []}
        compared = await pool.answer("compare", {"names": names, **rules})
        comparisons = of_stored_runs(
            Store(tmp_path), names, ComparisonRules(0.03, 0.95, frozenset())
        )
        assert json.loads(compared.body) == json.loads(json.dumps(versioned(comparisons)))
        journal = await pool.answer("journal", {"run": run.id})
        assert json.loads(journal.body)["events"] == run.events()
        version = await pool.answer("command", {"words": ["config", "--json"]})
        assert json.loads(version.body)["schema_version"] == 1
        wrong = await pool.answer("command", {"words": ["list", "--json", "--", "no such"]})
        assert wrong.status == 400
        assert "no such" in json.loads(wrong.body)["error"]

    with_workers(tmp_path, use, count=1)


def test_the_report_may_run_its_own_scripts_only(tmp_path: Path, run: StoredRun) -> None:
    async def use(pool: Workers) -> None:
        made = await pool.answer("report", {"run": run.id, "analyse": True})
        policy = made.headers["content-security-policy"]
        assert policy.startswith(
            "sandbox allow-scripts allow-downloads; frame-ancestors 'self'; default-src 'none'"
        )
        assert "'sha256-" in policy
        report_files.write(analyse_run.build(run), run.report_path)
        stored = await pool.answer("report", {"run": run.id, "analyse": False})
        assert stored.body == (run.report_path / "report.html").read_bytes()
        assert stored.headers == made.headers

    with_workers(tmp_path, use, count=1)


def test_a_report_with_another_policy_runs_no_script(tmp_path: Path, run: StoredRun) -> None:
    from nephoscope.store.digests import digest_of

    report_files.write(analyse_run.build(run), run.report_path)
    page = run.report_path / "report.html"
    page.write_text("<script>alert(1)</script>")
    sums = run.report_path / "report.sha256"
    sums.write_text(f"{digest_of(page.read_bytes())}  report.html\n")

    async def use(pool: Workers) -> None:
        stored = await pool.answer("report", {"run": run.id, "analyse": False})
        policy = stored.headers["content-security-policy"]
        assert policy.endswith("default-src 'none'")
        assert "sha256" not in policy

    with_workers(tmp_path, use, count=1)


def test_samples_trials_and_lines(tmp_path: Path, run: StoredRun) -> None:
    report_files.write(analyse_run.build(run), run.report_path)
    bare = make_run(tmp_path, TWO_TARGETS, sampler)
    line = {"benchmark": "null", "metric": "null_ns", "target": "two", "factors": "{}"}

    async def use(pool: Workers) -> None:
        async def ask(function: str, **arguments: Any) -> Any:
            return json.loads((await pool.answer(function, arguments)).body)

        trials = await ask("trials", run=run.id, offset=2, limit=2)
        assert (trials["total"], len(trials["trials"])) == (22, 2)
        samples = await ask("samples", run=run.id, **line)
        assert (samples["unit"], samples["samples"]) == ("ns", 11)
        assert samples["trials"][3]["status"] == "invalid"
        assert samples["trials"][1]["points"] == [[0, 103.0, 1]]
        lines = await ask("lines", runs=[run.id, bare.id])
        assert [one["target"] for one in lines["lines"]] == ["one", "two"]
        wrong = await pool.answer("samples", {"run": run.id, **line, "factors": "{"})
        assert wrong.status == 400
        words = ["history", "null_ns", "--json", f"--store={tmp_path}", "--target=two"]
        history = await ask("command", words=words)
        (series,) = history["series"]
        points = [
            (point["run"], point["target"], point["estimate"]["n"]) for point in series["points"]
        ]
        assert points == [(run.id, "two", 9), (bare.id, "two", 10)]

    with_workers(tmp_path, use, count=1)


def test_a_level_is_found_as_javascript_writes_it(tmp_path: Path) -> None:
    plan = NULL_PLAN + "    factors: {noise_ratio: [0.0, 1.0]}\n"
    run = make_run(tmp_path, plan, sampler, rounds=1)
    line = {"benchmark": "null", "metric": "null_ns", "target": "local"}

    async def use(pool: Workers) -> None:
        for factors in ('{"noise_ratio":1}', '{"noise_ratio":1.0}'):
            answer = await pool.answer("samples", {"run": run.id, **line, "factors": factors})
            assert json.loads(answer.body)["samples"] == 2, factors

    with_workers(tmp_path, use, count=1)


def test_a_worker_that_dies_is_replaced(tmp_path: Path, run: StoredRun) -> None:
    async def use(pool: Workers) -> None:
        arguments = {"run": run.id}
        await pool.answer("journal", arguments)
        worker = await pool._idle.get()
        assert worker is not None
        os.kill(worker._process.pid, signal.SIGSTOP)
        pool._idle.put_nowait(worker)
        asking = asyncio.create_task(pool.answer("journal", arguments))
        await asyncio.sleep(0)
        os.kill(worker._process.pid, signal.SIGKILL)
        with pytest.raises(NephoscopeError, match="was killed; it may need more memory"):
            await asking
        assert (await pool.answer("journal", arguments)).status == 200

    with_workers(tmp_path, use, count=1)


def test_a_defect_names_the_run_and_the_file_of_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(worker, "FUNCTIONS", {"compare": lambda store, names: {}[names[0]]})
    answer = worker._answer(Store(tmp_path), "compare", {"names": ["run-a", "run-b"]})
    assert answer.status == 500
    said = json.loads(answer.body)
    assert said["error"] == (
        "This is a defect of nephoscope in compare of run-a and run-b (KeyError: 'run-a')."
    )
    (file,) = tmp_path.glob("nephoscope-defect-*.txt")
    assert str(file) in said["hint"]
    assert "Traceback" in file.read_text(encoding="utf-8")


def test_an_answer_that_takes_too_long_is_given_up(
    tmp_path: Path, run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(pool: Workers) -> None:
        await pool.answer("journal", {"run": run.id})
        worker = await pool._idle.get()
        assert worker is not None
        os.kill(worker._process.pid, signal.SIGSTOP)
        pool._idle.put_nowait(worker)
        monkeypatch.setattr(workers, "ANSWER_S", 0.05)
        with pytest.raises(Refusal, match="took longer"):
            await pool.answer("journal", {"run": run.id})
        assert not worker.is_alive

    with_workers(tmp_path, use, count=1)


def test_answers_of_the_same_version_are_used_again(
    tmp_path: Path, run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(pool: Workers) -> None:
        first = await pool.answer("journal", {"run": run.id}, version=1)
        assert await pool.answer("journal", {"run": run.id}, version=1) is first
        assert await pool.answer("journal", {"run": run.id}, version=2) is not first
        monkeypatch.setattr(workers, "CACHE_BYTES", 0)
        await pool.answer("journal", {"run": run.id}, version=3)
        assert not pool._answers
        assert pool._answers_bytes == 0

    with_workers(tmp_path, use, count=1)


def test_requests_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MAX_WAITING", 0)

    async def use(pool: Workers) -> None:
        with pytest.raises(Refusal, match="Too many analyses"):
            await pool.answer("journal", {"run": "any"})

    with_workers(tmp_path, use)


def test_unknown_runs_are_404(tmp_path: Path) -> None:
    make_run(tmp_path, NULL_PLAN, sampler, rounds=1)

    async def use(pool: Workers) -> None:
        assert (await pool.answer("journal", {"run": "none"})).status == 404

    with_workers(tmp_path, use, count=1)
