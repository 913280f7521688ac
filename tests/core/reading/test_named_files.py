"""A file that another one names is quoted in errors only where it lies beside that one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.conftest import run_inside

from nephoscope.core.errors import UsageError
from nephoscope.core.reading.named_files import hiding_content_elsewhere, is_below

SECRET = "root:s3cret:20228"
HEAD = (
    "unit: request\noptions:\n  a: {price_per_h: 1, currency: USD, instance_type: t, benchmark: b"
)
PLAN = "name: x\nbenchmarks: [{benchmark: 'null'}]\n"
NAMING = {
    "census": (["cost", "work"], HEAD + ", capacity_per_s: 100, census: @}\n"),
    "capacity": (["cost", "work"], HEAD + ", capacity_file: @}\n"),
    "application": (
        ["size"],
        "demand: {rate_per_s: 9}\nobjective: p99 < 50ms\nregions: {eu: {}}\n"
        "types: {a: {capacity_file: @, spread: 3%, price_per_h: 1}}\n",
    ),
    "price list": (
        ["size"],
        "demand: {rate_per_s: 9}\nobjective: p99 < 50ms\nregions: {eu: {}}\n"
        "types: {a: {capacity_per_s: 5, spread: 3%}}\nprices: ['@']\n",
    ),
    "include": (["run", "--dry-run"], PLAN + "include: ['@']\n"),
    "lab": (["run", "--dry-run"], PLAN + "lab: '@'\n"),
    "latency": (
        ["run", "--dry-run"],
        PLAN + "lab: {name: y, hosts: {a: {}, b: {}}, geo: {sites: {p: [a], q: [b]}, "
        "latency: '@'}}\n",
    ),
}
CONTENTS = (f"{SECRET}\n", f"{SECRET},b\n{SECRET},{SECRET}\n", f'{{"{SECRET}": "{SECRET}"}}\n')


@pytest.mark.parametrize("kind", NAMING)
def test_nothing_of_a_file_elsewhere_is_quoted(kind: str, tmp_path: Path) -> None:
    command, text = NAMING[kind]
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "link").symlink_to("../shadow")
    naming = tmp_path / "home" / "x.yaml"
    for content in CONTENTS:
        (tmp_path / "shadow").write_text(content)
        for name in ("../shadow", str(tmp_path / "shadow"), "link"):
            naming.write_text(text.replace("@", name))
            done = run_inside([*command, str(naming)])
            assert done.code == 2, done
            assert "s3cret" not in done.err + done.out, done
            assert Path(name).name in done.err, done


def test_a_file_beside_it_is_quoted_and_a_missing_one_named(tmp_path: Path) -> None:
    command, text = NAMING["census"]
    (tmp_path / "x.yaml").write_text(text.replace("@", "counts.csv"))
    (tmp_path / "counts.csv").write_text("wrong\n")
    assert "unknown column 'wrong'" in run_inside([*command, str(tmp_path / "x.yaml")]).err
    (tmp_path / "x.yaml").write_text(text.replace("@", "/none/counts.csv"))
    assert "no such file" in run_inside([*command, str(tmp_path / "x.yaml")]).err


def test_links_are_followed_before_it_is_decided(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "own").write_text("")
    (tmp_path / "ab").write_text("")
    (tmp_path / "a" / "link").symlink_to("../ab")
    assert is_below(tmp_path / "a" / "own", tmp_path / "a")
    assert is_below(tmp_path / "a" / ".." / "a" / "own", tmp_path / "a")
    assert not is_below(tmp_path / "a" / "link", tmp_path / "a")
    assert not is_below(tmp_path / "ab", tmp_path / "a")


def test_other_errors_pass(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(KeyError), hiding_content_elsewhere(tmp_path / "x", Path("/none"), "list"):
        raise KeyError
    with (
        pytest.raises(UsageError, match="this is not a list that can be used"),
        hiding_content_elsewhere(tmp_path / "x", Path("/none"), "list"),
    ):
        raise UsageError("secret")
