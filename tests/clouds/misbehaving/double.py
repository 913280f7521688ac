"""Starts the double and speaks to its control port: what tests import."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
KEY, SECRET = "AKIDNEPHOSCOPETEST01", "a-secret-that-must-not-be-seen"


class Double:
    """A running double. Its commands are those of `control.Control`, e.g. `double.advance(60)`."""

    def __init__(self, endpoint: str, control: str) -> None:
        self.endpoint = endpoint
        self.control = control

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def command(*unnamed: Any, **given: Any) -> Any:
            return self.ask(name, *unnamed, **given)

        return command

    def ask(self, do: str, /, *unnamed: Any, **given: Any) -> Any:
        """One command. Raises ValueError with the double's words."""
        from .control import Control

        if unnamed:
            method = getattr(Control, do).__code__
            given |= dict(zip(method.co_varnames[1:], unnamed, strict=False))
        body = json.dumps({"do": do, **given}).encode()
        request = urllib.request.Request(self.control, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as problem:
            with problem:
                raise ValueError(problem.read().decode()) from None

    def metadata(
        self,
        instance: str,
        path: str,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """What a machine gets from its metadata service: status and text."""
        url = f"{self.control}/imds/{instance}/latest/{path}"
        request = urllib.request.Request(url, method=method, headers=dict(headers or {}))
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as problem:
            with problem:
                return problem.code, problem.read().decode()

    def live(self, kind: str = "", **tags: str) -> list[dict[str, Any]]:
        """Resources that are there now, and cost or could: no lag, nothing hidden."""
        return [
            each
            for each in self.oracle()
            if each["live"]
            and kind in ("", each["kind"])
            and all(each["tags"].get(key) == value for key, value in tags.items())
        ]

    def environment(self) -> dict[str, str]:
        """Variables by which the AWS libraries find the credentials, and nothing of the user's."""
        nowhere = os.devnull
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_CONFIG_FILE": nowhere,
            "AWS_SHARED_CREDENTIALS_FILE": nowhere,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_DEFAULT_REGION": "us-east-1",
        }


@contextlib.contextmanager
def running(seed: int = 0, scale: float = 1.0) -> Iterator[Double]:
    """A double in a process of its own, ended with the block or with this process."""
    words = [
        sys.executable,
        "-m",
        "tests.clouds.misbehaving.server",
        "--seed",
        str(seed),
        "--scale",
        str(scale),
    ]
    process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("the double did not start")
        yield Double(**json.loads(line))
    finally:
        process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        process.stdout.close()
