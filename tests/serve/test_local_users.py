"""A connection over loopback belongs to the user of its socket."""

from __future__ import annotations

import os
import socket

import pytest
from tests.hardware import Feature, lacking

from nephoscope.httpd.local_users import user_of


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_the_user_of_a_connection_is_found(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as listener:
        try:
            listener.bind((address, 0))
        except OSError:
            lacking(Feature.IPV6)
        listener.listen()
        with socket.create_connection(listener.getsockname()[:2]) as client:
            assert user_of(*client.getsockname()[:2]) == str(os.getuid())
        assert user_of(address, 1) == ""
