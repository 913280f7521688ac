"""The topologies of the lab guide are what it says: each can be built, the first one is."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from tests.tools import needs

from nephoscope.measure.lab import files
from nephoscope.measure.lab.provisioner import LABS
from nephoscope.measure.lab.topology import Topology

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "lab.md"
BLOCK = re.compile(r"^```yaml(?: title=\"[^\"]+\")?\n(.*?)^```$", re.M | re.S)
BLOCKS = BLOCK.findall(GUIDE.read_text(encoding="utf-8"))
PARTS = "version: 1\nname: guide\n"


def topology(block: str) -> Topology:
    """A block of the guide; what is only a part of a file gets what it leaves out."""
    text = block if "name:" in block else PARTS + block
    if "hosts:" not in text:
        text += "hosts: {client: , server: }\n"
    return files.from_text(text, GUIDE.name)


def test_there_are_topologies() -> None:
    assert len(BLOCKS) == 3


@pytest.mark.parametrize("block", BLOCKS)
def test_every_topology_of_the_guide_can_be_built(block: str) -> None:
    assert topology(block).hosts


@needs("ip", "tc")
@pytest.mark.usefixtures("root_only")
def test_the_first_one_comes_up() -> None:
    office = topology(BLOCKS[0]).model_copy(update={"name": "tguide"})

    async def whole() -> None:
        lab = await LABS.create(office, say=lambda line: None)
        try:
            assert list(lab.hosts) == ["client", "server", "neighbour"]
            assert lab.links[0].path in ("line", "netem")
            assert lab.links[0].rate == "HTB"
        finally:
            await LABS.remove(lab.name)

    asyncio.run(whole())
    assert LABS.remains("tguide") == []
