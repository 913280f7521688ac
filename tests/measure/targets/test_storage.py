"""Which program measures a store, and which credentials it is given."""

from __future__ import annotations

import pytest

from nephoscope.core.errors import Lacking
from nephoscope.core.programs import PROBE, STORAGE, find_storage
from nephoscope.measure.targets.probe import storage


def test_only_services_need_the_program_with_their_libraries() -> None:
    assert storage.program("storage.transfer", {}) == PROBE
    assert storage.program("storage.transfer", {"service": "local"}) == PROBE
    assert storage.program("storage.transfer", {"service": "s3"}) == STORAGE
    assert storage.program("disk.io", {"service": "s3"}) == PROBE


def test_a_service_is_given_its_own_credentials_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for names in storage.CREDENTIALS.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "")
    monkeypatch.setenv("WEBDAV_PASSWORD", "password")
    give = storage.credentials
    assert give("storage.transfer", {"service": "s3"}) == {"AWS_ACCESS_KEY_ID": "id"}
    assert give("storage.transfer", {"service": "webdav"}) == {"WEBDAV_PASSWORD": "password"}
    assert give("storage.transfer", {"service": "sftp"}) == {}
    assert give("storage.transfer", {}) is None
    assert give("disk.io", {}) is None


def test_without_the_program_a_sentence_names_the_command_that_builds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NEPHOSCOPE_STORAGE", raising=False)
    with pytest.raises(Lacking) as caught:
        find_storage("sparc64")
    assert caught.value.message.startswith("There is no nephoscope-storage for sparc64")
    assert caught.value.hint == "Build it in the source tree: `make storage`."
