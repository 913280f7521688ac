"""Hosts of inventories of Ansible, of outputs of OpenTofu and Pulumi, and of plain lists."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.measure.cloud.inventory import InventoryHost, hosts_of, read_hosts
from nephoscope.measure.targets import kinds

INI = """\
# what a team keeps
mail.example.com
[web]
web[01:03].example.com ansible_port=2222
db-[a:b] ansible_host=192.0.2.7 ansible_user="ops"
[edge]
edge1 ansible_ssh_common_args='-o ProxyJump=root@192.0.2.1:2200'
[all:vars]
ansible_user=deploy
[outer:children]
web
[outer:vars]
ansible_user=outer
nephoscope_zone=a
[web:vars]
nephoscope_zone=b
"""


def named(hosts: list[InventoryHost]) -> dict[str, InventoryHost]:
    return {one.name: one for one in hosts}


def test_an_inventory_in_ini_has_ranges_groups_and_inherited_variables() -> None:
    hosts = named(hosts_of(INI, "hosts"))
    assert list(hosts) == [
        *("mail.example.com", "web01.example.com", "web02.example.com", "web03.example.com"),
        *("db-a", "db-b", "edge1"),
    ]
    web = hosts["web02.example.com"]
    assert web.groups == {"all", "web", "outer"}
    assert web.target == {
        "kind": "ssh",
        "address": "web02.example.com",
        "port": 2222,
        "user": "outer",
    }
    assert (web.zone, hosts["mail.example.com"].target["user"]) == ("b", "deploy")
    assert hosts["db-a"].target["user"] == "ops"
    assert hosts["edge1"].target["jump"] == ["root@192.0.2.1:2200"]


NESTED = {"children": {"web": {"hosts": {"web1": {"ansible_host": "192.0.2.10"}}}}}
LISTED = {
    "_meta": {"hostvars": {"web1": {"ansible_host": "192.0.2.10", "ansible_user": "ops"}}},
    "all": {"children": ["ungrouped", "web"]},
    "web": {"hosts": ["web1"]},
}
TOFU = {
    "web": {"sensitive": False, "type": "string", "value": "192.0.2.10"},
    "bucket": {"sensitive": False, "type": "string", "value": "logs"},
    "password": {"sensitive": True, "type": "string", "value": "192.0.2.99"},
}
PULUMI = {"web": {"web1": {"publicIp": "192.0.2.10"}}, "url": "https://192.0.2.3/x", "n": 3}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"all": NESTED}),
        "all:\n  children:\n    web:\n      hosts:\n        web1: {ansible_host: 192.0.2.10}\n",
        json.dumps(LISTED),
        json.dumps(TOFU),
        json.dumps(PULUMI),
        json.dumps(["192.0.2.10"]),
        json.dumps([{"name": "web1", "public_ip": "192.0.2.10"}]),
        "192.0.2.10\n",
        "ops@192.0.2.10\n",
    ],
    ids=["json", "yaml", "list", "tofu", "pulumi", "addresses", "objects", "lines", "logins"],
)
def test_every_form_names_the_same_machine(text: str) -> None:
    (host,) = hosts_of(text, "hosts")
    assert host.key == "192.0.2.10:22"
    record: Any = kinds.read({**host.target, "name": "x"})
    assert record.address == "192.0.2.10"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("web1 ansible_host\n", "line 1: 'ansible_host' is no variable of a host"),
        ("web1 ansible_port=ssh\n", "'ssh' of web1 is no port"),
        ('web1 ansible_host="{{ ip }}"\n', "ansible_host of web1 is a template"),
        ("web1 x='\n", "line 1: a quotation mark is not closed"),
        ("[a:children]\nb\n[b:children]\na\n[a]\nhost1\n", "contain each other"),
        ('["bad address"]', "'bad address' is no address"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        hosts_of(text, "hosts")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_output_is_chosen_by_name_and_another_is_named() -> None:
    text = json.dumps({"web": ["192.0.2.10"], "names": ["db1"]})
    assert [one.name for one in hosts_of(text, "x")] == ["192.0.2.10"]
    assert [one.name for one in hosts_of(text, "x", "names")] == ["db1"]
    with pytest.raises(UsageError, match=r"has no output 'wbe'.*It has: web, names"):
        hosts_of(text, "x", "wbe")


def test_a_command_is_an_argument_list_and_no_shell_reads_it(tmp_path: Path) -> None:
    script = "import sys; print(sys.argv[1])"
    source = json.dumps([sys.executable, "-c", script, "192.0.2.4 # $(touch x)"])
    (host,) = read_hosts(source)
    assert host.target["address"] == "192.0.2.4"
    assert list(tmp_path.iterdir()) == []


def test_an_executable_inventory_is_asked_for_its_list(tmp_path: Path) -> None:
    program = tmp_path / "inventory"
    program.write_text(f"#!/bin/sh\n[ \"$1\" = --list ] && echo '{json.dumps(LISTED)}'\n")
    program.chmod(0o700)
    assert [one.target["user"] for one in read_hosts(str(program))] == ["ops"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "The list of existing hosts is missing."),
        ("[1]", "'[1]' is no argument list."),
        ("/nonexistent/hosts", "/nonexistent/hosts cannot be read: No such file"),
        ('["/nonexistent/x"]', "/nonexistent/x cannot be run"),
        ('["sh", "-c", "echo lost >&2; exit 3"]', "sh ended with exit code 3: lost."),
        ('["true"]', "the output of true names no host."),
    ],
)
def test_a_source_that_gives_nothing_says_why(source: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_hosts(source)
    assert words in str(caught.value)
