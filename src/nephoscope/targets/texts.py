"""A target in one word, for `--target`: local, ssh:[user@]host[:port], lab:LAB/HOST."""

from __future__ import annotations

import re

from nephoscope import plans
from nephoscope.errors import UsageError
from nephoscope.reading.fields import NAME
from nephoscope.targets.ssh_way import parse_hop

FORMS = "local, ssh:[user@]host[:port] or lab:LAB/HOST"


def parse(text: str) -> plans.Target:
    """The record of a target; its name is the host's. Raises UsageError."""
    kind, _, rest = text.partition(":")
    if text == "local":
        return plans.Target()
    if kind == "ssh" and (hop := parse_hop(rest)) is not None:
        return plans.Target(
            name=_name(hop.host), kind="ssh", address=hop.host, port=hop.port, user=hop.user
        )
    if kind == "lab":
        lab, slash, host = rest.partition("/")
        if slash and re.match(NAME, lab) and re.match(NAME, host):
            return plans.Target(name=host, kind="lab", lab=lab, host=host)
    raise UsageError(f"'{text}' is no target.", f"Write {FORMS}.")


def _name(host: str) -> str:
    """A name for results out of a host's, which may have capitals, dots and colons."""
    name = re.sub(r"[^a-z0-9_]+", "-", host.lower()).strip("-_")[:40].rstrip("-_")
    return name or "host"
