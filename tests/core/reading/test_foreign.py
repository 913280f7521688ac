"""A file of another kind is named in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nephoscope import command_line
from nephoscope.core.errors import PlanError
from nephoscope.core.reading import foreign, textfile, yamltext
from nephoscope.core.reading.fields import Record

INVENTORY = "all:\n  hosts:\n    web1: {ansible_host: 192.0.2.10}\n"
SAVED = (
    '<?xml version="1.0"?>\n<java class="java.beans.XMLDecoder">\n'
    ' <object class="com.example.cloudanalyst.Root"/>\n</java>\n'
)


class Thing(Record):
    name: str
    size: int = 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (INVENTORY, "this is an Ansible inventory, not a thing"),
        ("- hosts: all\n  tasks: []\n", "this is an Ansible playbook, not a thing"),
        ("services: {web: {image: nginx}}\n", "this is a Docker Compose file, not a thing"),
        ("apiVersion: v1\nkind: Pod\n", "this is a Kubernetes object, not a thing"),
        (SAVED, "this is a saved simulation of CloudAnalyst, not a thing"),
        ("<?xml version='1.0'?><a/>", "this is an XML file, not a thing"),
        ("<!DOCTYPE html><p>", "this is a page in HTML, not a thing"),
        ("alpha: 1\nbeta: 2\n", "this is no thing: it has none of its keys, but 'alpha', 'beta'"),
        ("[1, 2]", "a thing is a mapping of keys, not a list"),
        ("", "the thing is empty"),
        ("name: a\n---\nname: b\n", "there are several YAML documents"),
    ],
)
def test_one_sentence(text: str, expected: str) -> None:
    with pytest.raises(PlanError) as caught:
        foreign.mapping_in(text, "f.yaml", "thing", Thing)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["name: a\nother: 1\n", "nmae: a\n", "{}"])
def test_a_file_with_a_key_of_its_kind_is_one(text: str) -> None:
    assert foreign.mapping_in(text, "f.yaml", "thing", Thing) == yamltext.parse(text, "f.yaml")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\xac\xed\x00\x05sr", "a file of serialised Java objects"),
        (b"PK\x03\x04\xff", "a ZIP archive"),
        (b"\x1f\x8b\x08\xff", "a file that gzip compressed"),
    ],
)
def test_files_that_are_no_text(raw: bytes, expected: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(raw)
    with pytest.raises(PlanError, match=f"this is {expected}.*, not a scenario"):
        textfile.read(tmp_path / "f", "scenario")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["run", "FILE", "--dry-run"], INVENTORY),
        (["simulate", "geo", "FILE"], SAVED),
        (["cost", "prices", "--book", "FILE"], INVENTORY),
        (["cost", "work", "FILE"], INVENTORY),
        (["sla", "verdict", "FILE", "e.csv"], INVENTORY),
        (["cost", "prices", "--book", "FILE"], json.dumps({"a": 1, "b": 2})),
    ],
)
def test_commands_name_the_other_format(
    words: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(text)
    assert command_line.main([str(file) if word == "FILE" else word for word in words]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert "this is " in line
    assert captured.out == ""
