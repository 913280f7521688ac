"""A target in one word, for `--target`: local, ssh:…, lab:LAB/HOST, sim:[VM@]SCENARIO."""

from __future__ import annotations

import re

from nephoscope import plans
from nephoscope.errors import UsageError
from nephoscope.reading.fields import NAME
from nephoscope.targets.ssh_way import parse_hop

FORMS = "local, ssh:[user@]host[:port], lab:LAB/HOST or sim[:[VM@]SCENARIO]"


def parse(text: str) -> plans.Target:
    """The record of a target; its name is the host's. Raises UsageError."""
    kind, _, rest = text.partition(":")
    if text == "local":
        return plans.Target()
    if kind == "ssh" and (hop := parse_hop(rest)) is not None:
        return plans.Target(
            name=as_name(hop.host), kind="ssh", address=hop.host, port=hop.port, user=hop.user
        )
    if kind == "lab":
        lab, slash, host = rest.partition("/")
        if slash and re.match(NAME, lab) and re.match(NAME, host):
            return plans.Target(name=host, kind="lab", lab=lab, host=host)
    if kind == "sim":
        return _simulated(rest)
    raise UsageError(f"'{text}' is no target.", f"Write {FORMS}.")


def _simulated(text: str) -> plans.Target:
    """A machine of a scheduler scenario, built-in or of a file; none, for what needs none."""
    if not text:
        return plans.Target(name="sim", kind="sim")
    from nephoscope import scenarios

    vm, at, name = text.rpartition("@")
    found = scenarios.load(scenarios.SCHEDULER, name)
    named = as_name(f"{vm}-{found.name}" if at else found.name)
    return plans.Target(name=named, kind="sim", machine=dict(found.values), host=vm)


def as_name(text: str) -> str:
    """A name for results out of another, which may have capitals, dots and colons."""
    name = re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-_")[:40].rstrip("-_")
    return name or "host"
