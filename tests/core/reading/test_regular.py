"""One opener for all that comes from outside: regular, bounded, and used by every reader."""

from __future__ import annotations

import ast
import io
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.waiting import failing_after

import nephoscope
from nephoscope.core.reading import regular
from nephoscope.core.reading.regular import lines_of, open_to_append, read_regular

SOURCES = Path(nephoscope.__file__).parent
KERNEL = "files of the kernel"
PACKAGE = "files of this package, or programs that its user named"
OWN = "files that this process, or root, wrote into a folder of its own"
VERIFIED = "files whose digest was right"
NO_READER = "locks, folders, devices, and files that are written"

OTHER_OPENERS = {
    "catalog/__init__.py": PACKAGE,
    "cli/commands/checks/frame.py": KERNEL,
    "cli/commands/checks/places.py": NO_READER,
    "cli/commands/schema.py": PACKAGE,
    "cli/kit/output.py": NO_READER,
    "core/leases.py": NO_READER,
    "cli/kit/summaries.py": PACKAGE,
    "measure/lab/leases.py": NO_READER,
    "measure/targets/marked.py": KERNEL,
    "measure/targets/merging.py": KERNEL,
    "core/plugins.py": PACKAGE,
    "core/programs.py": PACKAGE,
    "features/advise/machine_counters.py": KERNEL,
    "features/advise/observe.py": KERNEL,
    "features/advise/processes.py": KERNEL,
    "features/advise/service_levels.py": PACKAGE,
    "features/cloud/fleet.py": PACKAGE,
    "features/cloud/four_tests.py": PACKAGE,
    "features/comparison/prior.py": PACKAGE,
    "features/datasets/folder.py": OWN,
    "features/isolation/placement.py": KERNEL,
    "features/platforms/guests.py": KERNEL,
    "features/scheduler/plan.py": PACKAGE,
    "features/simulation/world_map.py": PACKAGE,
    "features/sla/files.py": PACKAGE,
    "features/sla/watch.py": NO_READER,
    "httpd/settings.py": NO_READER,
    "measure/cloud/intents.py": NO_READER,
    "measure/cloud/launch.py": NO_READER,
    "measure/cloud/providers/hosts.py": NO_READER,
    "measure/cloud/result_bucket.py": OWN,
    "measure/lab/check.py": KERNEL,
    "measure/lab/conditions.py": KERNEL,
    "measure/lab/commands.py": OWN,
    "measure/lab/images/__init__.py": NO_READER,
    "measure/lab/images/build.py": OWN,
    "measure/lab/images/recipe.py": PACKAGE,
    "measure/lab/limits/cgroups.py": KERNEL,
    "measure/lab/limits/cpu.py": KERNEL,
    "measure/lab/limits/disk.py": KERNEL,
    "measure/lab/limits/hierarchies.py": KERNEL,
    "measure/lab/needs.py": KERNEL,
    "measure/lab/network/namespaces.py": KERNEL,
    "measure/lab/platforms/base.py": OWN,
    "measure/lab/migration/guests.py": PACKAGE,
    "measure/lab/platforms/control.py": NO_READER,
    "measure/lab/platforms/guest.py": NO_READER,
    "measure/lab/platforms/qemu.py": OWN,
    "measure/lab/platforms/uml.py": KERNEL,
    "measure/lab/processes.py": KERNEL,
    "measure/lab/state.py": NO_READER,
    "measure/lab/sweep.py": KERNEL,
    "measure/plans/survey.py": PACKAGE,
    "measure/runs/concurrent_runs.py": "below a descriptor, with these checks of its own",
    "measure/targets/channels/child.py": NO_READER,
    "measure/targets/channels/shell.py": PACKAGE,
    "measure/targets/exec/kubeconfig.py": "a pod's own account",
    "report/files.py": OWN,
    "report/html_output.py": PACKAGE,
    "serve/static_files.py": PACKAGE,
    "serve/worker.py": NO_READER,
    "stats/change_points/detection.py": PACKAGE,
    "store/engines/local.py": OWN,
    "store/engines/spark_session.py": NO_READER,
    "store/engines/worker_facts.py": PACKAGE,
    "store/export.py": NO_READER,
    "store/imports/inspector/__init__.py": NO_READER,
    "store/files.py": NO_READER,
    "store/holder.py": KERNEL,
    "store/merged_trials.py": VERIFIED,
    "store/objects/packs.py": "archives in memory",
}
"""Modules that open files otherwise, and what these are."""

READS = {"read_text", "read_bytes", "memory_map", "OSFile", "fromfile", "loadtxt", "genfromtxt"}
READS |= {"read_table", "read_metadata", "fdopen", "input"}


@pytest.fixture(autouse=True)
def _no_wait() -> Iterator[None]:
    """Ends a test that waits for a pipe's other end."""
    with failing_after(60):
        yield


def opens_a_file(call: ast.Call) -> bool:
    """States whether a call opens or reads a file by its path."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in {"open", *READS}
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    if function.attr != "open":
        return function.attr in READS and owner != "regular"
    if owner in {"os", "io", "gzip", "bz2", "lzma", "tarfile", "zipfile"}:
        return True
    mode = call.args[0] if call.args else None
    has_mode = isinstance(mode, ast.Constant) and set(str(mode.value)) <= set("rwabxt+")
    return has_mode or any(word.arg in ("mode", "encoding", "buffering") for word in call.keywords)


def test_no_reader_opens_files_otherwise() -> None:
    openers = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if any(name in (text := path.read_text()) for name in ("open(", *READS))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and opens_a_file(node)
    }
    assert openers - {"core/reading/regular.py"} == OTHER_OPENERS.keys()


@pytest.mark.parametrize(
    "text", ["open(p)", "p.open()", "p.open('rb')", "p.open(encoding='x')", "p.read_text()"]
)
def test_the_scan_sees_each_way_to_open(text: str) -> None:
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert opens_a_file(statement.value) == (text != "p.open()")  # as `store.open(name)`


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_terminal(path: Path) -> None:
    path.symlink_to("/dev/ptmx")


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def a_loop(path: Path) -> None:
    path.symlink_to(path)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_sparse_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


REPLACEMENTS: tuple[tuple[Callable[[Path], None], str], ...] = (
    (a_pipe, "no regular file"),
    (a_device, "no regular file"),
    (a_terminal, "no regular file"),
    (a_socket, "no regular file"),
    (a_loop, "Too many levels"),
    (a_folder, "Is a directory"),
    (a_sparse_file, "larger than 1 MiB"),
)


@pytest.mark.parametrize(("replace", "words"), REPLACEMENTS)
def test_what_is_no_bounded_file_is_refused(
    replace: Callable[[Path], None], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    replace(path)
    with pytest.raises(OSError, match=words) as error:
        read_regular(path, 1 << 20)
    assert error.value.filename == str(path)


@pytest.mark.parametrize("replace", [a_pipe, a_device, a_loop, a_folder, a_socket])
def test_no_line_is_appended_to_anything_else(
    replace: Callable[[Path], None], tmp_path: Path
) -> None:
    replace(tmp_path / "x")
    with pytest.raises(OSError, match=r"regular|levels|directory"):
        open_to_append(tmp_path / "x")


def test_a_link_is_not_appended_to_and_not_followed_where_it_must_not(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("a\n")
    link = tmp_path / "link"
    link.symlink_to("victim")
    with pytest.raises(OSError, match="Too many levels"):
        open_to_append(link)
    with pytest.raises(OSError, match="Too many levels"):
        read_regular(link, 10, follow=False)
    assert read_regular(link, 10) == b"a\n"


def test_content_is_whole_from_any_byte_on_up_to_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "x"
    content = bytes(range(256)) * 1000
    path.write_bytes(content)
    assert read_regular(path, len(content)) == content
    assert read_regular(path, len(content), start=200_000) == content[200_000:]
    assert read_regular(path, len(content), start=len(content) + 5) == b""
    with pytest.raises(OSError, match="larger than 249 KiB"):
        read_regular(path, len(content) - 1)
    assert int(read_regular(Path("/proc/self/stat"), 10_000).split()[0]) == os.getpid()


def test_a_file_that_grows_while_it_is_read_stays_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a")
    monkeypatch.setattr(regular.os, "read", lambda *_: b"a" * 100)
    with pytest.raises(OSError, match="larger than"):
        read_regular(path, 1000)


def test_lines_are_yielded_as_they_are_one_at_a_time() -> None:
    lines = [b"a\n", b"\n", b"b" * 200_000 + b"\n", b"c"]
    assert [*lines_of(io.BytesIO(b"".join(lines)))] == lines


@pytest.mark.parametrize("line", [b"\0" * 200_000, b"x" * 200_001, b"{" + b"\0" * 10])
def test_a_line_of_zeros_or_without_end_is_cut(line: bytes) -> None:
    cut, after = lines_of(io.BytesIO(line + b"\nafter\n"), 200_000)
    assert len(cut) < 300
    assert cut.endswith(b"\n")
    assert line.startswith(cut[:-1])
    assert after == b"after\n"
    assert [*lines_of(io.BytesIO(line), 200_000)] == [cut[:-1]]
