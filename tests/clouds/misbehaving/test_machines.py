"""Instances as machines: reached over ssh with a key known before, powered off, rebooted."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import sshd, tools

from nephoscope.measure.cloud import user_data

from . import cpu_share
from .disks import GROUPS
from .double import Double
from .helpers import launch, states
from .machines import remove_remains

pytestmark = [tools.needs("sshd", "ssh", "ssh-keygen"), pytest.mark.usefixtures("root_only")]


@pytest.fixture
def machines(cloud: Double) -> Iterator[Double]:
    cloud.settings(machines=True, boot_s=0.3, stop_s=0.3, shutdown_s=0.3)
    yield cloud
    cloud.reset()


def until(holds: Callable[[], Any], seconds: float = 120.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)
    return found


def test_what_a_killed_double_left_goes_when_the_next_one_starts() -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    kinds = [(each, "nepho-{}-i-00000000") for each in cpu_share.groups()]
    kinds += [(GROUPS, "nephoscope-cloud-{}-x")] if GROUPS.is_dir() else []
    killed = [each / name.format(ended.pid) for each, name in kinds]
    alive = [each / name.format(os.getpid()) for each, name in kinds]
    try:
        for group in (*killed, *alive):
            (group / "i-00000000").mkdir(parents=True)
        remove_remains()
        assert [group for group in killed if group.exists()] == []
        assert [group for group in alive if not group.exists()] == []
    finally:
        for group in (*killed, *alive):
            cpu_share.remove_tree(group)


class Login:
    """ssh to a machine, with the keys of a rental."""

    def __init__(self, folder: Path, keys: user_data.MachineKeys, address: str) -> None:
        self.identity, self.known = folder / "identity", folder / "known_hosts"
        self.identity.write_text(keys.private + "\n")
        self.identity.chmod(0o600)
        self.known.write_text(f"{address} {' '.join(keys.host_public.split()[:2])}\n")
        self.address = address

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        options = ["BatchMode=yes", "ConnectTimeout=3", f"UserKnownHostsFile={self.known}"]
        words = [word for option in options for word in ("-o", option)]
        target = [f"root@{self.address}", command]
        identity = ["-F", "none", "-i", str(self.identity)]
        return subprocess.run(
            ["ssh", *identity, *words, *target], capture_output=True, text=True, timeout=30
        )

    def output(self, command: str) -> str:
        """What the command prints, once the machine lets in."""
        return str(until(lambda: (done := self.run(command)).returncode == 0 and done.stdout))


def address_of(ec2: Any, id: str) -> str:
    described = ec2.describe_instances(InstanceIds=[id])["Reservations"][0]["Instances"][0]
    return str(described.get("PublicIpAddress", ""))


def test_a_machine_lives_from_user_data_to_the_end_of_its_lease(
    machines: Double, client: Any, tmp_path: Path
) -> None:
    ec2 = client()
    keys = user_data.MachineKeys.generate()
    script = user_data.script(keys, 3600)
    host_file = tmp_path / "untouched"
    (one,) = launch(
        ec2, UserData=script, InstanceInitiatedShutdownBehavior="terminate",
        MetadataOptions={"HttpTokens": "required"},
    )  # fmt: skip
    login = Login(tmp_path, keys, until(lambda: address_of(ec2, one)))
    assert login.output("hostname").strip() == one
    # Nothing that is written inside is seen outside.
    assert login.output(f"mkdir -p {tmp_path} && touch {host_file} /etc/marked && echo ok")
    assert not host_file.exists()
    assert not Path("/etc/marked").exists()
    token = "curl -s -X PUT -H X-aws-ec2-metadata-token-ttl-seconds:60 http://169.254.169.254/latest/api/token"
    url = "http://169.254.169.254/latest/meta-data/instance-id"
    assert login.output(f"curl -s -H X-aws-ec2-metadata-token:$({token}) {url}") == one
    assert login.output(f"curl -s -o /dev/null -w %{{http_code}} {url}") == "401"
    assert f"machine {one} is up" in ec2.get_console_output(InstanceId=one)["Output"]
    left = "read up _ < /proc/uptime; echo $(($(cat /run/nephoscope-lease) - ${up%%.*}))"
    boot = login.output(user_data.renewal(3600))
    # A reboot keeps the disk and the host key; user data does not run again.
    ec2.reboot_instances(InstanceIds=[one])
    assert login.output("ls /etc/marked").strip() == "/etc/marked"
    # The lease goes on, and the machine says that this is another boot.
    assert 3000 < int(login.output(left)) <= 3600
    assert boot != login.output(user_data.renewal(3600))
    login.output(user_data.renewal(0))
    until(lambda: states(ec2)[one] == "terminated")
    assert machines.live() == []
    reason = ec2.describe_instances()["Reservations"][0]["Instances"][0]["StateReason"]
    assert reason["Code"] == "Client.InstanceInitiatedShutdown"


def test_a_lease_that_is_not_renewed_ends_the_machine(machines: Double, client: Any) -> None:
    ec2 = client()
    keys = user_data.MachineKeys.generate()
    script = user_data.script(keys, 0).replace("sleep 5", "sleep 0.2")
    (one,) = launch(ec2, UserData=script, InstanceInitiatedShutdownBehavior="terminate")
    until(lambda: states(ec2)[one] == "terminated")
    assert machines.live() == []


@pytest.mark.parametrize(("record", "least_s", "most_s"), [
    ("$(($(date +%s) - 1000)) 3000", 1900, 2000),
    ("$(($(date +%s) - 5000)) 3000", 800, 900),
    ("$(($(date +%s) + 5000)) 3000", 2900, 3000),
    ("", 800, 900),
])  # fmt: skip
def test_a_lease_goes_on_after_a_boot(
    tmp_path: Path, record: str, least_s: int, most_s: int
) -> None:
    """What is left: by the machine's own clock, with a grace, whole where the clock went back."""
    script = user_data.script(user_data.MachineKeys.generate(), 3600)
    hook = script.split("<<'LEASE'\n")[1].split("LEASE\n")[0].split("(\n  trap")[0]
    for place in ("/run/nephoscope", "/var/lib/nephoscope"):
        hook = hook.replace(place, f"{tmp_path}{place}")
        (tmp_path / place[1:]).mkdir(parents=True)
    (tmp_path / "hook").write_text(hook)
    (tmp_path / "run/nephoscope").rmdir()
    lines = [f"echo {record} > {tmp_path}/var/lib/nephoscope/lease" if record else ":",
             f"sh {tmp_path}/hook", "read up _ < /proc/uptime",
             f"echo $(($(cat {tmp_path}/run/nephoscope-lease) - ${{up%%.*}}))"]  # fmt: skip
    done = subprocess.run(["sh", "-c", "\n".join(lines)], capture_output=True, text=True)
    assert least_s <= int(done.stdout) <= most_s, done.stderr


def test_machines_end_with_their_instances_and_reach_each_other(
    machines: Double, client: Any, tmp_path: Path
) -> None:
    ec2 = client()
    key = sshd.keygen(tmp_path / "key")
    ec2.import_key_pair(KeyName="mine", PublicKeyMaterial=key.with_suffix(".pub").read_bytes())
    two = launch(ec2, MinCount=2, MaxCount=2, KeyName="mine")
    addresses = [until(lambda id=id: address_of(ec2, id)) for id in two]
    options = ["-F", "none", "-i", str(key), "-o", "StrictHostKeyChecking=no",
               "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={tmp_path / 'known'}"]  # fmt: skip
    inside = f"ping -c 1 -W 5 {addresses[1]} > /dev/null && echo reached"
    words = ["ssh", *options, f"root@{addresses[0]}", inside]
    run = lambda: subprocess.run(words, capture_output=True, text=True).stdout.strip()  # noqa: E731
    assert until(run) == "reached"
    ec2.terminate_instances(InstanceIds=two)
    until(lambda: set(states(ec2).values()) == {"terminated"})
    assert until(lambda: not run())


def test_a_machine_may_never_answer(machines: Double, client: Any) -> None:
    machines.fault("silent", next=1)
    ec2 = client()
    (one,) = launch(ec2)
    until(lambda: "is up" in ec2.get_console_output(InstanceId=one)["Output"])
    address = until(lambda: address_of(ec2, one))
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((address, 22), timeout=5)
