"""What is in the way of Spark, as sentences; the cluster itself is in tests/engines."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from nephoscope.core.errors import Lacking, RunFailed, StoreError
from nephoscope.store.engines import spark_session, worker_facts
from nephoscope.store.engines.spark_url import SparkUrl
from nephoscope.store.objects import address

URL = SparkUrl.parsed("spark://127.0.0.1:7077")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(Lacking, match=r"pip install 'nephoscope\[spark\]'"):
        spark_session.started(URL, "")


def test_a_missing_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", sys)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Lacking, match="needs Java 17 or later, which this machine lacks"):
        spark_session.started(URL, "")


def test_no_master_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", sys)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("")
    java.chmod(0o755)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(RunFailed) as caught:
        spark_session.started(SparkUrl.parsed(f"spark://127.0.0.1:{port}"), "")
    assert str(caught.value) == (
        f"No Spark master answers at spark://127.0.0.1:{port} (127.0.0.1:{port}: Connection "
        "refused). Start the cluster, correct the address, or omit --engine to use this machine."
    )


@pytest.mark.parametrize(
    ("change", "kind", "sentence"),
    [
        ({"Python": "3.9.1"}, Lacking, "has Python 3.9.1, this machine"),
        ({"numpy": ""}, Lacking, "The worker w of spark://127.0.0.1:7077 has no numpy."),
        ({"nephoscope": "0.0.9"}, Lacking, "has nephoscope 0.0.9, this machine"),
        ({"sees": False}, StoreError, "does not see /store. Put the store on a file system"),
    ],
)
def test_workers_that_cannot_answer_equally_are_named(
    change: dict[str, object], kind: type[Exception], sentence: str
) -> None:
    own = worker_facts.worker_facts("")
    spark_session._require_equal({**own, "host": "w"}, own, URL, "/store")
    with pytest.raises(kind) as caught:
        spark_session._require_equal({**own, "host": "w", **change}, own, URL, "/store")
    assert sentence in str(caught.value)


def test_facts_tell_the_source_and_the_folder(tmp_path: Path) -> None:
    facts = worker_facts.worker_facts(str(tmp_path))
    assert facts["sees"]
    assert "source" in facts["nephoscope"]
    assert not worker_facts.worker_facts(str(tmp_path / "none"))["sees"]


def test_a_mirror_of_a_store_on_object_storage_is_made_where_it_is_missing(tmp_path: Path) -> None:
    known = address.folder_of("s3://lab/runs?endpoint=http://127.0.0.1:9")
    there = tmp_path / "worker" / "objects" / "lab"
    facts = worker_facts.worker_facts(str(there), spark_session._mirror_in(str(known)))
    assert facts["sees"]
    assert address.address_of(there) == address.address_of(known)
    assert spark_session._mirror_in(str(tmp_path)) == ""
    assert worker_facts.MIRROR_FILE == address.FILE


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in "
            "driver: 3.11, PySpark cannot run",
            "run another version of Python than this machine (3.9 and 3.11).",
        ),
        (
            "Traceback\nModuleNotFoundError: No module named 'nephoscope.store'",
            "have no nephoscope. Install nephoscope for the Python of the workers.",
        ),
        (
            "Job aborted\nTraceback (most recent call last):\n  File x\n"
            "nephoscope.core.errors.StoreError: /s/a.jsonl: line 3 is damaged.\n\tat org.apache",
            "failed: nephoscope.core.errors.StoreError: /s/a.jsonl: line 3 is damaged.",
        ),
    ],
)
def test_errors_of_spark_are_one_sentence(text: str, sentence: str) -> None:
    error = spark_session.translated(Exception(text), URL)
    assert sentence in str(error)
    assert "\n" not in str(error)


def test_a_call_without_an_end_is_left() -> None:
    with pytest.raises(TimeoutError):
        spark_session.within(0.05, _wait)


def _wait() -> None:
    reading, _ = os.pipe()
    os.read(reading, 1)
