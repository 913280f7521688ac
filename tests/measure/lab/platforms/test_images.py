"""Images: what their name follows from, how they are kept, what a killed build leaves."""

from __future__ import annotations

import asyncio
import gzip
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tools import needs

from nephoscope.core.errors import RunFailed
from nephoscope.measure.lab import images
from nephoscope.measure.lab.images import Image, build, initramfs
from nephoscope.measure.lab.images.recipe import Recipe, recipe, script, sources

RECIPE = Recipe("x86_64", (("/etc/apt/sources.list", "deb x"),), {"init": "#!"})


@pytest.mark.parametrize(
    "change",
    [
        {"machine": "aarch64"},
        {"sources": (("/etc/apt/sources.list", "deb y"),)},
        {"scripts": {"init": "#!/bin/sh"}},
    ],
)
def test_the_key_follows_from_everything(change: dict[str, object]) -> None:
    assert RECIPE.key == replace(RECIPE).key
    assert replace(RECIPE, **change).key != RECIPE.key  # type: ignore[arg-type]


def test_the_key_does_not_depend_on_what_apt_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    key = recipe().key
    monkeypatch.setattr(subprocess, "run", lambda *words, **options: pytest.fail("asks a program"))
    monkeypatch.setenv("APT_CONFIG", "/nonexistent")
    assert recipe().key == key


def test_the_content_follows_from_the_installed_versions(tmp_path: Path) -> None:
    built, newer = (
        Image("key", tmp_path, {"kernel": "6.1", "packages": {"dash": version}, "built_s": seconds})
        for version, seconds in (("1", 20.0), ("2", 20.0))
    )
    again = replace(built, facts={**built.facts, "built_s": 31.0})
    assert built.content == again.content
    assert built.content != newer.content


def test_sources_are_those_of_the_machine(tmp_path: Path) -> None:
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    for name in ("b.sources", "a.list", "c.list.disabled"):
        (parts / name).write_text("deb")
    (tmp_path / "sources.list").write_text("")
    assert [path.name for path in sources(tmp_path)] == ["a.list", "b.sources"]


def _module(name: str, *needs: str) -> bytes:
    listed = ",".join(needs).encode()
    return b"\x7fELF" + name.encode() + b"\0license=GPL\0depends=" + listed + b"\0name=x\0"


def test_modules_come_after_what_they_depend_on() -> None:
    modules = {
        "virtio_ring": _module("virtio_ring"),
        "virtio": _module("virtio", "virtio_ring"),
        "virtio-rng": _module("virtio-rng", "virtio", "virtio_ring"),
        "other": _module("other"),
    }
    assert initramfs.in_order(modules, ["virtio_rng"]) == ("virtio_ring", "virtio", "virtio-rng")
    with pytest.raises(KeyError, match="missing"):
        initramfs.in_order(modules, ["missing"])


def test_modules_of_the_nfs_client_lie_beside_the_image(tmp_path: Path) -> None:
    modules = {"sunrpc": _module("sunrpc"), "nfs": _module("nfs", "sunrpc")}
    modules |= {name: _module(name, "nfs") for name in initramfs.NFS_CLIENT}
    build._write_modules(tmp_path / "modules", modules | {"other": _module("other")})
    given = Image("key", tmp_path, {}).modules()
    _, order = given[f"{images.MODULES}/order"]
    names = order.decode().split()
    assert names[:2] == ["sunrpc.ko", "nfs.ko"]
    assert sorted(given) == sorted(
        [*(f"{images.MODULES}/{name}" for name in names), f"{images.MODULES}/order"]
    )
    assert len(names) == 2 + len(initramfs.NFS_CLIENT)


@needs("busybox")
def test_the_archive_is_what_busybox_unpacks(tmp_path: Path) -> None:
    modules = {"virtio": _module("virtio")}
    data = initramfs.archive(b"box", b"#!/bin/sh\n", modules, ["virtio"])
    assert data == initramfs.archive(b"box", b"#!/bin/sh\n", modules, ["virtio"])
    listed = subprocess.run(
        ["busybox", "cpio", "-t"], input=gzip.decompress(data), capture_output=True, check=True
    )
    names = listed.stdout.decode().split()
    assert names[:5] == ["bin", "dev", "modules", "new", "dev/console"]
    assert "init" in names
    subprocess.run(
        ["busybox", "cpio", "-i", "init", "modules/virtio.ko"],
        input=gzip.decompress(data),
        cwd=_with_folders(tmp_path),
        capture_output=True,
        check=True,
    )
    assert (tmp_path / "init").read_bytes() == b"#!/bin/sh\n"
    assert os.access(tmp_path / "init", os.X_OK)
    assert (tmp_path / "modules" / "virtio.ko").read_bytes() == modules["virtio"]


def _with_folders(path: Path) -> Path:
    (path / "modules").mkdir()
    return path


@needs("busybox")
@pytest.mark.parametrize("name", ["init", "initramfs-init", "container-init"])
def test_scripts_can_be_read_by_a_shell(name: str) -> None:
    subprocess.run(["busybox", "sh", "-n"], input=script(name), check=True)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, whose images are built by `_quick`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(images, "recipe", lambda: RECIPE)
    return images.cache()


def _quick(built: list[Path]) -> Callable[..., object]:
    async def fill(folder: Path, recipe: Recipe, say: object) -> None:
        built.append(folder)
        await asyncio.sleep(0.3)
        (folder / "disk.ext4").write_text("disk")
        (folder / "image.json").write_text('{"built_s": 0.3, "kernel": "6.1"}')

    return fill


def test_two_that_want_it_build_it_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Path] = []
    said: list[str] = []
    monkeypatch.setattr(build, "build", _quick(built))

    async def both() -> list[images.Image]:
        return await asyncio.gather(images.ensure(said.append), images.ensure(said.append))

    first, second = asyncio.run(both())
    assert first == second
    assert first.disk.read_text() == "disk"
    assert len(built) == 1
    assert "guest image: another process is building it; waiting" in said
    assert sorted(path.name for path in cache.iterdir()) == sorted([RECIPE.key, "lock"])


def test_a_build_that_fails_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(folder: Path, recipe: Recipe, say: object) -> None:
        (folder / "rootfs").mkdir()
        raise RunFailed("no.", "try.")

    monkeypatch.setattr(build, "build", broken)
    with pytest.raises(RunFailed):
        asyncio.run(images.ensure(lambda line: None))
    assert [path.name for path in cache.iterdir()] == ["lock"]


def test_a_killed_build_is_not_taken_for_an_image(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _HANGS], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    until = time.monotonic() + 120
    while not list(cache.glob(".building-*/half")):
        assert time.monotonic() < until, "the build did not begin"
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    built: list[Path] = []
    monkeypatch.setattr(build, "build", _quick(built))
    image = asyncio.run(images.ensure(lambda line: None))
    assert len(built) == 1
    assert not (image.folder / "half").exists()
    assert not list(cache.glob(".building-*"))


_HANGS = textwrap.dedent(
    """
    import asyncio
    from nephoscope.measure.lab import images
    from nephoscope.measure.lab.images import build
    from nephoscope.measure.lab.images.recipe import Recipe

    async def hang(folder, recipe, say):
        (folder / "image.json").write_text("{}")
        (folder / "half").touch()
        await asyncio.sleep(60)

    build.build = hang
    images.recipe = lambda: Recipe(
        "x86_64", (("/etc/apt/sources.list", "deb x"),), {"init": "#!"}
    )
    asyncio.run(images.ensure(print))
    """
)


def test_the_builders_own_words_are_told() -> None:
    words = ["sh", "-c", "echo 'E: no such suite' >&2; exit 3"]
    with pytest.raises(RunFailed, match=r"could not be built: E: no such suite\."):
        asyncio.run(build._run(words, lambda line: None))
