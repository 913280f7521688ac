"""The wheel carries probe and contracts; the lock files hold what the project asks for."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import nephoscope
from nephoscope import catalog, command_line

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "-w", str(folder), str(ROOT)], check=True, timeout=300)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_carries_an_executable_probe_and_the_contracts(
    wheel: Path, tmp_path: Path
) -> None:
    name = f"nephoscope/_probe/{platform.machine()}-linux/nephoscope-probe"
    with zipfile.ZipFile(wheel) as archive:
        probe = archive.getinfo(name)
        assert (probe.external_attr >> 16) & 0o111, "the probe is not executable"
        for built in catalog.contracts_folder().iterdir():
            assert archive.read(f"nephoscope/_contracts/{built.name}") == built.read_bytes()
        described = json.loads(archive.read("nephoscope/_contracts/benchmarks.json"))
        path = Path(archive.extract(name, tmp_path))
    path.chmod(0o755)
    # An empty environment and an empty folder: the program is static and needs nothing.
    output = subprocess.run(
        [path, "describe"], cwd=tmp_path, env={}, check=True, capture_output=True, timeout=60
    ).stdout
    assert json.loads(output) == described


def test_the_wheel_carries_the_page_of_the_dashboard(wheel: Path) -> None:
    static = ROOT / "src" / "nephoscope" / "serve" / "static"
    with zipfile.ZipFile(wheel) as archive:
        for file in static.rglob("*"):
            if file.is_file():
                name = f"nephoscope/serve/static/{file.relative_to(static)}"
                assert archive.read(name) == file.read_bytes()


@pytest.mark.parametrize("program", ["nephoscope-lab", "nephoscope-sim"])
def test_the_wheel_carries_the_other_programs(wheel: Path, tmp_path: Path, program: str) -> None:
    name = f"nephoscope/_probe/{platform.machine()}-linux/{program}"
    with zipfile.ZipFile(wheel) as archive:
        assert (archive.getinfo(name).external_attr >> 16) & 0o111, "it is not executable"
        path = Path(archive.extract(name, tmp_path))
    path.chmod(0o755)
    done = subprocess.run([path, "version"], env={}, check=True, capture_output=True, text=True)
    assert done.stdout == f"{program} {nephoscope.__version__}\n"


@pytest.mark.parametrize(
    ("words", "answer"), [(["list", "cpu"], "cpu.gaps"), (["study", "list"], "delgado-2010")]
)
def test_the_wheel_runs_where_it_is_unpacked(
    wheel: Path, tmp_path: Path, words: list[str], answer: str
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    # The package comes first on the path, before this tree's own.
    done = subprocess.run(
        [sys.executable, "-m", "nephoscope", *words],
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path),
            "NEPHOSCOPE_STORE": str(tmp_path / "store"),
        },
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer in done.stdout


def test_the_wheel_carries_schemas_and_the_manual_page_of_every_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/man1/nephoscope.1"))
        page = archive.read(name).decode()
        assert "nephoscope/_contracts/plan.schema.json" in archive.namelist()
    for command in command_line.program.commands:
        assert re.search(rf"^\.SS nephoscope {command}", page, flags=re.M), command
    assert ".SH EXIT STATUS" in page
    assert re.search(r"^\.SH NAME\nnephoscope \\- [^\n]+\n\.SH SYNOPSIS$", page, flags=re.M)


def test_the_wheel_carries_every_file_of_the_studies(wheel: Path) -> None:
    shelves = ROOT / "studies"
    files = {str(path.relative_to(shelves)) for path in shelves.rglob("*") if path.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("nephoscope/_studies/")}
    assert packed == {f"nephoscope/_studies/{name}" for name in files}


def test_the_wheel_names_every_crate_of_its_programs_with_its_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read("nephoscope/_probe/NOTICES.txt").decode()
    named = set(re.findall(r"^(\S+ \d\S*): \S", text, flags=re.M))
    # Another source of the same fact: the tree of each program as cargo prints it.
    tree = ["cargo", "tree", "--locked", "--edges=normal,no-proc-macro", "--prefix=none"]
    programs = ["nephoscope-probe", "nephoscope-lab", "nephoscope-sim"]
    packages = [word for program in programs for word in ("--package", program)]
    # Where set-up finds cargo, too.
    path = f"{os.environ['PATH']}:{Path.home()}/.cargo/bin"
    done = subprocess.run(
        [*tree, *packages],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
    )
    crates = {line.replace(" v", " ").removesuffix(" (*)") for line in done.stdout.splitlines()}
    linked = {crate for crate in crates if crate and "(/" not in crate}
    assert linked <= named
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if "/sboms/" in name)
        listed = json.loads(archive.read(path))
    assert (listed["bomFormat"], listed["specVersion"]) == ("CycloneDX", "1.6")
    components = {f"{one['name']} {one.get('version')}": one for one in listed["components"]}
    assert linked <= set(components)
    for crate in linked:
        assert components[crate]["purl"] == f"pkg:cargo/{crate.replace(' ', '@')}"
        assert len(components[crate]["hashes"][0]["content"]) == 64
    assert any(name.startswith("svelte ") for name in components)
    with_text = {
        one for line in re.findall(r"^Licence of (.+)", text, re.M) for one in line.split(", ")
    }
    assert linked <= with_text
    assert "Embedded in reports: plotly-cartesian" in text
    assert "Part of the dashboard's page: svelte" in text


def test_the_newest_version_of_the_changelog_is_that_of_the_package() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\](?: - \d{4}-\d\d-\d\d)?$", text, re.M)
    assert versions[:2] == ["Unreleased", nephoscope.__version__]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_the_lock_holds_every_dependency_with_a_hash(lock: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    if lock.endswith("-dev.lock"):
        wanted += project["optional-dependencies"]["dev"]
    text = (ROOT / lock).read_text(encoding="utf-8")
    names = {re.split(r"[<>=\[ ]", item)[0].lower() for item in wanted}
    # One project, many spellings: PyPI takes '-', '_' and '.' for the same.
    names = {re.sub(r"[-_.]+", "-", name) for name in names}
    pinned = {
        re.sub(r"[-_.]+", "-", name.lower())
        for name in re.findall(r"^([A-Za-z0-9_.-]+)==", text, flags=re.M)
    }
    assert names <= pinned
    assert len(re.findall(r"^[A-Za-z0-9_.-]+==", text, flags=re.M)) <= text.count("--hash=sha256:")


def test_both_locks_hold_the_same_versions() -> None:
    """The development environment may hold more, but nothing else than what users run."""

    def pins(lock: str) -> set[str]:
        text = (ROOT / lock).read_text(encoding="utf-8")
        found = re.findall(r"^([A-Za-z0-9_.-]+==\S+)", text, flags=re.M)
        return {pin for pin in found if not pin.startswith("colorama")}

    assert pins("requirements.lock") <= pins("requirements-dev.lock")


def test_licences_and_embedded_files_pass_the_audit() -> None:
    path = f"{os.environ['PATH']}:{Path.home()}/.cargo/bin"
    done = subprocess.run(
        [sys.executable, "tools/audit.py", "--offline"],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT OR GPL-3.0-only", True),
        ("MIT/Apache-2.0", True),
        ("MIT AND GPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("(GPL-2.0-only OR GPL-3.0-only) AND MIT", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("", False),
    ],
)
def test_licence_expressions(
    expression: str, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import audit

    assert audit.is_allowed(expression) is allowed


@pytest.mark.parametrize(
    ("report", "code", "words"),
    [
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}', 0, ""),
        (
            '{"dependencies": [{"name": "a", "skip_reason": "not found on PyPI"}]}',
            4,
            "1 of 1 packages were not checked; this is not a pass: not found on PyPI.",
        ),
        (
            '{"dependencies": [{"name": "a", "version": "1", "vulns": '
            '[{"id": "PYSEC-1", "fix_versions": ["2"]}]}, {"name": "b", "skip_reason": "x"}]}',
            1,
            "package a 1: PYSEC-1, mended in 2.",
        ),
        ("", 4, "the packages were not checked: pip-audit gave no report."),
    ],
)
def test_a_package_that_was_not_looked_up_is_no_pass(
    report: str, code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import audit

    found, sentences = audit.packages_of(report)
    assert (found, sentences[:1]) == (code, [words] if words else [])
