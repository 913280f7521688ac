"""Words of errors as users read them."""

from __future__ import annotations

import errno
import socket

import pytest

from nephoscope.core.errors import words_of


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('::1', 22)"),
            "Connection refused",
        ),
        (
            OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 113] x"),
            "Connection refused",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "/etc/key"),
            "/etc/key: Permission denied",
        ),
        (socket.gaierror(-2, "Name or service not known"), "[Errno -2] Name or service not known"),
        (ValueError("no key"), "no key"),
        (EOFError(), "EOFError"),
    ],
)
def test_an_error_of_the_system_has_words_and_no_number(error: Exception, words: str) -> None:
    assert words_of(error) == words
