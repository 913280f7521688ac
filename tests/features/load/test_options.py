from __future__ import annotations

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.load.options import rate_of, sentence_of, with_ascii_host


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1000", 1000.0), ("1000/s", 1000.0), ("1.5k", 1500.0), ("2M/s", 2e6), ("60/min", 1.0)],
)
def test_rates_have_a_unit(text: str, rate: float) -> None:
    assert rate_of(text) == rate


@pytest.mark.parametrize("text", ["", "fast", "0", "-3", "nan", "inf", "10/day", "1e9", "k"])
def test_what_is_no_rate_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="is no rate"):
        rate_of(text)


def test_the_sentence_names_streams() -> None:
    params = {"connections": 1, "version": "2", "streams": 5}
    wanted = "closed loop, 1 connection of HTTP/2 with 5 streams; 10 trials of 1 s"
    assert sentence_of(params, 10, 1.0) == wanted


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("http://bücher.localhost:8080/ü?q=ß#x", "http://xn--bcher-kva.localhost:8080/ü?q=ß#x"),
        ("HTTP://BÜCHER.localhost", "HTTP://xn--bcher-kva.localhost"),
        ("http://me@bücher.localhost/", "http://me@xn--bcher-kva.localhost/"),
        ("http://例え.localhost?q=1", "http://xn--r8jz45g.localhost?q=1"),
        ("http://[::1]:80/ü", "http://[::1]:80/ü"),
        ("http://xn--bcher-kva.localhost/", "http://xn--bcher-kva.localhost/"),
    ],
)
def test_a_host_name_has_its_ascii_form(given: str, asked: str) -> None:
    assert with_ascii_host(given) == asked


@pytest.mark.parametrize("host", ["ü" * 64, "ü..example"])
def test_a_host_name_without_an_ascii_form_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match="is no host name"):
        with_ascii_host(f"http://{host}/")
