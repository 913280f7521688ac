"""Machines that nobody logs in to: what they need comes from signed addresses, and what they
measure goes to such addresses.

The script in a machine's user data needs a shell, `sha256sum`, and one of curl, wget and python3.
It has no secret but the addresses, of which each allows one request until it expires.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping
from string import Template
from typing import Any

from nephoscope.core.errors import RunFailed, UsageError
from nephoscope.core.naming import plural
from nephoscope.core.records import dataclass
from nephoscope.core.tasks import together
from nephoscope.measure.cloud import user_data
from nephoscope.measure.cloud.calls import CloudCalls
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.launch import Shortfall, request_of
from nephoscope.measure.cloud.model import (
    Kind,
    Machine,
    MachineRequest,
    SecurityGroupRequest,
    Tags,
)
from nephoscope.measure.cloud.provider import CloudError, CloudTraits
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec
from nephoscope.measure.provisioning import Say

USER_DATA_BYTES = 16 << 10
"""As much as EC2 takes; other clouds take more."""

_SCRIPT = Template(
    """
say() { echo "nephoscope: $$1"; }
off() { say "$$1"; sync; poweroff || shutdown -h now || poweroff -f; exit 0; }
fetch() {
  if command -v curl > /dev/null; then curl -fsSL --max-time 300 -o "$$2" "$$1"
  elif command -v wget > /dev/null; then wget -q -O "$$2" "$$1"
  elif command -v python3 > /dev/null; then
    python3 -c 'from sys import argv; from urllib.request import urlretrieve
urlretrieve(argv[1], argv[2])' "$$1" "$$2"
  else off "this image has none of curl, wget and python3, with one of which the probe is fetched"
  fi 2> /dev/null
}
get() {
  tries=0
  until fetch "$$1" "$$2"; do
    tries=$$((tries + 1))
    [ $$tries -lt 20 ] || off "$$2 cannot be fetched"
    sleep $$((tries < 10 ? tries : 10))
  done
  echo "$$3  $$2" | sha256sum -c > /dev/null 2>&1 || off "$$2 is refused: its SHA-256 is not $$3"
}
for place in /var/tmp /root /tmp; do
  # Some images allow no programs in some of them.
  cd "$$(mktemp -d "$$place/nephoscope.XXXXXX")" && printf '#!/bin/sh\n' > can_run \
    && chmod 700 can_run && ./can_run && break
done 2> /dev/null
case $$(uname -m) in
$probes  *) off "there is no probe for the processor $$(uname -m)" ;;
esac
get $job_url job $job_sha256
chmod 700 probe
./probe unattended --job job 2>&1 | while read -r line; do say "$$line"; done
off "everything was done"
"""
)


@dataclass(frozen=True, slots=True)
class Download:
    """A file that a machine fetches first. sha256: in hexadecimal; anything else is refused."""

    url: str
    sha256: str

    def __repr__(self) -> str:
        return f"Download(…, {self.sha256})"


def script(probes: Mapping[str, Download], job: Download, lease_s: int) -> str:
    """Returns the user data of a machine: its lease, and its work. Raises UsageError where
    addresses make it too long."""
    text = f"{user_data.lease(lease_s)}{work(probes, job)}"
    if (length := len(text.encode())) > USER_DATA_BYTES:
        raise UsageError(
            f"The user data of a machine would have {length} bytes, and clouds take "
            f"{USER_DATA_BYTES}: the credentials make signed addresses too long.",
            "Use credentials without a session token.",
        )
    return text


def work(probes: Mapping[str, Download], job: Download) -> str:
    """Returns the commands that fetch the probe, run the job and switch the machine off. probes: by
    processor, as `uname -m` has it."""
    lines = [
        f"  {processor}) get {shlex.quote(probe.url)} probe {probe.sha256} ;;\n"
        for processor, probe in probes.items()
    ]
    return _SCRIPT.substitute(
        probes="".join(lines), job_url=shlex.quote(job.url), job_sha256=job.sha256
    )


@dataclass(frozen=True, slots=True)
class Unattended:
    """What makes a rental one that nobody logs in to.

    prepare: makes what the machines need, in the rental's folder and tags, and returns the script
    of each group. document: keys for rental.json. results_expire_s: seconds since the epoch after
    which results that nobody collected may be removed. at_least: fewer machines are worth nothing.
    """

    prepare: Callable[[RentalFolder, Tags], Awaitable[Mapping[str, str]]]
    document: Mapping[str, Any]
    results_expire_s: int
    at_least: int


async def launch(
    calls: CloudCalls,
    spec: RentalSpec,
    tags: Tags,
    folder: RentalFolder,
    unattended: Unattended,
    spot_per_h: Mapping[tuple[str, str], float | None],
    say: Say,
) -> tuple[dict[str, Machine], list[Shortfall]]:
    """Makes the machines of a rental, without waiting for any of them; each group is one.

    There is no key pair, and nothing may come in. Raises RunFailed where too few were granted.
    """
    firewalls: dict[str, str] = {}
    scripts = await unattended.prepare(folder, tags)
    if Kind.SECURITY_GROUP in calls.provider.traits.kinds:
        for region in sorted({group.region for group in spec.groups}):
            network = next(group.network for group in spec.groups if group.region == region)
            wanted = SecurityGroupRequest(region, tags, "", network=network)
            firewalls[region] = (await calls.make(wanted, folder))[0].id
    say(f"Starting {plural(len(spec.groups), 'machine')}.")

    async def made(group: MachineGroup) -> Machine | CloudError:
        request: MachineRequest = request_of(
            spec,
            group,
            tags,
            calls.provider.traits,
            user_data=scripts[group.name],
            security_group=firewalls.get(group.region, ""),
            max_per_h=spot_per_h.get((spec.name, group.name)),
        )
        try:
            (machine,) = await calls.make(request, folder)
        except CloudError as error:
            return error
        assert isinstance(machine, Machine)
        return machine

    outcomes = await together(*(made(group) for group in spec.groups))
    machines, shortfalls = {}, []
    for group, outcome in zip(spec.groups, outcomes, strict=True):
        if isinstance(outcome, Machine):
            machines[group.name] = outcome
        else:
            reason = outcome.message.rstrip(".")
            shortfalls.append(Shortfall(group.name, 1, outcome.cause, reason))
    if len(machines) < unattended.at_least:
        reasons = "; ".join(dict.fromkeys(shortfall.reason for shortfall in shortfalls))
        raise RunFailed(
            f"{len(machines)} of {plural(len(spec.groups), 'machine')} were granted, and at least "
            f"{unattended.at_least} are needed: {reasons}.",
            "Ask for fewer with --count, accept fewer with --at-least, or take another zone or "
            "type.",
        )
    return machines, shortfalls


def require_user_data(traits: CloudTraits, cloud: str) -> None:
    """Raises UsageError for a cloud whose machines run no script when they start."""
    if not traits.user_data:
        raise UsageError(
            f"Machines of {cloud} run no script when they start, so that nobody can leave them to "
            "themselves.",
            "Measure them over a connection: `nephoscope run` with targets of kind rented.",
        )
