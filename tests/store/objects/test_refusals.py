"""What a store on object storage cannot do is one sentence with the next step, and no secret."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.e2e.conftest import Done, run_inside

from nephoscope.store.objects import opening

from .conftest import ADDRESS
from .s3_double import S3Double

IMPORTED = str(ROOT / "tests" / "golden" / "imports" / "hyperfine.json")


@pytest.fixture(autouse=True)
def _machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "machine"))
    monkeypatch.setenv("HOME", str(tmp_path))
    opening.mirror_of.cache_clear()


def sentence(done: Done) -> str:
    """The only sentence that was printed."""
    assert done.code, done
    lines = [line for line in done.err.splitlines() if line]
    assert len(lines) == 1, done.err
    assert lines[0].startswith("nephoscope: ")
    assert "secret-of-the-test" not in done.err + done.out
    assert "key-of-the-test" not in done.err + done.out
    return " ".join(lines).removeprefix("nephoscope: ")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("ftp://host/x", "--store: 'ftp://' is no place of a store."),
        ("s3://key:secret@bucket/x", "--store: The address of a store holds no credentials."),
        ("s3:///x", "--store: '' is no name of a bucket."),
        ("s3://Bucket_/x", "--store: 'Bucket_' is no name of a bucket."),
        ("s3://lab/../x", "--store: '../x' is no prefix of a store."),
        ("s3://lab/x?region=a", "--store: The address of a store has no option 'region'."),
        ("s3://lab/x?endpoint=minio", "--store: 'minio' is no endpoint."),
        ("s3://lab/x?endpoint=http://a:b@minio", "--store: An endpoint holds no credentials."),
    ],
)
def test_addresses_that_are_none(address: str, said: str) -> None:
    done = run_inside(["runs", "--store", address])
    assert done.code == 2
    assert sentence(done).startswith(said)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("NoSuchBucket", "There is no bucket 'lab' at http://127.0.0.1:"),
        ("AccessDenied", "s3://lab/runs cannot be read: permission is denied (AccessDenied)."),
        ("InvalidAccessKeyId", "the credentials are refused (InvalidAccessKeyId)."),
        ("SignatureDoesNotMatch", "the credentials are refused (SignatureDoesNotMatch)."),
        ("RequestTimeTooSkewed", "the clock of this machine differs from that of the service."),
    ],
)
def test_services_that_refuse(fault: str, said: str, s3: S3Double) -> None:
    s3.fault = fault
    assert said in sentence(run_inside(["runs", "--store", ADDRESS]))


def test_a_bucket_that_can_only_be_read(s3: S3Double) -> None:
    assert run_inside(["import", IMPORTED, "--store", ADDRESS]).code == 0
    s3.fault = "read-only"
    assert run_inside(["runs", "--ids", "--store", ADDRESS]).code == 0
    assert run_inside(["show", "--json", "--store", ADDRESS]).code == 0
    done = run_inside(["runs", "label", "latest", "a=b", "--store", ADDRESS])
    assert "s3://lab/runs cannot be written: permission is denied" in sentence(done)
    s3.fault = ""
    opening.mirror_of.cache_clear()  # as a process of its own
    assert "was published" in run_inside(["runs", "--store", ADDRESS]).err


def test_a_service_that_ignores_conditions(s3: S3Double) -> None:
    s3.fault = "ignores-conditions"
    done = run_inside(["import", IMPORTED, "--store", ADDRESS])
    assert sentence(done).startswith(
        "s3://lab/runs ignores the condition If-None-Match of a write, so that two writers would"
    )
    assert not [key for key in s3.objects if key.startswith("runs/runs/")]


def test_an_endpoint_where_nobody_listens(s3: S3Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    done = run_inside(["runs", "--store", f"{ADDRESS}?endpoint=http://127.0.0.1:9"])
    assert "cannot be read: http://127.0.0.1:9 does not answer." in sentence(done)


def test_an_emulator_of_google_needs_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """None are looked for, not even with the service that gives a machine its role."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "127.0.0.1:9")
    done = run_inside(["runs", "--store", "gs://lab/runs"])
    assert "gs://lab/runs cannot be read: http://127.0.0.1:9 does not answer." in sentence(done)


def test_a_service_that_does_not_answer(s3: S3Double, monkeypatch: pytest.MonkeyPatch) -> None:
    from nephoscope.store.objects import services

    monkeypatch.setattr(services, "ANSWER_S", 0.2)
    monkeypatch.setattr(services, "GIVE_UP_S", 0.5)
    s3.fault = "silent"
    assert "does not answer." in sentence(run_inside(["runs", "--store", ADDRESS]))


def test_no_credentials(s3: S3Double, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    said = sentence(run_inside(["runs", "--store", ADDRESS]))
    assert said.startswith("s3://lab/runs cannot be read: there are no credentials.")
    assert "AWS_PROFILE" in said


def test_keys_of_a_profile(s3: S3Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_PROFILE", "team")
    (tmp_path / ".aws").mkdir()
    text = "[team]\naws_access_key_id = a\naws_secret_access_key = b\n"
    (tmp_path / ".aws" / "credentials").write_text(text)
    assert run_inside(["runs", "--store", ADDRESS]).code == 0


def test_without_the_library(s3: S3Double, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "nephoscope.store.objects.services", raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    done = run_inside(["runs", "--store", ADDRESS])
    assert done.code == 4
    assert sentence(done) == (
        "A store at s3:// needs the Python library obstore. "
        "Install it with `pip install 'nephoscope[objects]'`."
    )


def test_no_object_holds_a_credential(s3: S3Double, tmp_path: Path) -> None:
    run_inside(["import", IMPORTED, "--store", ADDRESS])
    files = [path.read_bytes() for path in (tmp_path / "machine").rglob("*") if path.is_file()]
    for content in (*s3.objects.values(), *files):
        assert b"secret-of-the-test" not in content
    assert len(files) > 3


def test_a_mirror_that_was_removed_is_made_again(s3: S3Double, tmp_path: Path) -> None:
    run_inside(["import", IMPORTED, "--store", ADDRESS])
    before = run_inside(["runs", "--ids", "--store", ADDRESS])
    shutil.rmtree(tmp_path / "machine")
    opening.mirror_of.cache_clear()
    assert run_inside(["runs", "--ids", "--store", ADDRESS]) == before
