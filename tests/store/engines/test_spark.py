"""A real cluster of Spark gives the bits of this process, also when a worker is killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import hardware
from tests.conftest import ROOT

from nephoscope.features.engines import conformance
from nephoscope.store.engines.local import LocalEngine

from ..objects import s3_double
from . import slow_question, spark_cluster

pytestmark = pytest.mark.slow

_PARTS, _SECONDS = 12, 1.5


@pytest.fixture(scope="module")
def service() -> Iterator[s3_double.S3Double]:
    with s3_double.running() as double:
        yield double


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, service: s3_double.S3Double
) -> Iterator[spark_cluster.SparkCluster]:
    if reason := spark_cluster.missing():
        hardware.lacking(hardware.Feature.SPARK, reason)
    folder = tmp_path_factory.mktemp("spark")
    (folder / "data").mkdir()
    more = {
        "XDG_DATA_HOME": str(folder / "data"),
        "AWS_ENDPOINT_URL": service.url,
        "AWS_ACCESS_KEY_ID": "key-of-the-test",
        "AWS_SECRET_ACCESS_KEY": "secret-of-the-test",
        "AWS_REGION": "us-east-1",
    }
    with spark_cluster.running(folder, folder / "data", more) as started:
        yield started


def checked(cluster: spark_cluster.SparkCluster, url: str, folder: Path) -> None:
    words = ("-m", "nephoscope", "engine", "check", url, "--samples", "100000", "--json")
    printed = cluster.run(*words, "--folder", str(folder))
    assert printed.returncode == 0, printed.stderr[-2000:] + printed.stdout[-2000:]
    assert printed.stderr == ""
    document = json.loads(printed.stdout)
    assert [(row["question"], row["is_equal"]) for row in document["questions"]] == [
        (name, True) for name in conformance.QUESTIONS
    ]


def test_every_question_has_the_bits_of_this_process(
    cluster: spark_cluster.SparkCluster, tmp_path: Path
) -> None:
    checked(cluster, f"{cluster.url}?cores=2&timeout=20min", tmp_path)


def test_a_worker_that_is_killed_changes_no_bit(
    cluster: spark_cluster.SparkCluster, tmp_path: Path
) -> None:
    expected = slow_question.lines(
        LocalEngine(1).answers(slow_question.question(str(tmp_path), _PARTS, 0.0))
    )
    seen = tmp_path / "cluster"
    seen.mkdir()
    words = ["-m", "tests.store.engines.slow_question", cluster.url, str(seen)]
    driver = subprocess.Popen(
        [sys.executable, *words, str(_PARTS), str(_SECONDS)],
        env=spark_cluster.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 600
    while len({path.name.split("-")[2] for path in seen.glob("read-*")}) < 2:
        assert driver.poll() is None, driver.communicate()[1][-2000:]
        assert time.monotonic() < until, "the query did not reach both workers"
        time.sleep(0.1)
    assert not list(seen.glob("answered-*"))
    cluster.kill("worker1")
    out, errors = driver.communicate(timeout=900)
    assert driver.returncode == 0, errors[-2000:]
    assert out.splitlines() == expected
    # The part of the killed worker was read again.
    parts = [path.name.split("-")[1] for path in seen.glob("read-*")]
    assert len(parts) > len(set(parts)) == _PARTS
    cluster.start_worker("worker1")


def test_workers_read_a_store_on_object_storage_without_a_shared_folder(
    cluster: spark_cluster.SparkCluster, service: s3_double.S3Double, tmp_path: Path
) -> None:
    """Each worker has an empty folder of data of its own, and brings the samples that it reads."""
    elsewhere = {"XDG_DATA_HOME": str(tmp_path)}
    for name in ("hyperfine.json", "iperf3.json", "fio.json"):
        source = ROOT / "tests" / "golden" / "imports" / name
        words = ("-m", "nephoscope", "import", str(source), "--store", "s3://lab/runs")
        assert cluster.run(*words, **elsewhere).returncode == 0
    listed = cluster.run(
        "-m", "nephoscope", "runs", "--ids", "--store", "s3://lab/runs", **elsewhere
    )
    runs = listed.stdout.split()
    assert len(runs) == 3
    command = ("-m", "nephoscope", "export", *runs, "--store", "s3://lab/runs")
    expected = cluster.run(*command, **elsewhere)
    assert expected.returncode == 0, expected.stderr
    service.requests.clear()
    printed = cluster.run(*command, "--engine", f"{cluster.url}?cores=2&timeout=20min")
    assert printed.stdout == expected.stdout
    assert printed.stderr == ""
    # The driver brought the runs, and none of their samples.
    (folder,) = cluster.folder.glob("data/nephoscope/objects/*/runs")
    assert len(list(folder.glob("2*/.samples-elsewhere"))) == 3
    brought = [key for method, key in service.requests if method == "GET" and "samples-" in key]
    assert len(set(brought)) == 3


def test_a_spark_connect_server_gives_the_same_bits(
    cluster: spark_cluster.SparkCluster, tmp_path: Path
) -> None:
    checked(cluster, f"{cluster.start_connect_server()}?timeout=20min", tmp_path)


def test_no_free_core_is_a_sentence(cluster: spark_cluster.SparkCluster, tmp_path: Path) -> None:
    """A Connect server holds both cores."""
    if "connect" not in cluster.processes:
        cluster.start_connect_server()
    words = (
        "-c",
        "from nephoscope.store.engines import spark_session as s; s.START_S = 20; "
        "from nephoscope.command_line import main; import sys; sys.exit(main())",
    )
    printed = cluster.run(*words, "engine", "check", cluster.url, "--samples", "10000")
    assert printed.returncode == 3
    assert "took a task within 20 s" in printed.stderr
    assert "Traceback" not in printed.stderr
