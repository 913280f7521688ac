"""Tokens, sessions and the limit on guesses."""

from __future__ import annotations

import pytest

from nephoscope.httpd import access
from nephoscope.httpd.access import Access, TooManyFailures

TOKEN = "0123456789abcdef"


class Clock:
    """A clock that the test sets."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_the_token_passes_and_others_do_not() -> None:
    door = Access(TOKEN)
    assert door.is_token(TOKEN, "a")
    assert not door.is_token(TOKEN[:-1], "a")
    assert not door.is_token("", "a")
    assert not door.is_token("\udcff" + TOKEN, "a")


def test_after_five_wrong_tokens_the_right_one_waits_too() -> None:
    clock = Clock()
    door = Access(TOKEN, clock)
    for _ in range(access.FAILURES_PER_CLIENT):
        assert not door.is_token("wrong", "a")
    with pytest.raises(TooManyFailures) as caught:
        door.is_token(TOKEN, "a")
    assert 0 < caught.value.wait_s <= access.WINDOW_S
    assert door.is_token(TOKEN, "b"), "another address is not concerned"
    clock.now_s += access.WINDOW_S + 1
    assert door.is_token(TOKEN, "a")


def test_guesses_from_many_addresses_are_limited_together() -> None:
    door = Access(TOKEN, Clock())
    for number in range(access.FAILURES):
        door.is_token("wrong", str(number))
    with pytest.raises(TooManyFailures):
        door.is_token("wrong", "a new address")


def test_sessions_end_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    door = Access(TOKEN, clock)
    session = door.open_session()
    assert door.is_session(session)
    assert not door.is_session("")
    assert not door.is_session(session[:-1])
    clock.now_s += access.SESSION_S
    assert not door.is_session(session)
    monkeypatch.setattr(access, "MAX_SESSIONS", 3)
    sessions = [door.open_session() for _ in range(5)]
    assert [door.is_session(one) for one in sessions] == [False, False, True, True, True]
    door.close_session(sessions[-1])
    assert not door.is_session(sessions[-1])


def test_a_renewed_token_ends_the_former_one_and_its_sessions() -> None:
    tokens: list[str | None] = [None]
    door = Access(TOKEN, Clock(), renewed=lambda: tokens[0])
    session = door.open_session()
    for _ in range(access.FAILURES_PER_CLIENT):
        door.is_token("wrong", "a")
    assert door.is_session(session)
    tokens[0] = TOKEN[::-1]
    assert not door.is_session(session)
    assert not door.is_token(TOKEN, "a")
    tokens[0] = None
    assert door.is_token(TOKEN[::-1], "a")
    assert not Access(None, renewed=lambda: TOKEN).needs_token
