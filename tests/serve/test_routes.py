"""The routes in this process: page, list of runs, log-in, description."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.results.made import NULL_PLAN, TWO_TARGETS, make_run
from tests.schemas import validate
from tests.serve.made import TOKEN, call, settings

from nephoscope.core.errors import UnknownName
from nephoscope.core.model import Sample, Setting
from nephoscope.httpd.access import COOKIE, FAILURES_PER_CLIENT
from nephoscope.serve.app import make_app
from nephoscope.serve.dashboard import Dashboard
from nephoscope.store import Store, StoredRun, index
from nephoscope.store.index import RunIndex, Snapshot

HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m"
JSON = {"content-type": "application/json"}


def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    return [Sample("null_ns", 100.0 + number)]


@pytest.fixture
def runs(tmp_path: Path) -> list[StoredRun]:
    """Three runs, oldest first; the last one has a hostile label."""
    store = tmp_path / "store"
    made = [
        make_run(store, NULL_PLAN, sampler, rounds=1),
        make_run(store, TWO_TARGETS, sampler, rounds=1, state="failed"),
        make_run(store, NULL_PLAN.replace("made", "third"), sampler, rounds=1),
    ]
    made[2].update(labels={"rack": HOSTILE})
    return made


@pytest.fixture
def app(tmp_path: Path, runs: list[StoredRun]) -> Any:
    return make_app(settings(tmp_path / "store"))


def ids(app: Any, query: str) -> list[str]:
    return [run["id"] for run in call(app, f"/api/v1/runs?{query}").json["runs"]]


def test_a_run_has_its_page_while_the_list_is_still_being_read(
    tmp_path: Path, runs: list[StoredRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    times_s, real = iter([-1.0, -1.0]), RunIndex._read_store

    def read(self: RunIndex) -> Snapshot:
        monkeypatch.setattr(index, "READ_TIME_S", next(times_s, 60.0))
        return real(self)

    monkeypatch.setattr(RunIndex, "_read_store", read)
    dashboard = Dashboard(settings(tmp_path / "store"))
    assert asyncio.run(dashboard.run(runs[0].id)).row.id == runs[0].id
    with pytest.raises(UnknownName, match="no run 'nosuch'"):
        asyncio.run(dashboard.run("nosuch"))


def test_a_list_that_does_not_grow_ends_the_search(
    tmp_path: Path, runs: list[StoredRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "READ_TIME_S", -1.0)
    with pytest.raises(UnknownName):
        asyncio.run(Dashboard(settings(tmp_path / "store")).run(runs[0].id))


def test_runs_are_listed_filtered_and_paged(app: Any, runs: list[StoredRun]) -> None:
    first, second, third = (run.id for run in runs)
    assert ids(app, "") == [third, second, first]
    assert ids(app, "state=failed") == [second]
    assert ids(app, "target=two") == [second]
    assert ids(app, "plan=third") == [third]
    assert ids(app, "benchmark=null&text=MADE") == [second, first]
    assert ids(app, "text=nothing") == []
    assert ids(app, "factor=resource") == []
    assert ids(app, "since=2000-01-01&until=2000-01-02") == []
    assert ids(app, "offset=1&limit=1") == [second]
    page = call(app, "/api/v1/runs?offset=1&limit=1").json
    assert (page["total"], page["offset"], page["complete"]) == (3, 1, True)


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "offset=-1", "since=yesterday", "label=x", "limit=many"]
)
def test_wrong_conditions_are_one_sentence(app: Any, query: str) -> None:
    reply = call(app, f"/api/v1/runs?{query}")
    assert reply.status == 400
    assert set(reply.json) == {"error", "hint"}


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/assets/../../settings.py",
        "/assets/..\\..\\settings.py",
        "//etc/passwd",
        "/static/index.html",
        "/index.html/",
        "/api/v1/nothing",
        "/api/v1/runs/../../../etc/passwd/result",
        "/api/v1/runs/..%2f..%2f/result",
        "/api/v1/runs/./journal",
        "/api/v1/runs/x\0y/trials",
        "/api/v1/runs/none/events",
        "/api/v1/commands/survey",
        "/docs",
        "/redoc",
    ],
)
def test_what_is_not_there_is_404(app: Any, path: str) -> None:
    reply = call(app, path)
    assert reply.status == 404, reply.body[:200]
    assert b"Traceback" not in reply.body
    assert str(Path.cwd()).encode() not in reply.body


def test_the_page_is_served_with_its_files(app: Any) -> None:
    page = call(app, "/")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-cache"
    names = [part.split('"')[0] for part in page.body.decode().split('="./')[1:]]
    assert any(name.endswith(".js") for name in names)
    for name in names:
        file = call(app, f"/{name}")
        assert file.status == 200, name
        again = call(app, f"/{name}", headers={"if-none-match": file.headers["etag"]})
        assert (again.status, again.body) == (304, b"")


def test_hostile_text_stays_json_without_control_characters(app: Any) -> None:
    reply = call(app, "/api/v1/runs")
    assert reply.headers["content-type"] == "application/json"
    assert b"\x1b" not in reply.body
    assert "\u202e" not in reply.body.decode()
    assert reply.json["runs"][0]["labels"] == {"rack": HOSTILE}


def test_a_server_only_reads_unless_it_is_told_otherwise(app: Any, runs: list[StoredRun]) -> None:
    start = call(app, "/api/v1/runs", method="POST", headers=JSON, body=b'{"survey": "quick"}')
    stop = call(app, f"/api/v1/runs/{runs[0].id}/stop", method="POST")
    assert (start.status, stop.status) == (403, 403)
    for method in ("PUT", "DELETE", "PATCH"):
        assert call(app, f"/api/v1/runs/{runs[0].id}/result", method=method).status == 405


def test_log_in_opens_a_session_and_log_out_ends_it(tmp_path: Path) -> None:
    app = make_app(settings(tmp_path, token=TOKEN))
    assert call(app, "/api/v1/session").json["logged_in"] is False

    def log_in(token: Any) -> Any:
        body = json.dumps({"token": token}).encode()
        return call(app, "/api/v1/session", method="POST", headers=JSON, body=body)

    assert log_in("wrong").status == 401
    assert log_in(7).status == 400
    reply = log_in(TOKEN)
    assert reply.status == 204
    cookie = reply.headers["set-cookie"]
    assert TOKEN not in cookie
    assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    mine = {"cookie": cookie.split(";")[0]}
    assert mine["cookie"].startswith(f"{COOKIE}=")
    assert call(app, "/api/v1/overview", headers=mine).status == 200
    assert call(app, "/api/v1/session", method="DELETE", headers=mine).status == 204
    assert call(app, "/api/v1/overview", headers=mine).status == 401
    for _ in range(FAILURES_PER_CLIENT - 1):
        log_in("wrong")
    assert log_in(TOKEN).status == 429


def test_documents_meet_their_schemas_in_the_description(app: Any, runs: list[StoredRun]) -> None:
    description = call(app, "/api/openapi.json").json
    schemas = description["components"]["schemas"]
    for path in ("/overview", "/runs", "/session", "/files", "/commands"):
        content = description["paths"][f"/api/v1{path}"]["get"]["responses"]["200"]["content"]
        schema = {**content["application/json"]["schema"], "components": {"schemas": schemas}}
        validate(call(app, f"/api/v1{path}").json, schema)
    refused = {**schemas["refused_request"], "components": {"schemas": schemas}}
    for path, method, status in (
        ("/runs?limit=0", "GET", 400),
        ("/commands/census?run=", "GET", 404),
        ("/session", "POST", 400),
        ("/session", "PUT", 405),
    ):
        reply = call(app, f"/api/v1{path}", method=method)
        assert reply.status == status, path
        validate(reply.json, refused)
    for path, operations in description["paths"].items():
        for operation in operations.values():
            assert "default" in operation["responses"], path
            assert "422" not in operation["responses"], path
    text = json.dumps(description)
    names = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert names <= schemas.keys()
    assert {"result", "compare", "sla_verdict", "journal"} <= schemas.keys()


def test_the_latest_run_is_that_of_the_command_line(app: Any, runs: list[StoredRun]) -> None:
    runs[2].update(state="running")  # and no process measures it
    runs[1].update(state="finished")

    async def ask() -> str:
        inner = app._app.state.dashboard
        return str((await inner.run("latest")).row.id)

    assert asyncio.run(ask()) == Store(runs[0].path.parents[1]).find("latest").id == runs[1].id


def test_an_empty_store_and_a_damaged_run_are_no_errors(tmp_path: Path) -> None:
    app = make_app(settings(tmp_path / "none"))
    assert call(app, "/api/v1/overview").json["runs"] == 0
    assert call(app, "/api/v1/runs/latest/result").status == 404
    run = make_run(tmp_path / "store", NULL_PLAN, sampler, rounds=1)
    (run.path / "manifest.json").write_text("{")
    app = make_app(settings(tmp_path / "store"))
    overview = call(app, "/api/v1/overview").json
    assert len(overview["damaged"]) == 1
    assert call(app, f"/api/v1/runs/{run.id}/result").status == 404
