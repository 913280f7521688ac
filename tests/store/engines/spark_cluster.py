"""A standalone cluster of Apache Spark on loopback: a master, two workers, a Connect server.

PySpark with what Spark Connect needs lies in a cache, which is made once by pip. The library of
this environment (NumPy, PyArrow, Nephoscope) is used by driver and workers alike.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

VERSION = "4.3.0"
PACKAGES = (
    f"pyspark=={VERSION}",
    "py4j==0.10.9.9",
    "pandas>=2.2,<3",
    "python-dateutil",
    "pytz",
    "tzdata",
    "six",
    "grpcio",
    "grpcio-status",
    "googleapis-common-protos",
    "protobuf",
    "zstandard",
    "typing_extensions",
)
CACHE = Path.home() / ".cache" / "nephoscope" / "engines" / f"spark-{VERSION}"
ROOT = Path(__file__).resolve().parents[3]
_START_S = 300.0
"""Java starts slowly beside other tests."""


def missing() -> str:
    """Why there can be no cluster; empty where there can be one. Makes the cache."""
    if not shutil.which("java"):
        return "Spark needs Java 17; install openjdk-17-jre-headless"
    site = CACHE / "site"
    if not site.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as aside:
            command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile"]
            made = subprocess.run(
                [*command, "--target", f"{aside}/site", *PACKAGES],
                capture_output=True,
                text=True,
                timeout=900,
                check=False,
            )
            if made.returncode:
                return f"PySpark cannot be installed: {made.stderr[-200:]}"
            with contextlib.suppress(OSError):  # another process made it meanwhile
                os.rename(f"{aside}/site", site)
    return ""


def environment() -> dict[str, str]:
    """The environment of driver and workers."""
    site = CACHE / "site"
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (site, ROOT))),
        "SPARK_HOME": str(site / "pyspark"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
    }


@dataclass
class SparkCluster:
    """A running cluster. folder: of its logs. apart: folder of which each worker has one of its
    own, empty at first, as on a machine of its own. more: environment of the workers."""

    folder: Path
    port: int
    apart: Path | None = None
    more: Mapping[str, str] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start(
        self, name: str, words: Sequence[str], ready: str, inside: Sequence[str] = (), **more: str
    ) -> None:
        """Starts a process of Spark in a group of its own, and waits for a line of its log.

        inside: command that runs it. more: environment.
        """
        log = self.folder / f"{name}.log"
        own = [*inside, "nice", "-n", "10", str(CACHE / "site/pyspark/bin/spark-class"), *words]
        with log.open("wb") as stream:
            self.processes[name] = subprocess.Popen(
                own,
                env={**environment(), **self.more, **more},
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        until = time.monotonic() + _START_S
        while ready not in log.read_text(errors="replace"):
            assert self.processes[name].poll() is None, log.read_text(errors="replace")[-2000:]
            assert time.monotonic() < until, f"{name} did not start: {log.read_text()[-2000:]}"
            time.sleep(0.2)

    def start_worker(self, name: str) -> None:
        words = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1"]
        words += ["--memory", "1g", "--work-dir", str(self.folder / name), "--webui-port", "0"]
        inside: list[str] = []
        if self.apart is not None:
            script = 'mount -t tmpfs none "$0" && exec "$@"'
            inside = ["unshare", "--mount", "sh", "-c", script, str(self.apart)]
        self.start(name, [*words, self.url], "Successfully registered with master", inside)

    def start_connect_server(self) -> str:
        """Starts a Spark Connect server on the cluster; returns its URL."""
        port = _unused_port()
        jar = next((CACHE / "site/pyspark/jars").glob("spark-connect_*.jar"))
        settings = {
            "spark.connect.grpc.binding.port": str(port),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "600m",
            "spark.ui.enabled": "false",
        }
        words = ["org.apache.spark.deploy.SparkSubmit", "--master", self.url]
        for name, value in settings.items():
            words += ["--conf", f"{name}={value}"]
        words += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", str(jar)]
        # Less than 450 MB are refused for a driver, which this server is.
        self.start("connect", words, "Spark Connect server started", SPARK_DAEMON_MEMORY="800m")
        return f"sc://127.0.0.1:{port}"

    def kill(self, name: str) -> None:
        """Kills a worker with its executors by SIGKILL."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def run(
        self, *words: str, timeout_s: float = 1500, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs this Python with PySpark as a driver. more: environment."""
        return subprocess.run(
            [sys.executable, *words],
            env={**environment(), **self.more, **more},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )


@contextlib.contextmanager
def running(
    folder: Path, apart: Path | None = None, more: Mapping[str, str] | None = None
) -> Iterator[SparkCluster]:
    """A cluster of two workers of one core each; all of its processes end with it."""
    cluster = SparkCluster(folder, _unused_port(), apart, more or {})
    try:
        words = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
        words += ["--port", str(cluster.port), "--webui-port", "0"]
        cluster.start("master", words, "I have been elected leader")
        for name in ("worker1", "worker2"):
            cluster.start_worker(name)
        yield cluster
    finally:
        for process in cluster.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
