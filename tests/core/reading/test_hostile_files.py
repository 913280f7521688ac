"""Files that are meant to hurt: each is refused in one sentence, at once and with little memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nephoscope.core.errors import NephoscopeError, PlanError, StoreError, UsageError
from nephoscope.core.reading import jsontext, textfile, yamltext
from nephoscope.measure import plans
from nephoscope.store import Store
from nephoscope.store.imports.importing import import_files

PLAN = "name: x\nbenchmarks: [{benchmark: 'null'}]\n"


def nested(inner: str) -> str:
    """Ten lists (or mappings), each with ten aliases of the one before: 10^10 values."""
    lines = ["a0: &a0 {k: 1}"]
    for level in range(1, 10):
        aliases = ",".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} " + inner.replace("@", aliases))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (nested("[@]"), "more than 250,000 values"),
        (nested("{<<: [@]}"), "more than 250,000 values"),
        ("- a\n" * 260_000, "more than 250,000 values"),
        ("&a [*a]", "no anchor before it, or is inside it"),
        ("a: " + "[" * 5000, "deeper than 50 levels"),
        ("a: !!int ''", "does not fit its tag !!int"),
        ("a: !!float x", "does not fit its tag !!float"),
        ("a: !!bool [1]", "does not fit its tag !!bool"),
        ("a: !!map x", "does not fit its tag !!map"),
        ("a: !!timestamp ''", "only the tags"),
        ("a: !!python/object:os.system x", "only the tags"),
        ("a: 1e999", "too large"),
        ("a: " + "9" * 5000, "more than 30 digits"),
        ('a: "\\ud800"', "invalid Unicode"),
        ("? [a]\n: b", "unhashable key"),
    ],
)
def test_yaml_is_bounded(text: str, words: str) -> None:
    with pytest.raises(PlanError, match=words) as error:
        yamltext.parse(text, "f.yaml")
    assert str(error.value).startswith("f.yaml:")


def test_honest_aliases_merge_keys_and_tags_are_read() -> None:
    text = "base: &b {x: 1}\nown: {<<: *b, y: !!str 2}\nlist: [*b, *b]"
    assert yamltext.parse(text, "f")["own"] == {"x": 1, "y": "2"}


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a": NaN}', '{"a": 1e999}', '"\\ud800"', b'"\xed\xa0\x80"', "{"]
)
def test_json_is_refused_as_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        jsontext.parse(text)


def test_json_with_a_whole_surrogate_pair_is_read() -> None:
    assert jsontext.parse('{"a": ["\\ud83d\\ude00", 1.5]}') == {"a": ["\U0001f600", 1.5]}


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("kind", ["pipe", "device", "loop"])
@pytest.mark.parametrize("text", ["include: [@]\n" + PLAN, PLAN + "lab: '@'\n"])
def test_a_plan_names_regular_files_only(tmp_path: Path, pipe: Path, kind: str, text: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    file = {"pipe": pipe, "device": Path("/dev/zero"), "loop": tmp_path / "loop"}[kind]
    (tmp_path / "plan.yaml").write_text(text.replace("@", str(file)))
    with pytest.raises(PlanError, match=r"cannot be read: (it is no regular file|Too many levels)"):
        plans.load(tmp_path / "plan.yaml")


def test_a_plan_may_come_through_a_pipe_that_somebody_writes(pipe: Path) -> None:
    with pytest.raises(PlanError, match="the plan is empty"):
        plans.load(pipe)
    reader, writer = os.pipe()
    os.write(writer, PLAN.encode())
    os.close(writer)
    try:
        assert plans.load(f"/dev/fd/{reader}").name == "x"
    finally:
        os.close(reader)


def test_samples_to_import_are_a_regular_file(pipe: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no regular file\. Check"):
        import_files([pipe], Store(tmp_path / "store"))


def test_lists_of_counts_are_regular_files(pipe: Path) -> None:
    with pytest.raises(UsageError, match="no regular file"):
        textfile.read(pipe, "list of counts", UsageError)


@pytest.mark.parametrize(
    "secret",
    [
        "root:s3cret:20228:0:99999:7:::\ndaemon:*:1:::::\n",
        "s3cret:\n  token: s3cret\n",
        "s3cret: 1\ns3cret: 2\n",
        "[default]\ns3cret = s3cret\n",
        "- &s3cret a\n- *s3cre\n",
        "s3cret\n",
    ],
)
@pytest.mark.parametrize("text", ["include: [secret]\n" + PLAN, PLAN + "lab: secret\n"])
def test_nothing_of_a_file_that_is_no_plan_is_quoted(
    tmp_path: Path, secret: str, text: str
) -> None:
    (tmp_path / "secret").write_text(secret)
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(NephoscopeError) as error:
        plans.load(tmp_path / "plan.yaml")
    assert "s3cre" not in str(error.value)
    assert "secret" in str(error.value), "the file is named"
