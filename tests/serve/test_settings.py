"""Where a server listens, and which token it has."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.serve.made import settings

from nephoscope.core.errors import UsageError
from nephoscope.httpd.settings import (
    TOKEN_VARIABLE,
    RenewedToken,
    checked_address,
    checked_host_names,
    token_of,
)
from nephoscope.store import Store


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)


def test_a_token_is_generated_once_and_is_the_owners(tmp_path: Path) -> None:
    token, path = token_of(None, Store(tmp_path / "store"))
    assert path == tmp_path / "store" / "serve-token"
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(token) >= 40
    assert token_of(None, Store(tmp_path / "store")) == (token, path)
    assert token_of(tmp_path / "another", Store(tmp_path / "store"))[0] != token


def test_a_token_of_the_environment_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "from-the-environment")
    assert token_of(None, Store(tmp_path)) == ("from-the-environment", None)
    assert not (tmp_path / "serve-token").exists()


@pytest.mark.parametrize("text", ["short", "with a blank in it!", "", "ä" * 20])
def test_what_is_no_token_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(UsageError, match="holds no token"):
        token_of(file, Store(tmp_path))


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdefgh")
    file.chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        token_of(file, Store(tmp_path))


def test_hosts_are_the_own_names_only(tmp_path: Path) -> None:
    local = settings(tmp_path).allowed_hosts
    assert local == {"127.0.0.1", "localhost", "[::1]"}
    everywhere = settings(tmp_path, address="::", host_names=("Bench.example",)).allowed_hosts
    assert everywhere == {"[::]", "bench.example", "127.0.0.1", "localhost", "[::1]"}
    assert settings(tmp_path, address="192.0.2.1").allowed_hosts == {"192.0.2.1"}


def test_addresses_and_names_are_checked() -> None:
    assert checked_address("localhost") == "127.0.0.1"
    assert checked_address("::1") == "::1"
    for text in ("", "example.org", "1.2.3", "0x7f000001"):
        with pytest.raises(UsageError, match="no IP address"):
            checked_address(text)
    for text in ("", "a/b", "a:80", "http://a", "-a"):
        with pytest.raises(UsageError, match="no name of a host"):
            checked_host_names((text,))


def test_a_file_that_is_replaced_has_a_new_token_once(tmp_path: Path) -> None:
    token, path = token_of(tmp_path / "token", Store(tmp_path))
    assert path is not None
    renewed = RenewedToken(path)
    assert renewed() is None

    def replace(text: str, mode: int = 0o600) -> None:
        new = tmp_path / "new"
        new.write_text(text)
        new.chmod(mode)
        new.rename(path)

    replace("a-token-of-sixteen")
    assert renewed() == "a-token-of-sixteen"
    assert renewed() is None
    for text, mode in (("short", 0o600), ("a-token-that-others-can-read", 0o644)):
        replace(text, mode)
        assert renewed() is None
    path.unlink()
    assert renewed() is None
    replace(token)
    assert renewed() == token
    assert RenewedToken(None)() is None
