"""A home or a store that is closed to this user, as after `su` or `sudo -E`: one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.e2e.conftest import Done
from tests.hardware import Feature, needs

pytestmark = needs(Feature.ROOT, os.geteuid() == 0)

NOBODY = 65534
WITHOUT_RIGHTS = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
"""Root without its rights to all files: the interpreter may lie in root's own folder."""
LINES = (
    ("runs",),
    ("show", "last"),
    ("verify",),
    ("history", "null"),
    ("compact", "--keep-raw", "7d"),
    ("run", "{folder}/plan.yaml"),
    ("compare", "{folder}/a", "{folder}/b"),
    ("cloud", "list", "ec2"),
)
PROGRAM = """
import json, sys
from tests.e2e.conftest import run_inside
done = [run_inside(words) for words in json.loads(sys.argv[1])]
print(json.dumps([[each.code, each.out, each.err] for each in done]))
"""


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of another user's that nobody else may look into."""
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    os.chown(folder, NOBODY, NOBODY)
    return folder


def run_all(home: Path, lines: list[tuple[str, ...]]) -> list[Done]:
    """Runs commands, one after the other, in one process that may not look into its home."""
    names = ("NEPHOSCOPE_STORE", "NEPHOSCOPE_CONFIG", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [*WITHOUT_RIGHTS, sys.executable, "-c", PROGRAM, json.dumps(lines)],
        cwd=ROOT,
        env={**environment, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    return [Done(*each) for each in json.loads(done.stdout)]


def test_what_is_closed_is_named(closed: Path) -> None:
    lines = [tuple(word.replace("{folder}", str(closed)) for word in line) for line in LINES]
    *named, config = run_all(closed, [*lines, ("config",)])
    for line, done in zip(lines, named, strict=True):
        assert done.code in (2, 3), (line, done)
        assert str(closed) in done.sentence, line
        assert "ermission" in done.sentence, line
    # There is no configuration for who cannot see any.
    assert config.code == 0, config.err
    assert "(not found)" in config.out
