"""Checks what others wrote: licences and sums here, known vulnerabilities where a tool can look.

usage: audit.py [--offline]

Offline: the licence of every crate that is linked into a program and of every Python package that
users install is one that Apache-2.0 goes together with, and embedded files are those that were
reviewed. Online: pip-audit (installed into .setup/auditor) and cargo-deny or cargo-audit.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from notices import BUNDLED, ROOT, linked_crates, storage_is_built

ALLOWED = frozenset(
    {"Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "ISC", "PSF-2.0"}
    | {"Unlicense", "Zlib", "CC0-1.0", "Unicode-3.0", "MIT-CMU", "BSD", "Apache Software License"}
    | {"MIT License", "BSD License", "ISC License (ISCL)", "Python Software Foundation License"}
)
REVIEWED = {"asyncssh": "EPL-2.0 OR GPL-2.0-or-later: imported unchanged, not part of the wheel"}
"""Python packages with another licence, and why they may be used."""


UNCHECKED = 4
"""Exit code where a tool or its database is missing."""


def is_allowed(expression: str) -> bool:
    """States whether an SPDX expression can be met by allowed licences alone."""
    expression = expression.replace("/", " OR ")
    if "(" in expression:
        inner = re.search(r"\(([^()]*)\)", expression)
        if inner is None:
            return False
        word = "MIT" if is_allowed(inner[1]) else "refused"
        return is_allowed(expression[: inner.start()] + word + expression[inner.end() :])
    alternatives = re.split(r"\s+OR\s+", expression.strip())
    return any(
        all(
            part.split(" WITH ")[0].strip() in ALLOWED
            for part in re.split(r"\s+AND\s+", alternative)
        )
        for alternative in alternatives
    )


def crate_problems(*, storage: bool) -> Iterator[str]:
    """Yields a sentence for each linked crate with another licence."""
    for crate in linked_crates(storage=storage):
        if not is_allowed(crate["license"] or ""):
            yield f"crate {crate['name']}: licence {crate['license']} is not in the list."


def package_problems() -> Iterator[str]:
    """Yields a sentence for each Python package of requirements.lock with another licence."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for name in re.findall(r"^([A-Za-z0-9_.-]+)==", lock, flags=re.M):
        if name in REVIEWED:
            continue
        try:
            about: Any = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue  # of another platform
        classifiers = [
            line.rpartition(" :: ")[2]
            for line in about.get_all("Classifier") or ()
            if line.startswith("License :: ")
        ]
        stated = [about.get("License-Expression"), *classifiers, about.get("License")]
        if not any(is_allowed(text) for text in stated if text and len(text) < 200):
            yield f"package {name}: its licence ({stated}) is not in the list."


def embedded_problems() -> Iterator[str]:
    """Yields a sentence for each embedded file that is not as reviewed or has no licence."""
    table = (BUNDLED / "README.md").read_text(encoding="utf-8")
    for path in sorted(BUNDLED.iterdir()):
        if path.suffix in (".md", ".LICENSE"):
            continue
        if hashlib.sha256(path.read_bytes()).hexdigest() not in table:
            yield f"{path.name}: it is not the file of {BUNDLED / 'README.md'}."
        if not any(path.name.startswith(licence.stem) for licence in BUNDLED.glob("*.LICENSE")):
            yield f"{path.name}: there is no licence beside it."


def vulnerabilities() -> int:
    """Runs the tools that know vulnerabilities; returns 4 where something could not be checked."""
    folder = ROOT / ".setup" / "auditor"
    tool = folder / "bin" / "pip-audit"
    if not tool.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "pip-audit"], check=True)
    lock = ["-r", str(ROOT / "requirements-dev.lock"), "--require-hashes", "--disable-pip"]
    words = [str(tool), *lock, "--format", "json", "--progress-spinner", "off"]
    # Its own words say that none was found also where it looked nothing up.
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    code, sentences = packages_of(done.stdout)
    if not done.stdout:
        sys.stderr.write(done.stderr)
    sys.stderr.writelines(f"audit: {sentence}\n" for sentence in sentences)
    deny = ["--all-features", "check", "advisories", "sources"]
    for name, options in (("deny", deny), ("audit", [])):
        if shutil.which(f"cargo-{name}"):
            return max(code, subprocess.run(["cargo", name, *options], cwd=ROOT).returncode)
    sys.stderr.write(
        "audit: the crates were not checked, because no tool knows their vulnerabilities; this is "
        "not a pass: cargo install cargo-deny\n"
    )
    return max(code, UNCHECKED)


def packages_of(report: str) -> tuple[int, list[str]]:
    """Returns the exit code and the sentences for the JSON report of pip-audit.

    A package that it could not look up is no finding for pip-audit, which then exits with 0.
    """
    try:
        packages: list[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError):
        return UNCHECKED, ["the packages were not checked: pip-audit gave no report."]
    sentences = [
        f"package {package['name']} {package['version']}: {known['id']}, mended in "
        f"{', '.join(known['fix_versions']) or 'no version'}."
        for package in packages
        for known in package.get("vulns", ())
    ]
    skipped = [package["skip_reason"] for package in packages if "skip_reason" in package]
    if skipped:
        sentences.append(
            f"{len(skipped)} of {len(packages)} packages were not checked; this is not a pass: "
            f"{skipped[0]}."
        )
    return (1 if len(sentences) > bool(skipped) else UNCHECKED if skipped else 0), sentences


def main() -> int:
    """Prints every problem; returns 1 with one, 4 where something could not be checked."""
    offline = "--offline" in sys.argv[1:]
    # The sources of the storage program's crates are on this machine only once it was built.
    storage = not offline or storage_is_built()
    problems = [*crate_problems(storage=storage), *package_problems(), *embedded_problems()]
    for problem in problems:
        sys.stderr.write(f"audit: {problem}\n")
    code = 0 if offline else vulnerabilities()
    return 1 if problems else code


if __name__ == "__main__":
    sys.exit(main())
