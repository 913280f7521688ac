"""Requests of every kind that the OpenAPI document allows, and of kinds that it does not.

`NEPHOSCOPE_API_S=600` sets the seconds. schemathesis draws parameters, headers and bodies, checks
each answer against its schema, and reports every status of 500 and above.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.results.made import NULL_PLAN, make_run
from tests.serve.made import PATIENCE_S, TOKEN, running
from tests.tools import located, needs

from nephoscope.core.model import Sample, Setting
from nephoscope.httpd.settings import TOKEN_VARIABLE

TEST_S = int(os.environ.get("NEPHOSCOPE_API_S", "240"))
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
VALUES = """
[dictionaries.runs]
values = ["{run}", "latest"]
[dictionaries.plans]
values = ["plan.yaml"]
[dictionaries.events]
values = ["events.csv"]
[dictionaries.files]
values = ["plan.yaml", "events.csv"]
[dictionaries.metrics]
values = ["null_ns", "null null_ns"]
[parameters]
run = {{dictionary = "runs", probability = 0.7}}
runs = {{dictionary = "runs", probability = 0.7}}
a = {{dictionary = "runs", probability = 0.7}}
file = {{dictionary = "files", probability = 0.7}}
plan = {{dictionary = "plans", probability = 0.7}}
events = {{dictionary = "events", probability = 0.7}}
metric = {{dictionary = "metrics", probability = 0.7}}
"""
FINISHING_S = 300
"""Time that it gets to end its last phase and to report, besides `TEST_S`."""


def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    return [Sample("null_ns", 100.0 + number)]


@pytest.mark.slow
@needs("schemathesis")
def test_the_api_keeps_to_its_document(tmp_path: Path) -> None:
    store, data = tmp_path / "store", tmp_path / "data"
    data.mkdir()
    (data / "plan.yaml").write_text(NULL_PLAN)
    (data / "events.csv").write_text("time,ok\n1685577600,1\n1685577660,0\n")
    run = make_run(store, NULL_PLAN, sampler, rounds=2)
    log = tmp_path / "log"
    document, values = tmp_path / "openapi.json", tmp_path / "values.toml"
    # Names that exist: none is drawn by chance, and what they lead to would never be asked for.
    values.write_text(VALUES.format(run=run.id))
    with running(store, f"--data={data}", "--token", log=log, **{TOKEN_VARIABLE: TOKEN}) as server:
        # Not by schemathesis itself, which waits 10 s for it whatever else the machine does.
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        connection.request("GET", "/api/openapi.json", headers={"authorization": f"Bearer {TOKEN}"})
        description = json.loads(connection.getresponse().read())
        connection.close()
        # It would send wrong tokens, and all further requests would be refused as guesses.
        del description["security"]
        document.write_text(json.dumps(description))
        words = [
            located("schemathesis"), "--config-file", str(values), "run", str(document),
            "--url", server.url.rstrip("/"),
            "--header", f"Authorization: Bearer {TOKEN}", "--checks", ",".join(CHECKS),
            "--max-time", str(TEST_S), "--request-timeout", "120", "--workers", "1",
            "--phases", "examples,coverage,fuzzing", "--no-color", "--continue-on-failure",
        ]  # fmt: skip
        done = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, timeout=TEST_S + FINISHING_S
        )
        assert server.process.poll() is None, "the server has ended"
    print(done.stdout)  # noqa: T201
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
    assert "Traceback" not in log.read_text()
