"""Sessions of Spark: requirements of this machine, first contact, errors as sentences."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from nephoscope.core.errors import Lacking, NephoscopeError, RunFailed, StoreError, words_of
from nephoscope.store.engines import worker_facts
from nephoscope.store.engines.spark_url import CLASSIC, SparkUrl

Result = TypeVar("Result")

CONNECT_S = 5.0
START_S = 300.0
"""Seconds for the first tasks: workers start a process of Java and one of Python each."""
_SETTINGS = {
    "spark.app.name": "nephoscope",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
    # Few small partitions would become one, and a group is one task's anyway.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}
_INSTALL = "Install it with `pip install 'nephoscope[spark]'`."


def started(url: SparkUrl, folder: str) -> Any:
    """Returns a session whose workers run the same code on the same versions and see a folder.

    Raises Lacking, RunFailed or StoreError with the sentence for what is in the way.
    """
    _require(url)
    _reach(url)
    try:
        session = within(START_S, partial(_session, url))
    except TimeoutError:
        raise RunFailed(
            f"{url} accepts connections, but no application.", "Look at the log of its master."
        ) from None
    except NephoscopeError:
        raise
    except Exception as error:
        raise translated(error, url) from error
    try:
        _check_workers(session, url, folder)
    except BaseException:
        end(session)
        raise
    return session


def _require(url: SparkUrl) -> None:
    try:
        import pyspark  # noqa: F401

        if url.scheme != CLASSIC:
            import grpc  # noqa: F401
            import pandas  # noqa: F401
    except ImportError as error:
        raise Lacking(f"The engine {url} needs PySpark ({words_of(error)}).", _INSTALL) from None
    if url.scheme == CLASSIC and not _java():
        raise Lacking(
            "A driver of Spark needs Java 17 or later, which this machine lacks.",
            "Install it (`apt install openjdk-17-jre-headless`), or use Spark Connect "
            "(sc://HOST:PORT), which needs none here.",
        )


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")


def _reach(url: SparkUrl) -> None:
    """Raises RunFailed where no address of the cluster accepts a connection."""
    reasons = []
    for host, port in url.addresses:
        try:
            socket.create_connection((host.strip("[]"), port), CONNECT_S).close()
        except OSError as error:
            reasons.append(f"{host}:{port}: {words_of(error)}")
        else:
            return
    server = "Spark master" if url.scheme == CLASSIC else "Spark Connect server"
    raise RunFailed(
        f"No {server} answers at {url} ({'; '.join(reasons)}).",
        "Start the cluster, correct the address, or omit --engine to use this machine.",
    )


def _session(url: SparkUrl) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    if url.scheme != CLASSIC:
        return builder.remote(url.full).getOrCreate()
    settings = dict(_SETTINGS)
    if url.cores:
        settings["spark.cores.max"] = str(url.cores)
    if url.is_loopback:
        # Else Spark looks up the name of this host, which a cluster on loopback may not reach.
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    # The workers of a cluster elsewhere have their own Python, by its usual name.
    python = sys.executable if url.is_loopback else "python3"
    with _environment(PYSPARK_PYTHON=os.environ.get("PYSPARK_PYTHON", python)), _without_messages():
        return builder.master(str(url)).getOrCreate()


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _without_messages() -> Iterator[None]:
    """Sends what Java writes while it starts to nowhere; errors come as exceptions."""
    stderr = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)


def cores_of(session: Any) -> int:
    """Returns the number of cores that the session has, as far as its kind tells."""
    if hasattr(session, "_jsparkSession"):
        return max(1, int(session.sparkContext.defaultParallelism))
    return 4


def end(session: Any) -> None:
    """Ends the application; what fails then has no consequence."""
    with contextlib.suppress(Exception):
        if hasattr(session, "_jsparkSession"):
            session.sparkContext.cancelAllJobs()
        else:
            session.interruptAll()
    with contextlib.suppress(Exception):
        within(CONNECT_S, session.stop)


def within(timeout_s: float, call: Callable[[], Result]) -> Result:
    """Returns what a call returns. Raises TimeoutError where it takes longer; it then goes on."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    # Not a pool's thread, for which the program would wait when it ends.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout_s)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]


def _check_workers(session: Any, url: SparkUrl, folder: str) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(worker_facts)
    tasks = 2 * cores_of(session)
    frame = session.range(0, tasks, 1, tasks).mapInArrow(
        partial(worker_facts.facts_in_batches, folder, _mirror_in(folder)), "facts string"
    )
    try:
        table = within(START_S, frame.toArrow)
    except TimeoutError:
        raise RunFailed(
            f"No worker of {url} took a task within {START_S:.0f} s.",
            "Another application may hold all cores (limit it with spark.cores.max), or no worker "
            "has started.",
        ) from None
    except Exception as error:
        raise translated(error, url) from error
    finally:
        cloudpickle.unregister_pickle_by_value(worker_facts)
    own = worker_facts.worker_facts(folder)
    for text in sorted(set(table["facts"].to_pylist())):
        _require_equal(json.loads(text), own, url, folder)


def _mirror_in(folder: str) -> str:
    """Returns what makes a folder the mirror of a store on object storage; '' where it is none."""
    path = Path(folder, worker_facts.MIRROR_FILE)
    return path.read_text(encoding="utf-8") if folder and path.is_file() else ""


def _require_equal(facts: dict[str, Any], own: dict[str, Any], url: SparkUrl, folder: str) -> None:
    host = facts["host"]
    for name in ("Python", *worker_facts.LIBRARIES, "nephoscope"):
        if not facts[name]:
            raise Lacking(
                f"The worker {host} of {url} has no {name}.",
                f"Install {name} {own[name]} for the Python of the workers.",
            )
        if facts[name] != own[name]:
            raise Lacking(
                f"The worker {host} of {url} has {name} {facts[name]}, this machine {own[name]}: "
                "digits may differ.",
                "Install the same version on both (PYSPARK_PYTHON names the Python of the "
                "workers).",
            )
    if not facts["sees"]:
        raise StoreError(
            f"The worker {host} of {url} does not see {folder}.",
            "Put the store on a file system that all workers mount at this path, or on object "
            "storage, whose copies the workers have to be able to make at this path.",
        )


_MISSING = re.compile(r"No module named '([^']+)'")
_VERSIONS = re.compile(r"different version[^0-9]*(\d+[.\d ]*)[^0-9]+(\d+[.\d ]*)")


def translated(error: Exception, url: SparkUrl) -> NephoscopeError:
    """Returns an error of Spark as one sentence."""
    text = str(error)
    if "PYTHON_VERSION_MISMATCH" in text:
        match = _VERSIONS.search(text)
        versions = f" ({match[1].strip()} and {match[2].strip()})" if match else ""
        return Lacking(
            f"The workers of {url} run another version of Python than this machine{versions}.",
            "Set PYSPARK_PYTHON to a Python of this version on the workers.",
        )
    if missing := _MISSING.search(text):
        name = missing[1].partition(".")[0]
        return Lacking(
            f"The workers of {url} have no {name}.",
            f"Install {name} for the Python of the workers.",
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b.*:", line)]
    reason = (named or lines or [type(error).__name__])[-1 if named else 0]
    return RunFailed(
        f"{url} failed: {reason[:200].rstrip('.')}.", "Look at the log of its workers."
    )
