"""Imports follow the arrows of docs/architecture.md, at module level and inside functions alike."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "nephoscope"

# A room may import the rooms before it, and itself.
ORDER = [
    "limits",
    "errors",
    "grouping",
    "units",
    "tasks",
    "programs",
    "reading",
    "naming",
    "model",
    "documents",
    "catalog",
    "adapters",
    "analysis",
    "provisioning",
    "lab",
    "scenarios",
    "targets",
    "plans",
    "labcheck",
    "store",
    "runs",
    "results",
    "report",
    "machine",
    "clients",
    "experiments",
    "isolation",
    "scheduler",
    "load",
    "balance",
    "network",
    "traffic",
    "census",
    "fleet",
    "sla",
    "advise",
    "crosscheck",
    "platforms",
    "simulation",
    "cost",
    "pricing",
    "capabilities",
    "comparison",
    "rank",
    "compaction",
    "history",
    "studies",
    "watch",
    "api",
    "commands",
    "cli",
    "serve",
    "__main__",
]
ANALYSIS_MAY_IMPORT = {"errors", "grouping", "units", "naming", "model", "analysis"}
COMMANDS = {
    "command",
    "capacity_command",
    "utility_command",
    "live",
    "measured_latency",
    "options",
    "text",
    "watch_command",
    "what_if_command",
}
"""Modules of a capability's folder that belong to the command line, above all folders."""
SERVERS = {"endpoint"}
"""Modules of a capability's folder that listen behind the guard of the dashboard."""


def room_of(path: Path) -> str:
    """The room (folder or top-level module) in which a source file lies."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms of this package that a source file imports, wherever in the file."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative imports hide the room"
            names = [node.module]
            if node.module == "nephoscope":
                names = [f"nephoscope.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "nephoscope" and len(parts) > 1 and not parts[1].startswith("__"):
                rooms.add(parts[1])
    return rooms


SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
PACKAGES = sorted(path for path in PACKAGE.glob("*/__init__.py"))


def allowed_rooms(path: Path) -> set[str]:
    """The rooms that a source file may import."""
    room = room_of(path)
    if room == "analysis":
        return ANALYSIS_MAY_IMPORT
    last = (
        "commands"
        if path.stem in COMMANDS and ORDER.index(room) < ORDER.index("commands")
        else room
    )
    return set(ORDER[: ORDER.index(last) + 1]) | ({"serve"} if path.stem in SERVERS else set())


def test_imports_go_one_way() -> None:
    wrong = {
        str(path.relative_to(PACKAGE)): sorted(imported_rooms(path) - allowed_rooms(path))
        for path in [*SOURCES, *PACKAGES]
    }
    assert not {path: rooms for path, rooms in wrong.items() if rooms}


def test_every_room_has_its_place_in_the_order() -> None:
    rooms = {room_of(path) for path in SOURCES} | {path.parent.name for path in PACKAGES}
    assert rooms - {"_probe", "_contracts"} <= set(ORDER)
