from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic import ValidationError

from nephoscope.core.errors import TargetError, UsageError
from nephoscope.measure.targets.kinds import parse, read
from nephoscope.measure.targets.kinds.ssh import SshRecord
from nephoscope.measure.targets.ssh.connection import reach
from nephoscope.measure.targets.ssh.route import Hop, SshRoute, parse_hop

READ = {
    "local": {},
    "ssh:web": {"name": "web", "kind": "ssh", "address": "web"},
    "ssh:Web.Example.org": {
        "name": "web-example-org",
        "kind": "ssh",
        "address": "Web.Example.org",
    },
    "ssh:me@10.0.0.2:2222": {
        "name": "10-0-0-2",
        "kind": "ssh",
        "address": "10.0.0.2",
        "user": "me",
        "port": 2222,
    },
    "ssh:me@[fe80::1%eth0]:22": {
        "name": "fe80-1-eth0",
        "kind": "ssh",
        "address": "fe80::1%eth0",
        "user": "me",
        "port": 22,
    },
    "lab:office/a": {"name": "a", "kind": "lab", "lab": "office", "host": "a"},
}


@pytest.mark.parametrize(("text", "values"), READ.items(), ids=READ)
def test_a_word_is_a_target(text: str, values: dict[str, object]) -> None:
    assert parse(text) == read(values)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "locals",
        "local:x",
        "ssh",
        "ssh:",
        "ssh:@web",
        "ssh:me@",
        "ssh:-oProxyCommand=x",
        "ssh:me@-x",
        "ssh:web:0",
        "ssh:web:65536",
        "ssh:web:",
        "ssh:web:22x",
        "ssh:web:٢٢",
        "ssh:[::1",
        "ssh:[::1]22",
        "ssh:a b",
        "lab:",
        "lab:office",
        "lab:office/",
        "lab:../a",
        "docker:web",
    ],
)
def test_what_is_no_target_is_told_with_the_forms(text: str) -> None:
    with pytest.raises(UsageError, match="is no target") as caught:
        parse(text)
    assert caught.value.exit_code == 2
    assert "ssh:[user@]host[:port]" in caught.value.hint


def test_an_odd_host_name_still_has_a_name() -> None:
    assert parse("ssh:...").name == "host"
    assert len(parse("ssh:" + "a" * 80).name) == 40


def test_a_record_says_the_way() -> None:
    record = SshRecord(name="far", address="web", port=2, user="me", jump=("a", "you@[::1]:3"))
    route = record.route()
    assert (route.to, route.jump) == (Hop("web", 2, "me"), (Hop("a"), Hop("::1", 3, "you")))
    assert parse_hop("a") == Hop("a")


@pytest.mark.parametrize(
    ("values", "words"),
    [({}, "has no address"), ({"address": "web", "jump": ("a:b",)}, "'a:b' is no jump host")],
)
def test_a_record_without_a_way_is_told(values: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        read({"name": "far", "kind": "ssh", **values})


REFUSED = [
    "a; touch x",
    "-oProxyCommand=x",
    "a b",
    "a\nb",
    "a\x1b[2J",
    "$(id)",
    "`id`",
    "a|b",
    "'a'",
]


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("key", ["address", "user", "jump"])
def test_names_that_a_command_would_obey_are_refused(key: str, text: str) -> None:
    values = {"name": "far", "kind": "ssh", "address": "web"}
    values[key] = [f"me@{text}"] if key == "jump" else text
    with pytest.raises(ValidationError, match=r"is no (name for ssh|jump host)") as error:
        read(values)
    assert "\x1b" not in str(error.value.errors()[0]["msg"])


@pytest.mark.parametrize("text", REFUSED)
def test_no_hop_has_such_a_name(text: str) -> None:
    assert parse_hop(text) is None
    with pytest.raises(UsageError):
        parse(f"ssh:{text}")
    with pytest.raises(ValueError, match="no name for ssh"):
        Hop("web", user=text)


@pytest.mark.parametrize("line", ["HostName a;touch", "HostName -oProxyCommand=x", "User $(id)"])
def test_an_alias_of_the_configuration_stands_for_a_plain_name(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(f"Host web\n  {line}\n  ProxyCommand nc %h %p\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(TargetError, match="no name for ssh"):
        asyncio.run(reach("far", SshRoute(Hop("web")), 1.0))
