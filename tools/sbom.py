"""Writes what others wrote and the wheel contains, as a CycloneDX 1.6 document.

usage: sbom.py FILE

The wheel has it below `.dist-info/sboms` (PEP 770): the crates that are linked into the static
programs with their sums of Cargo.lock, what reports embed, and what the dashboard's page contains.
Python packages that are installed beside it state themselves.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from notices import BUNDLED, PAGE_LICENCES, ROOT, linked_crates, storage_is_built

_SUMS = {40: "SHA-1", 64: "SHA-256"}
_NPM = re.compile(r"(?P<name>.+?)-(?P<version>\d[\w.]*)\.LICENSE")


def _sums_of_crates() -> Mapping[tuple[str, str], str]:
    """Returns the sum of each crate's archive, by name and version."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    return {
        (package["name"], package["version"]): package["checksum"]
        for package in lock["package"]
        if "checksum" in package
    }


def crates() -> Iterator[dict[str, Any]]:
    """Yields a component for each crate that is linked into a program."""
    sums = _sums_of_crates()
    for crate in linked_crates(storage=storage_is_built()):
        name, version = crate["name"], crate["version"]
        url = f"pkg:cargo/{name}@{version}"
        component: dict[str, Any] = {
            "type": "library",
            "bom-ref": url,
            "name": name,
            "version": version,
            "purl": url,
        }
        if crate["license"]:
            # Before SPDX had operators, a slash meant a choice.
            component["licenses"] = [{"expression": crate["license"].replace("/", " OR ")}]
        if content := sums.get((name, version)):
            component["hashes"] = [{"alg": _SUMS[len(content)], "content": content}]
        yield component


def scripts() -> Iterator[dict[str, Any]]:
    """Yields a component for each script of others in reports and in the dashboard's page."""
    for path in sorted([*BUNDLED.glob("*.LICENSE"), *PAGE_LICENCES.glob("*.LICENSE")]):
        named = _NPM.fullmatch(path.name)
        name = named["name"] if named else path.stem
        component: dict[str, Any] = {"type": "library" if named else "data", "name": name}
        if named:
            component["version"] = named["version"]
        component["bom-ref"] = f"embedded:{path.stem}"
        text = path.read_text(encoding="utf-8")
        component["licenses"] = [{"license": {"name": name, "text": {"content": text}}}]
        yield component


def document() -> dict[str, Any]:
    """Returns the document. It has no time and no number of its own: equal sources, equal bytes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project.get("version", "")
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "nephoscope",
                "name": project["name"],
                **({"version": version} if version else {}),
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": [*crates(), *scripts()],
    }


def main() -> int:
    """Writes the file that the command line names."""
    if len(sys.argv) != 2:
        sys.stderr.write(f"{__doc__}")
        return 2
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document(), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
