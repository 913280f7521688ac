"""A real HDFS on loopback: name node and data nodes in one Java process, as in Hadoop's tests.

Maven fetches the jars once into a cache.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from storage_servers import Server
from tests import hardware
from tests.tools import located, needs

VERSION = "3.4.1"
USER = "user-of-the-test"
DATA_NODES = 2
CACHE = Path.home() / ".cache" / "nephoscope" / "engines" / f"hadoop-{VERSION}"
_FETCH_S, _START_S = 900.0, 300.0
"""Java starts slowly beside other tests."""
# The mini cluster names no JAXB, which its WebHDFS loads and Java dropped in version 11.
_LIBRARIES = (
    ("org.apache.hadoop", "hadoop-client-minicluster", VERSION),
    ("org.apache.hadoop", "hadoop-client-api", VERSION),
    ("org.apache.hadoop", "hadoop-client-runtime", VERSION),
    ("javax.xml.bind", "jaxb-api", "2.3.1"),
)

needs_hdfs = needs("java", "mvn")


@dataclass
class HdfsCluster:
    """A running cluster. url: of WebHDFS at the name node. blocks: folder of the data nodes."""

    url: str
    blocks: Path

    def block_bytes(self) -> int:
        """Bytes of all blocks on all data nodes, without their checksums."""
        files = (path for path in self.blocks.rglob("blk_*") if path.suffix != ".meta")
        return sum(path.stat().st_size for path in files)


def _jars() -> Path:
    """The folder of jars; fetched first where it is not there. Skips the test without a network."""
    folder = CACHE / "jars"
    if folder.is_dir():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as aside:
        libraries = "".join(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version></dependency>"
            for group, name, version in _LIBRARIES
        )
        pom = Path(aside) / "pom.xml"
        pom.write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>tests</groupId><artifactId>hdfs</artifactId><version>1</version>"
            f"<dependencies>{libraries}</dependencies></project>"
        )
        words = [located("mvn"), "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        fetched = subprocess.run(
            [*words, f"-DoutputDirectory={aside}/jars"],
            capture_output=True,
            text=True,
            timeout=_FETCH_S,
            check=False,
        )
        if fetched.returncode:
            hardware.lacking(hardware.Feature.HADOOP, fetched.stdout[-300:])
        with contextlib.suppress(OSError):  # another process made it meanwhile
            os.rename(f"{aside}/jars", folder)
    return folder


@contextlib.contextmanager
def hdfs(tmp_path: Path) -> Iterator[HdfsCluster]:
    """A name node and two data nodes, each block on both."""
    folder = tmp_path / "hdfs"
    folder.mkdir()
    blocks, ready = folder / "data", folder / "ready.json"
    words = ["nice", "-n", "10", located("java"), "-Xmx512m", f"-Dtest.build.data={blocks}"]
    words += ["-cp", f"{_jars()}/*", "org.apache.hadoop.test.MiniDFSClusterManager", "-format"]
    words += ["-datanodes", str(DATA_NODES), "-httpport", "{port}", "-writeDetails", str(ready)]
    words += ["-D", f"dfs.replication={DATA_NODES}"]
    # Anybody may write below the root folder; files belong to the user that a request names.
    words += ["-D", "dfs.permissions.enabled=false"]
    server = Server(words, folder, {}, patience_s=_START_S)
    try:
        server.start()
        end = time.monotonic() + _START_S
        while not (ready.exists() and ready.stat().st_size):
            assert time.monotonic() < end, server.log.read_text()
            time.sleep(0.1)
        yield HdfsCluster(server.url, blocks)
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
