"""A wheel that root installed for all users, in the hands of a user without any rights."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.conftest import Done
from tests.e2e.test_installation import built
from tests.hardware import Feature, lacking, needs

pytestmark = [pytest.mark.slow, needs(Feature.ROOT, os.geteuid() == 0)]

NOBODY = 65534
USER = (
    *("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"),
    *("--inh-caps=-all", "env", "-i"),
)
"""Words that run a program as another user, with nothing of this environment."""
PLAN = """
version: 1
name: known
repeat: {min: 3, max: 3}
benchmarks: [{benchmark: "null", params: {wait_ns: 20ms}, factors: {value: [100, 200]}}]
"""


@dataclass(frozen=True)
class Installation:
    """An environment of root's, and the home of another user."""

    prefix: Path
    home: Path

    def words(self, *words: str, home: str = "") -> list[str]:
        """Words that run the program as that user."""
        variables = ("PATH=/usr/bin:/bin", f"HOME={home or self.home}", "NO_COLOR=1")
        program = str(self.prefix / "bin/nephoscope")
        return [*USER, *variables, "LANG=C.UTF-8", program, *words]

    def run(self, *words: str, home: str = "") -> Done:
        done = subprocess.run(
            self.words(*words, home=home),
            cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def files(self) -> dict[str, tuple[int, int]]:
        """Size and time of change of everything in the environment."""
        paths = (path.lstat() for path in self.prefix.rglob("*"))
        names = (str(path) for path in self.prefix.rglob("*"))
        return {
            name: (stat.st_size, stat.st_mtime_ns) for name, stat in zip(names, paths, strict=True)
        }


def interpreter() -> str:
    """An interpreter of this version that every user can start."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (os.path.realpath(sys.executable), f"/usr/bin/{version}"):
        words = [*USER, path, "-c", "import venv"]
        if os.path.exists(path) and subprocess.run(words, capture_output=True).returncode == 0:
            return path
    return lacking(Feature.PYTHON_FOR_ALL)


def linked(source: str, destination: str) -> None:
    """A second name of a file: a copy of all dependencies would take 463 MiB."""
    try:
        os.link(source, destination)
    except OSError:
        shutil.copy2(source, destination)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    python, wheel = interpreter(), built(tmp_path_factory.mktemp("wheel"))
    # pytest's own folders are closed to other users.
    root = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="nephoscope-test-"))
    root.chmod(0o755)
    prefix, home = root / "prefix", root / "home"
    try:
        subprocess.run([python, "-m", "venv", "--without-pip", str(prefix)], check=True)
        (packages,) = prefix.glob("lib/python*/site-packages")
        shutil.copytree(
            sysconfig.get_path("purelib"), packages, copy_function=linked, dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("nephoscope*", "__editable__*", "__pycache__"),
        )  # fmt: skip
        install = [sys.executable, "-m", "pip", "--python", str(prefix / "bin/python"), "install"]
        options = ["-q", "--no-deps", "--no-index", "--root-user-action", "ignore"]
        subprocess.run([*install, *options, str(wheel)], check=True, timeout=600)
        home.mkdir(mode=0o700)
        (home / "plan.yaml").write_text(PLAN)
        os.chown(home, NOBODY, NOBODY)
        yield Installation(prefix, home)
    finally:
        shutil.rmtree(root)


def test_a_user_without_rights_measures_and_reads_results(installation: Installation) -> None:
    before = installation.files()
    plan = str(installation.home / "plan.yaml")
    survey = installation.run("survey", "--quick")
    assert survey.code == 0, survey.err
    assert "SUMMARY" in survey.out
    assert installation.run("run", plan).code == 0
    shown = installation.run("show")
    assert shown.code == 0, shown.err
    assert "null (value 100) 100 ns (3 trials)" in re.sub(r"\s+", " ", shown.out)
    assert installation.run("verify").code == 0
    assert "Fix first" not in installation.run("doctor").out
    with subprocess.Popen(
        installation.words("serve", "--port", "0"), cwd="/", stdout=subprocess.PIPE, text=True,
    ) as serving:  # fmt: skip
        try:
            assert serving.stdout is not None
            url = serving.stdout.readline().strip().rstrip("/")
            with urllib.request.urlopen(f"{url}/api/v1/runs", timeout=120) as answer:
                assert "known" in answer.read().decode()
        finally:
            serving.terminate()
            serving.wait(60)
    # Everything that was written lies in the user's home.
    assert installation.files() == before
    assert {path.owner() for path in (installation.home / ".local").rglob("*")} == {"nobody"}


def test_what_needs_root_is_one_sentence(installation: Installation) -> None:
    for words in (("lab", "check"), ("isolate", "cpu"), ("balance",)):
        done = installation.run(*words)
        assert done.code == 4, (words, done)
        assert "root" in done.sentence, (words, done.err)


@pytest.mark.parametrize("home", ["/nonexistent", "/root", "/"])
def test_a_user_without_a_home_is_asked_for_a_store(installation: Installation, home: str) -> None:
    plan = str(installation.home / "plan.yaml")
    for words in (("survey", "--quick"), ("run", plan)):
        done = installation.run(*words, home=home)
        assert done.code == 3, (words, done)
        assert "permission is denied. Name a directory of your own with --store." in done.sentence
    store = str(installation.home / "named")
    done = installation.run("run", plan, "--store", store, home=home)
    assert done.code == 0, done.err
    assert "Fix first: store" in installation.run("doctor", home=home).out
