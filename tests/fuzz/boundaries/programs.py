"""Input and output of the programs: probe, simulator, transfers of objects."""

from __future__ import annotations

import functools
import json
import resource
import subprocess
import tempfile
from collections.abc import Sequence

from nephoscope import catalog
from nephoscope.core import programs
from nephoscope.core.errors import NephoscopeError, TargetError
from nephoscope.features.sla import probes as sla_probes
from nephoscope.measure.targets.probe.output import check_version, parse_output

from ..boundary import CASE_S, JSON, JSON_LINES, MEMORY_BYTES, Boundary, json_bytes, json_lines
from .inputs import text_of

PROGRAM_EXITS = {0, 2, 3, 4, 124}
DEADLINE_S = "2"


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _program(words: Sequence[str]) -> None:
    """Runs one of our programs, which may refuse its input but neither die nor panic."""
    done = subprocess.run(
        words, capture_output=True, timeout=CASE_S, preexec_fn=limit_memory, check=False
    )
    if done.returncode not in PROGRAM_EXITS or b"panicked" in done.stderr:
        said = done.stderr.decode(errors="replace")
        raise AssertionError(f"exit code {done.returncode}: {said[-300:]}")


_OUTPUT = json_lines(
    [
        {"sample": {"metric": "null_ns", "value": 100.0, "factors": {}}},
        {"sample": {"metric": "null_latency_ns", "value": 3, "count": 5, "at_ns": 7}},
        {"document": {"name": "d", "value": {"a": [1, 2]}}},
        {"done": {"samples": 3, "elapsed_ns": 5, "counters": {"steal_ratio": None}}},
    ]
)


def _probe_output(case: bytes) -> object:
    return parse_output(catalog.load().benchmark("null"), case, 0)


_ANSWER = b'{"id":7,"ok":null,"response_ns":1500000,"held_ns":9,"reason":"timeout","hint":"Wait."}'


def _probe_answer(case: bytes) -> object:
    try:
        return sla_probes.answer_of(case)
    except ValueError as error:
        raise TargetError(f"far: its probe prints what is no answer: {error}.") from error


@functools.cache
def _descriptions() -> tuple[bytes, ...]:
    words = [programs.find_probe(), "describe"]
    return (subprocess.run(words, capture_output=True, check=True).stdout,)


def _probe_description(case: bytes) -> object:
    return check_version(case, catalog.load(), "here")


_PARAMS = b'{"value": 3.5, "noise_ratio": 0.1, "samples": 4, "seed": 7, "wait_ns": 10}'


def _probe_params(case: bytes) -> object:
    with tempfile.NamedTemporaryFile() as params:
        params.write(case)
        params.flush()
        words = ["run", "null", "--params", f"@{params.name}", "--deadline", DEADLINE_S]
        return _program([str(programs.find_probe()), *words])


@functools.cache
def _scenarios() -> tuple[bytes, ...]:
    done = subprocess.run([programs.find_simulator(), "scenarios"], capture_output=True, check=True)
    named = json.loads(done.stdout)
    return tuple(
        json_bytes({"id": kind, "scenario": scenario})
        for kind, scenarios in named.items()
        for scenario in scenarios.values()
    )


def _simulator(case: bytes) -> object:
    try:
        values = json.loads(case)
        kind, scenario = str(values["id"]), json.dumps(values["scenario"])
    except (ValueError, KeyError, TypeError):
        kind, scenario = "sim.geo", text_of(case)
    with tempfile.NamedTemporaryFile("w", errors="replace") as params:
        json.dump({"scenario": scenario}, params)
        params.flush()
        kind = kind.replace("\0", "").encode(errors="replace").decode()[:100]
        words = ["run", kind, "--params", f"@{params.name}", "--deadline", DEADLINE_S]
        return _program([str(programs.find_simulator()), *words])


_SERVICES = ("s3", "azblob", "gcs", "webdav", "webhdfs")
_KEYS = b"""# of all services
[default]
AWS_ACCESS_KEY_ID=an-id-of-the-test
export AWS_SECRET_ACCESS_KEY="a=secret"
AZURE_STORAGE_ACCOUNT_NAME = account
AZURE_STORAGE_ACCOUNT_KEY = a2V5
GOOGLE_OAUTH_TOKEN='token'
WEBDAV_USERNAME=user
WEBDAV_PASSWORD=password
HADOOP_USER_NAME=user
"""


def _credentials(case: bytes) -> None:
    """Gives a file of credentials to a service that nobody serves, another one each time."""
    service = _SERVICES[len(case) % len(_SERVICES)]
    with tempfile.NamedTemporaryFile() as file:
        file.write(case)
        file.flush()
        params = {
            "service": service,
            "endpoint": "http://127.0.0.1:1",
            "bucket": "" if service.startswith("web") else "b",
            "credentials_file": file.name,
            "retries": 0,
        }
        words = ["run", "storage.transfer", "--params", json.dumps(params)]
        _program([str(programs.find_storage()), *words, "--deadline", DEADLINE_S])


def _storage_is_built() -> bool:
    try:
        return bool(programs.find_storage())
    except NephoscopeError:
        return False


BOUNDARIES = (
    Boundary("probe output", lambda: (_OUTPUT,), _probe_output, JSON_LINES),
    Boundary("probe parameters", lambda: (_PARAMS,), _probe_params, JSON),
    Boundary("answers of the probe of services", lambda: (_ANSWER,), _probe_answer, JSON),
    Boundary("simulator", _scenarios, _simulator, JSON),
    Boundary("probe description", _descriptions, _probe_description, JSON),
    *([Boundary("credentials", lambda: (_KEYS,), _credentials)] if _storage_is_built() else []),
)
