"""Builds the dashboard's page from web/ into src/nephoscope/serve/static, or compares both.

usage: page.py [--check]

The built files are committed, so that nobody needs node to use or to package Nephoscope. --check
builds aside and compares; without node it says so and compares nothing but the digest in
web/built.sha256, which tells whether sources or built files changed since they were built together.
"""

from __future__ import annotations

import filecmp
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "web"
STATIC = ROOT / "src" / "nephoscope" / "serve" / "static"
DIGEST = WEB / "built.sha256"


def digest() -> str:
    """Returns one digest of the page's sources and of its built files."""
    sources = [WEB / name for name in ("index.html", "package-lock.json", "vite.config.js")]
    for folder in (WEB / "src", WEB / "public", STATIC):
        sources += [path for path in folder.rglob("*") if path.is_file()]
    lines = (
        f"{path.relative_to(ROOT).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n"
        for path in sorted(sources)
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def build(folder: Path) -> str:
    """Builds the page into a folder; returns why it could not, empty where it could."""
    npm = shutil.which("npm")
    if npm is None:
        return "node and npm are not installed"
    stamp = WEB / "node_modules" / ".package-lock.json"
    lock = WEB / "package-lock.json"
    if not stamp.exists() or stamp.stat().st_mtime < lock.stat().st_mtime:
        done = subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit"], cwd=WEB, check=False)
        if done.returncode:
            return "npm could not install the locked packages"
    command = [npm, "exec", "--", "vite", "build", "--logLevel=warn", f"--outDir={folder}"]
    done = subprocess.run([*command, "--emptyOutDir"], cwd=WEB, check=False)
    return "vite could not build the page" if done.returncode else ""


def is_same(left: Path, right: Path) -> bool:
    """States whether two folders hold the same files."""
    files = [
        sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        for folder in (left, right)
    ]
    return files[0] == files[1] and all(
        filecmp.cmp(left / name, right / name, shallow=False) for name in files[0]
    )


def main() -> int:
    """Builds or compares; returns 1 where the built files are not those of the sources."""
    if "--check" not in sys.argv[1:]:
        problem = build(STATIC)
        if not problem:
            DIGEST.write_text(digest() + "\n", encoding="ascii")
        print(f"page: {problem or f'built {STATIC.relative_to(ROOT)}'}.", file=sys.stderr)
        return bool(problem)
    if DIGEST.read_text(encoding="ascii").strip() != digest():
        print("page: web/ and the built files differ. Run `make page`.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        problem = build(Path(folder))
        if problem:
            print(f"page: not built to compare, because {problem}.", file=sys.stderr)
        elif not is_same(Path(folder), STATIC):
            print("page: another build gives other files. Run `make page`.", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
