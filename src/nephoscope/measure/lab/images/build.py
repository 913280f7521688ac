"""Makes an image in a folder: a minimal Debian, its disk, the kernel and its first root."""

from __future__ import annotations

import asyncio
import io
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nephoscope.core.errors import RunFailed
from nephoscope.measure.lab import commands
from nephoscope.measure.lab.commands import entering
from nephoscope.measure.lab.images import initramfs
from nephoscope.measure.lab.images.recipe import (
    DISK_BYTES,
    EXCLUDED,
    KERNEL,
    PACKAGES,
    Recipe,
    script,
)

_TIMEOUT_S = 600.0
_HOOKS = "/usr/share/mmdebstrap/hooks/merged-usr"
# While the package lists are there: the newest kernel package, unpacked later and never installed.
_FETCH_KERNEL = """
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
cd "$KERNEL_FOLDER" || exit 1
name=$(apt-cache depends "$KERNEL_PACKAGE" | sed -n 's/^ *Depends: *\\(linux-image-[^ ]*\\)$/\\1/p')
apt-get download -o APT::Sandbox::User=root "${name:-$KERNEL_PACKAGE}"
"""
_STEP_TEXTS = {
    "running apt-get update": "reading the package lists",
    "downloading packages": "downloading packages",
    "installing essential": "installing the essential packages",
    "installing remaining": "installing the ssh server",
}


async def build(folder: Path, recipe: Recipe, say: Callable[[str], None]) -> None:
    """Fills an empty folder: rootfs/, disk.ext4, vmlinuz, initrd, modules/, image.json.

    Raises RunFailed with the builder's own words. Cancelling it ends what it started.
    """
    began = time.monotonic()
    kernel = folder / "kernel"
    kernel.mkdir()
    rootfs = folder / "rootfs"
    await _bootstrap(folder, rootfs, kernel, recipe, say)
    await asyncio.to_thread(_add_ours, rootfs)
    say("guest image: writing its disk")
    await _make_disk(rootfs, folder / "disk.ext4")
    release = await asyncio.to_thread(_unpack_kernel, kernel, rootfs, folder)
    shutil.rmtree(kernel)
    facts = {
        "kernel": release,
        "packages": _installed(rootfs),
        "built_s": round(time.monotonic() - began, 1),
    }
    commands.write_json(folder / "image.json", facts)


async def _bootstrap(
    folder: Path, rootfs: Path, kernel: Path, recipe: Recipe, say: Callable[[str], None]
) -> None:
    options = folder / "apt.conf"
    options.write_text(_proxies(), encoding="utf-8")
    options.chmod(0o600)
    script_file = folder / "fetch-kernel"
    script_file.write_text("#!/bin/sh\n" + _FETCH_KERNEL, encoding="utf-8")
    script_file.chmod(0o700)
    words = [
        *entering(with_parent=True, nice=5),
        # Ended with us, whatever it had started, and its mounts with it.
        *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *("mmdebstrap", "--mode=root", "--variant=essential", "--format=directory"),
        f"--hook-dir={_HOOKS}",
        f"--include={','.join(PACKAGES)}",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in EXCLUDED),
        f"--aptopt={options}",
        f"--extract-hook={script_file}",
        "",
        str(rootfs),
        *(path for path, _ in recipe.sources),
    ]
    variables = {"KERNEL_FOLDER": str(kernel), "KERNEL_PACKAGE": KERNEL}
    await _run(words, say, variables)
    options.unlink()
    script_file.unlink()


async def _run(
    words: Sequence[str], say: Callable[[str], None], variables: dict[str, str] | None = None
) -> None:
    """Runs the builder and tells how far it is; RunFailed with its last error."""
    child = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**commands.environment(), "HOME": "/root", **(variables or {})},
        start_new_session=True,
        limit=1 << 20,
    )
    assert child.stderr is not None
    errors: list[str] = []
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            async for raw in child.stderr:
                line = raw.decode("utf-8", errors="replace").strip()
                if line.startswith(("E:", "Err:", "mkfs", "error")):
                    errors.append(line)
                for words_of_it, step_text in _STEP_TEXTS.items():
                    if line.startswith("I:") and words_of_it in line:
                        say(f"guest image: {step_text}")
            code = await child.wait()
    except TimeoutError:
        raise RunFailed(
            f"The guest image was not built in {_TIMEOUT_S:.0f} s.",
            "Check that the package sources of this machine answer: `apt-get update`.",
        ) from None
    finally:
        if child.returncode is None:
            child.kill()
            await asyncio.shield(child.wait())
    if code != 0:
        why = errors[0] if errors else f"{Path(words[0]).name} ended with exit code {code}"
        raise RunFailed(
            f"The guest image could not be built: {why.rstrip('.')[:400]}.",
            "Check the package sources of this machine: `apt-get update`.",
        )


def _proxies() -> str:
    """The machine's proxy settings of apt, in its own format; in a file, because they may hold a
    password."""
    lines = [
        line
        for line in commands.output_of(["apt-config", "dump"]).splitlines()
        if re.match(r"Acquire::(https?|ftp)::(.*::)?(Proxy|Verify|Ca)", line, re.IGNORECASE)
        or line.startswith(("Acquire::Check-Valid-Until ", "Acquire::Retries "))
    ]
    return "\n".join(["# Proxy settings of the machine.", *lines]) + "\n"


def _add_ours(rootfs: Path) -> None:
    """Our own files in, what names this machine out."""
    home = rootfs / "usr" / "lib" / "nephoscope"
    home.mkdir(parents=True)
    for name in ("init", "container-init", "clock", "offloads"):
        (home / name).write_bytes(script(name))
        (home / name).chmod(0o755)
    for path in (rootfs / "etc" / "apt").rglob("*"):
        if path.is_file() and path.parent.name != "trusted.gpg.d":
            path.unlink()
    (rootfs / "etc" / "resolv.conf").unlink(missing_ok=True)
    (rootfs / "etc" / "hostname").write_text("guest\n", encoding="ascii")
    for folder in ("etc/dropbear", "etc/nephoscope"):
        (rootfs / folder).mkdir(parents=True, exist_ok=True)


async def _make_disk(rootfs: Path, disk: Path) -> None:
    with disk.open("wb") as file:
        file.truncate(DISK_BYTES)
    # Without a journal: a guest's disk is thrown away with it, and the journal is 16 MiB of image.
    # Without lazy initialisation: a background thread of each guest would write during trials.
    features = ["-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard", "-m", "0"]
    await _run(
        ["mkfs.ext4", "-q", *features, "-L", "guest", "-d", str(rootfs), str(disk)],
        lambda line: None,
    )


def _unpack_kernel(packages: Path, rootfs: Path, folder: Path) -> str:
    """Kernel and first root from the kernel's package; returns the kernel's release."""
    package = next(iter(sorted(packages.glob("linux-image-*.deb"))), None)
    if package is None:
        raise RunFailed(
            f"The guest image could not be built: apt has no kernel in {KERNEL}.",
            "Check that the package sources of this machine answer: `apt-get update`.",
        )
    done = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", str(package)],
        stdout=subprocess.PIPE,
        env=commands.environment(),
        check=True,
    )
    modules: dict[str, bytes] = {}
    release = ""
    wanted = re.compile(
        r"/kernel/(drivers/(virtio|net|block|char/hw_random)|net/(core|sunrpc|dns_resolver)|"
        r"fs/(nfs(/filelayout|/flexfilelayout)?|nfs_common|lockd|netfs|fscache))/[^/]+\.ko$"
    )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        for member in tar:
            name = Path(member.name).name
            if not member.isfile():
                continue
            if name.startswith("vmlinuz-"):
                release = name.removeprefix("vmlinuz-")
                (folder / "vmlinuz").write_bytes(_content(tar, member))
            elif wanted.search(member.name):
                modules[name.removesuffix(".ko")] = _content(tar, member)
    order = initramfs.in_order(modules, initramfs.DRIVERS)
    busybox = (rootfs / "usr" / "bin" / "busybox").read_bytes()
    first = initramfs.archive(busybox, script("initramfs-init"), modules, order)
    (folder / "initrd").write_bytes(first)
    _write_modules(folder / "modules", modules)
    return release


def _write_modules(folder: Path, modules: Mapping[str, bytes]) -> None:
    """The modules of guests that mount something, beside the image: few guests need them."""
    folder.mkdir()
    order = initramfs.in_order(modules, initramfs.NFS_CLIENT)
    for name in order:
        (folder / f"{name}.ko").write_bytes(modules[name])
    (folder / "order").write_text("".join(f"{name}.ko\n" for name in order), encoding="ascii")


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    assert file is not None
    return file.read()


def _installed(rootfs: Path) -> dict[str, str]:
    """Package -> version, from the image's own package database."""
    versions, package = {}, ""
    status = rootfs / "var" / "lib" / "dpkg" / "status"
    for line in status.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(": ")
        if key == "Package":
            package = value
        elif key == "Version":
            versions[package] = value
    return versions


def remove(folder: Path) -> None:
    """Removes what a build left; never what is mounted below it."""
    if folder.exists():
        subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False)
