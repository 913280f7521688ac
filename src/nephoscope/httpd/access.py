"""Who may use the dashboard: a token, sessions of browsers that showed it, limits on guessing."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable

COOKIE = "nephoscope_session"
SESSION_S = 12 * 3600
MAX_SESSIONS = 1000
WINDOW_S = 60.0
FAILURES_PER_CLIENT = 5
"""Wrong tokens of one address within `WINDOW_S`, after which it has to wait."""
FAILURES = 50
"""The same of all addresses: an attacker may have many."""
MAX_CLIENTS = 10_000


class TooManyFailures(Exception):
    """Wrong tokens came too often. wait_s: until the next one is looked at."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"wait {wait_s:.0f} s")
        self.wait_s = wait_s


class Access:
    """Compares tokens in constant time, remembers sessions in memory, counts failures.

    renewed: returns the token that replaces the present one, None while it is still valid.
    """

    def __init__(
        self,
        token: str | None,
        now: Callable[[], float] = time.monotonic,
        renewed: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._token = None if token is None else token.encode()
        self._now = now
        self._renewed = renewed
        self._sessions: OrderedDict[str, float] = OrderedDict()
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    @property
    def needs_token(self) -> bool:
        """States whether requests need a token or a session."""
        return self._token is not None

    def is_session(self, value: str) -> bool:
        """States whether a cookie's value is a session that has not expired."""
        self._renew()
        expires = self._sessions.get(value)
        return expires is not None and self._now() < expires

    def open_session(self) -> str:
        """Returns the cookie's value of a new session; the oldest makes room for it."""
        while len(self._sessions) >= MAX_SESSIONS:
            self._sessions.popitem(last=False)
        value = secrets.token_urlsafe(32)
        self._sessions[value] = self._now() + SESSION_S
        return value

    def close_session(self, value: str) -> None:
        """Ends a session."""
        self._sessions.pop(value, None)

    def is_token(self, text: str, client: str) -> bool:
        """States whether a text is the token; raises TooManyFailures without looking at it."""
        if self._token is None:
            return True
        self._renew()
        now = self._now()
        self._refuse_guesses(client, now)
        if hmac.compare_digest(text.encode("utf-8", "replace"), self._token):
            return True
        self._failures.setdefault(client, deque(maxlen=FAILURES_PER_CLIENT)).append(now)
        self._failures.move_to_end(client)
        while len(self._failures) > MAX_CLIENTS:
            self._failures.popitem(last=False)
        return False

    def _renew(self) -> None:
        """Takes a new token; whoever logged in with the former one has to log in again."""
        if self._token is not None and (token := self._renewed()) is not None:
            self._token = token.encode()
            self._sessions.clear()
            self._failures.clear()

    def _refuse_guesses(self, client: str, now: float) -> None:
        for name in [name for name, times in self._failures.items() if now - times[-1] > WINDOW_S]:
            del self._failures[name]
        times = self._failures.get(client)
        if times and len(times) == FAILURES_PER_CLIENT and now - times[0] < WINDOW_S:
            raise TooManyFailures(WINDOW_S - (now - times[0]))
        if sum(map(len, self._failures.values())) >= FAILURES:
            raise TooManyFailures(WINDOW_S)
