"""ssh targets against real servers on loopback: who is trusted, what is told, what is left."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest
from tests.measure.targets.test_child import alive, gone
from tests.sshd import Server, children, keygen, needs_it, serving
from tests.tools import located, needs

from nephoscope.core.errors import TargetError
from nephoscope.measure.targets.kinds.ssh import SshRecord as Record
from nephoscope.measure.targets.ssh.route import Hop, SshRoute
from nephoscope.measure.targets.ssh.target import SshTarget

pytestmark = needs_it

T = TypeVar("T")
FOREVER = {"wait_ns": 60_000_000_000}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "sshd") as one:
        yield one


def using(record: Record, work: Callable[[SshTarget], Awaitable[T]]) -> T:
    async def whole() -> T:
        target = record.make()
        try:
            await target.open()
            return await work(target)
        finally:
            await target.close()

    return asyncio.run(whole())


async def one_trial(target: SshTarget) -> Any:
    return await target.run("null", {"value": 7.0}, 20)


def refusal(record: Record) -> str:
    """The sentence with which a host is not measured."""
    with pytest.raises(TargetError) as caught:
        using(record, one_trial)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    return str(caught.value)


def left_in(home: Path) -> list[str]:
    return sorted(p.name.split("-")[0] for p in (home / ".cache" / "nephoscope").iterdir())


# Who is trusted.


def test_an_unknown_host_key_stops_with_its_fingerprint(server: Server) -> None:
    server.known_hosts.write_text("")
    words = refusal(server.record())
    assert "the host key is not known" in words
    assert fingerprint(server.host_key) in words
    assert f"-p {server.port} 127.0.0.1" in words
    assert server.known_hosts.read_text() == "", "nothing is added behind the user's back"


def test_a_changed_host_key_stops_and_says_so(server: Server) -> None:
    old = fingerprint(server.host_key)
    assert using(server.record(), one_trial).failure is None
    server.stop()
    for file in server.folder.glob("host_key*"):
        file.unlink()
    keygen(server.host_key)
    server.start()
    words = refusal(server.record())
    assert "the host key has changed" in words
    assert old in words
    assert fingerprint(server.host_key) in words
    assert f"ssh-keygen -R '[127.0.0.1]:{server.port}'" in words
    server.know()
    assert using(server.record(), one_trial).failure is None


def test_a_key_of_another_type_is_a_changed_key(server: Server, tmp_path: Path) -> None:
    other = tmp_path / "rsa"
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", str(other)], check=True)
    public = " ".join(other.with_suffix(".pub").read_text().split()[:2])
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {public}\n")
    assert "the host key has changed" in refusal(server.record())


def test_a_revoked_host_key_stops(server: Server) -> None:
    public = server.known_hosts.read_text().split(None, 1)[1]
    server.known_hosts.write_text(server.known_hosts.read_text() + f"@revoked * {public}")
    assert "marks as revoked" in refusal(server.record())


def test_a_host_certificate_is_trusted_through_its_authority(
    server: Server, tmp_path: Path
) -> None:
    authority = keygen(tmp_path / "authority")
    subprocess.run(
        [
            *("ssh-keygen", "-q", "-s", str(authority), "-I", "host", "-h", "-n", "127.0.0.1"),
            str(server.host_key.with_suffix(".pub")),
        ],
        check=True,
    )
    server.stop()
    server.options = f"HostCertificate {server.host_key}-cert.pub"
    server.start()
    public = " ".join(authority.with_suffix(".pub").read_text().split()[:2])
    server.known_hosts.write_text(f"@cert-authority * {public}\n")
    assert using(server.record(), one_trial).failure is None


def test_no_setting_of_the_user_turns_the_check_off(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for setting in ("none", "/dev/null"):
        config(
            tmp_path,
            monkeypatch,
            f"Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile {setting}\n",
        )
        assert "the host key is not known" in refusal(server.record(known_hosts=""))


def test_a_key_that_is_not_accepted_is_told(server: Server, tmp_path: Path) -> None:
    words = refusal(server.record(identity=str(keygen(tmp_path / "other"))))
    assert "accepts none of the keys" in words
    assert "ssh-add" in words


def test_a_key_file_that_is_not_there_is_told(server: Server, tmp_path: Path) -> None:
    assert "cannot be used" in refusal(server.record(identity=str(tmp_path / "none")))


def test_a_passphrase_is_never_asked_for(server: Server) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret words", "-f", str(server.identity)],
        check=True,
    )
    words = refusal(server.record())
    assert "ssh-add" in words
    assert "secret" not in words


# The user's configuration.


def config(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (folder / ".ssh").mkdir(exist_ok=True)
    (folder / ".ssh" / "config").write_text(text)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def test_the_users_configuration_is_respected_but_nothing_is_forwarded(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config(
        tmp_path,
        monkeypatch,
        f"Host far-away\n  HostName 127.0.0.1\n  Port {server.port}\n  User {server.user}\n"
        f"  IdentityFile {server.identity}\n  UserKnownHostsFile {server.known_hosts}\n"
        "  ForwardAgent yes\n  ForwardX11 yes\n  ForwardX11Trusted yes\n  RequestTTY force\n"
        "  RemoteCommand false\n  SendEnv SECRET_*\n  SetEnv LANG=odd\n",
    )
    monkeypatch.setenv("SECRET_WORD", "secret")
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    monkeypatch.setenv("DISPLAY", ":9")
    server.stop()
    server.options = "AcceptEnv *\nX11Forwarding yes\nAllowAgentForwarding yes"
    server.start()

    async def work(target: SshTarget) -> tuple[Any, bytes]:
        program = await target._channel.start(["sh", "-c", "env; test -t 0 && echo a terminal"])
        ended = await program.rest(10, 1 << 16, 1000)
        return target._reached_by(), ended.stdout

    known, said = using(Record(name="x", kind="ssh", address="far-away"), work)
    reached = known["reached"]
    assert (reached["host"], reached["port"]) == ("127.0.0.1", server.port)
    assert reached["host_key"] == fingerprint(server.host_key, "ssh-ed25519 ")
    for word in (b"SSH_AUTH_SOCK", b"DISPLAY", b"secret", b"LANG=odd", b"a terminal"):
        assert word not in said


def test_the_agent_has_the_key(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config(tmp_path, monkeypatch, "")
    socket = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 120
        while not socket.exists() and time.monotonic() < end:
            time.sleep(0.01)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        assert "accepts none" in refusal(server.record(identity=""))
        subprocess.run(["ssh-add", "-q", str(server.identity)], check=True)
        assert using(server.record(identity=""), one_trial).failure is None
    finally:
        agent.terminate()
        agent.wait()


def test_a_configured_jump_host_is_gone_through_and_checked(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path / "jump") as jump:
        shutil.copy(f"{server.identity}.pub", f"{jump.identity}.pub")
        known = tmp_path / "known"
        known.write_text(server.known_hosts.read_text() + jump.known_hosts.read_text())
        config(
            tmp_path,
            monkeypatch,
            f"Host bastion\n  HostName 127.0.0.1\n  Port {jump.port}\n"
            f"Host far\n  HostName 127.0.0.1\n  Port {server.port}\n  ProxyJump bastion\n"
            f"Host *\n  User {server.user}\n  IdentityFile {server.identity}\n"
            f"  UserKnownHostsFile {known}\n  ProxyJump bastion\n",
        )
        record = Record(name="x", kind="ssh", address="far")

        async def through(target: SshTarget) -> Any:
            return (await one_trial(target)).failure, target._reached_by()["reached"]["through"]

        assert using(record, through) == (None, ["bastion"])
        assert jump.log().count("Accepted publickey") == 1
        known.write_text(server.known_hosts.read_text())
        words = refusal(record)
        assert "jump host bastion" in words
        assert "the host key is not known" in words


# Hosts that cannot be reached.


def test_an_unreachable_host_is_told(server: Server) -> None:
    record = server.record()
    server.stop()
    assert "cannot be reached: " in refusal(record)
    assert "refused" in refusal(record).lower()


def test_a_name_that_does_not_exist_is_told(server: Server) -> None:
    assert "no host of that name" in refusal(server.record(address="no-such-host.invalid"))


def test_a_silent_host_is_told_in_time(server: Server) -> None:
    """SIGSTOP: the port still takes connections, and nobody says a word."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(TargetError, match=r"no answer within|was not ready|hung up") as caught:
            asyncio.run(server.record().make().open(1.0))
        assert time.monotonic() - began < 60
        assert "\n" not in str(caught.value)
    finally:
        os.kill(server.pid, signal.SIGCONT)


def test_a_jump_host_that_cannot_reach_it_is_named(server: Server, tmp_path: Path) -> None:
    hop = f"{server.user}@127.0.0.1:{server.port}"
    known = tmp_path / "known"
    known.write_text(server.known_hosts.read_text())
    words = refusal(server.record(port=1, jump=(hop,), known_hosts=str(known)))
    assert "the jump host does not reach it" in words


# The far side's ways.

NEEDED_TOOLS = ("cat", "chmod", "id", "kill", "mkdir", "mv", "rm", "touch", "tr", "uname", "wc")
NOISY = 'echo noise; printf "no line feed"; echo more >&2\n'


def test_dotfiles_that_print_do_no_harm(tmp_path: Path) -> None:
    # Other login shells read no dotfile for a command.
    login_shell = os.path.basename(pwd.getpwuid(os.geteuid()).pw_shell)
    options = 'ForceCommand exec bash -c "$SSH_ORIGINAL_COMMAND"'
    with serving(tmp_path / "sshd", options="" if login_shell == "bash" else options) as server:
        (server.home / ".bashrc").write_text(NOISY)
        check_noise(server)


def check_noise(server: Server) -> None:
    """The dotfile's noise is in what ssh prints, and not in what a target returns."""
    said = subprocess.run(
        [
            *("ssh", "-F", "/dev/null", "-o", f"UserKnownHostsFile={server.known_hosts}"),
            *("-i", str(server.identity), "-p", str(server.port)),
            *(f"{server.user}@127.0.0.1", "true"),
        ],
        check=True,
        capture_output=True,
    )
    assert b"noise\nno line feed" in said.stdout, "the test's own premise"
    trial = using(server.record(), one_trial)
    assert [s.value for s in trial.samples if s.metric == "null_ns"] == [7.0]


@pytest.mark.parametrize(
    "shell",
    [
        "dash",
        *(
            pytest.param(shell, marks=needs(shell.split()[0]))
            for shell in ("busybox sh", "csh", "zsh")
        ),
    ],
)
def test_any_login_shell_will_do(tmp_path: Path, shell: str) -> None:
    options = f'ForceCommand exec {shell} -c "$SSH_ORIGINAL_COMMAND"'
    with serving(tmp_path / "sshd", options=options) as server:
        assert using(server.record(), one_trial).failure is None


@needs("busybox", "setpriv")
def test_without_root_and_without_python(tmp_path: Path, root_only: None) -> None:
    """The far side is nobody, with nothing but busybox."""
    busybox = located("busybox")
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "sha256sum", *NEEDED_TOOLS):
        (tools / tool).symlink_to(busybox)
    as_nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs"
    options = f'ForceCommand exec {as_nobody} env PATH={tools} sh -c "$SSH_ORIGINAL_COMMAND"'
    with serving(tmp_path / "sshd", options=options) as server:
        os.chown(server.home, 65534, 65534)
        for folder in [server.home, *server.home.parents][:-2]:
            folder.chmod(0o755)

        async def work(target: SshTarget) -> Any:
            fingerprint = await target.open()
            return await one_trial(target), fingerprint

        trial, document = using(server.record(), work)
        assert trial.failure is None
        assert document["reached"]["by"] == "ssh"
        assert (server.home / ".cache" / "nephoscope").stat().st_uid == 65534


def test_a_closed_account_is_told_in_its_own_words(tmp_path: Path) -> None:
    options = 'ForceCommand echo "This account is closed."; exit 1'
    with serving(tmp_path / "sshd", options=options) as server:
        words = refusal(server.record())
        assert "ran no command" in words
        assert "This account is closed." in words


def test_a_server_that_opens_too_few_sessions_is_told(tmp_path: Path) -> None:
    with serving(tmp_path / "sshd", options="MaxSessions 1") as server:
        assert "MaxSessions" in refusal(server.record())


def test_more_programs_than_a_server_allows_wait_for_one_another(server: Server) -> None:
    """sshd refuses an eleventh session (MaxSessions)."""

    async def forty(target: SshTarget) -> list[Any]:
        return await asyncio.gather(*(one_trial(target) for _ in range(40)))

    assert all(trial.failure is None for trial in using(server.record(), forty))
    assert server.log().count("Accepted publickey") == 1


# Nothing is left, and nothing half.


def test_a_probe_that_is_killed_there_fails_its_trial_and_no_other(server: Server) -> None:
    async def work(target: SshTarget) -> tuple[Any, Any]:
        running = await target.start("null", FOREVER, 60)
        other = asyncio.ensure_future(target.run("null", {"wait_ns": 300_000_000}, 30))
        pid = (await running.ready(10))["pid"]
        await running.go()
        assert not running.ended()
        os.kill(pid, signal.SIGKILL)
        return await running.result(30), await other

    killed, other = using(server.record(), work)
    assert killed.failure.name == "probe_died"
    assert "SIGKILL" in str(killed.failure)
    assert other.failure is None


def test_a_cancelled_trial_leaves_no_process_there(server: Server) -> None:
    async def work(target: SshTarget) -> int:
        running = await target.start("null", FOREVER, 60)
        pid = int((await running.ready(10))["pid"])
        assert alive(pid)
        await running.go()
        task = asyncio.ensure_future(running.result(60))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not alive(pid)
        return pid

    using(server.record(), work)


@pytest.mark.parametrize(
    "script", ["exec sleep 60", "trap '' TERM HUP; while :; do sleep 0.2; done"]
)
def test_a_program_that_does_not_listen_is_killed_by_its_number(
    server: Server, script: str
) -> None:
    async def work(target: SshTarget) -> None:
        program = await target._ssh.start(["sh", "-c", script])
        assert alive(program.pid)
        ended = await program.rest(0.2, 1000, 10)
        assert ended.why == "timeout"
        assert not alive(program.pid)

    using(server.record(), work)


def test_a_lost_connection_is_told_and_the_next_open_has_a_new_one(server: Server) -> None:
    async def work(target: SshTarget) -> Any:
        await target.put(server.identity.with_suffix(".pub"), "file")
        running = await target.start("null", FOREVER, 60)
        pid = int((await running.ready(10))["pid"])
        await running.go()
        server.kill_connections()
        with pytest.raises(TargetError, match="connection was lost"):
            await running.result(60)
        assert running.ended()
        assert gone(pid), "the probe outlived its connection"
        with pytest.raises(TargetError, match="connection was lost"):
            await one_trial(target)
        await target.open()
        return await one_trial(target)

    assert using(server.record(), work).failure is None
    assert left_in(server.home) == ["probe"]


def test_one_connection_serves_every_verb_and_the_probe_goes_there_once(server: Server) -> None:
    async def work(target: SshTarget) -> float:
        for _ in range(5):
            assert (await one_trial(target)).failure is None
        await target.open()
        (probe,) = (server.home / ".cache" / "nephoscope").glob("probe-*")
        return probe.stat().st_mtime

    first = using(server.record(), work)
    assert server.log().count("Accepted publickey") == 1
    assert using(server.record(), work) == first
    assert left_in(server.home) == ["probe"]


def test_after_sigkill_on_our_side_nothing_of_ours_is_left_there(server: Server) -> None:
    script = (
        "import asyncio, pathlib, sys\n"
        "from nephoscope.measure.targets.kinds.ssh import SshRecord\n"
        "async def work():\n"
        "    target = SshRecord.model_validate_json(sys.argv[1]).make()\n"
        "    await target.open()\n"
        "    await target.put(pathlib.Path(sys.argv[2]), 'file')\n"
        f"    running = await target.start('null', {FOREVER!r}, 60)\n"
        "    print((await running.ready(10))['pid'], flush=True)\n"
        "    await running.go()\n"
        "    await running.result(60)\n"
        "asyncio.run(work())\n"
    )
    ours = subprocess.Popen(
        [
            *(sys.executable, "-c", script, server.record().model_dump_json()),
            str(server.host_key.with_suffix(".pub")),
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert ours.stdout is not None
        pid = int(ours.stdout.readline())
        assert alive(pid)
        assert left_in(server.home) == ["probe", "work"]
    finally:
        ours.kill()
        ours.wait()
        ours.stdout.close()
    assert gone(pid)
    end = time.monotonic() + 120
    while left_in(server.home) != ["probe"] and time.monotonic() < end:
        time.sleep(0.02)
    assert left_in(server.home) == ["probe"]
    while children(server.pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert children(server.pid) == []


def test_a_full_far_disk_is_told_and_holds_no_half_file(tmp_path: Path, root_only: None) -> None:
    """The far home is a file system smaller than the probe, in a mount namespace of the test's."""
    home = tmp_path / "sshd" / "home"
    mount = f'mount -t tmpfs -o size=512k,mode=0755 tmpfs "{home}" && exec "$@"'
    before = ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount, "sh"]
    with serving(tmp_path / "sshd", before=before) as server:
        words = refusal(server.record())
        assert "No space left on device" in words
        inside = Path(f"/proc/{server.pid}/root{home}")
        assert inside.stat().st_dev != home.stat().st_dev, "the test's own premise"
        assert list((inside / ".cache" / "nephoscope").iterdir()) == []


def test_a_home_where_nothing_may_run_is_passed_over(tmp_path: Path, root_only: None) -> None:
    folder, instead = tmp_path / "sshd", Path(f"/tmp/nephoscope-{os.geteuid()}")
    mount = f'mount -t tmpfs -o size=64m,noexec tmpfs "{folder / "home"}" && exec "$@"'
    before = ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount, "sh"]
    was_there = instead.exists()
    try:
        with serving(folder, before=before) as server:

            async def where(target: SshTarget) -> str:
                assert (await one_trial(target)).failure is None
                return await target._channel.probe()

            assert Path(using(server.record(), where)).parent == instead
    finally:
        if not was_there:
            shutil.rmtree(instead, ignore_errors=True)


def test_the_probe_that_was_changed_there_is_not_run(server: Server) -> None:
    using(server.record(), one_trial)
    (probe,) = (server.home / ".cache" / "nephoscope").glob("probe-*")
    probe.write_text("#!/bin/sh\necho I am no probe\n")
    assert using(server.record(), one_trial).failure is None


def fingerprint(key: Path, prefix: str = "") -> str:
    told = subprocess.run(
        ["ssh-keygen", "-l", "-f", f"{key}.pub"], check=True, capture_output=True, text=True
    )
    return prefix + told.stdout.split()[1]


@pytest.mark.parametrize(
    ("own", "others", "address"),
    [("r/east", "r/east", "10.0.0.4"), ("r/east", "r/west", "192.0.2.9"), ("", "", "192.0.2.9")],
)
def test_hosts_of_one_inner_network_meet_at_their_own_addresses(
    own: str, others: str, address: str
) -> None:
    server, client = (
        SshTarget(name, SshRoute(Hop("192.0.2.9")), inner_network=network)
        for name, network in (("s", own), ("c", others))
    )
    connection: Any = SimpleNamespace(get_extra_info=lambda what: ("192.0.2.9", 22))
    server._ssh._reached = cast(Any, SimpleNamespace(connection=connection, through=()))
    server._ssh.own_address = "10.0.0.4"
    endpoint = server.endpoint(client)
    assert (endpoint.bind, endpoint.address) == ("10.0.0.4", address)
    # A connection that has ended has no far side any more.
    connection.get_extra_info = lambda what: None
    with pytest.raises(TargetError):
        server.endpoint(client)
