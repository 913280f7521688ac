"""Kind `service`: what somebody else runs and a machine of the plan uses, measured from there."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import ConfigDict, Field, model_validator

from nephoscope.catalog import BenchmarkSpec
from nephoscope.core.reading.fields import NAME
from nephoscope.measure.targets.kinds.record import (
    LOOPBACK,
    ROUTED,
    SideEffect,
    TargetRecord,
    Traits,
    as_name,
)

if TYPE_CHECKING:
    from nephoscope.measure.targets.probe.target import Target

Product = Literal[
    "balancer",
    "object store",
    "block device",
    "queue",
    "database",
    "key-value store",
    "CDN",
    "platform",
]

PORTS: dict[str, int | None] = {
    "http": 80,
    "https": 443,
    "redis": 6379,
    "memcached": 11211,
    "tcp": None,
    "file": None,
}
"""Scheme of a service's URL -> its port where the URL has none."""

_Price = Annotated[float, Field(ge=0)]
_Rate = Annotated[float, Field(gt=0)]


class ServiceRecord(TargetRecord):
    """A service of a provider; no program can be started on it.

    A target that is named as `client` runs the benchmark, and the results are of the service.
    """

    model_config = ConfigDict(title="ServiceTarget")

    form: ClassVar[str] = "service:URL"

    kind: Literal["service"] = Field(default="service", description="How it is reached.")
    # The results are of the service wherever an entry names a client and no `on`.
    roles: tuple[Annotated[str, Field(pattern=NAME)], ...] = Field(
        default=("server",), description="As of other targets."
    )
    provider: str = Field(default="", max_length=200, description="Who runs it.")
    product: Product = Field(default="platform", description="What it is.")
    region: str = Field(default="", max_length=200, description="Region, by the provider's name.")
    url: str = Field(
        default="",
        max_length=2000,
        description="Its address: http://, https://, redis://, memcached:// or tcp:// with a host; "
        "of a block device file:///DIRECTORY, where the client has mounted it. Required.",
    )
    bucket: str = Field(default="", max_length=200, description="Bucket of an object store.")
    authorised_hosts: tuple[Annotated[str, Field(min_length=1, max_length=255)], ...] = Field(
        default=(),
        description="The host of `url`, written once more, if you may put it under load; required "
        "unless it is on the client's loopback.",
    )
    per_request: _Price | None = Field(
        default=None, description="What a request costs, in the currency of `money`."
    )
    per_gib: _Price | None = Field(
        default=None, description="What a GiB of transfer costs, in the currency of `money`."
    )
    requests_per_s: _Rate | None = Field(
        default=None,
        description="Highest rate for which requests are priced where the benchmark sets none.",
    )
    gib_per_s: _Rate | None = Field(
        default=None,
        description="Highest rate for which transfer is priced where the benchmark sets none.",
    )

    @model_validator(mode="after")
    def _has_url(self) -> Self:
        if not self.url:
            raise ValueError(
                f"'{self.name}' is of kind service and has no URL. Add `url:`, e.g. "
                "https://front.example/"
            )
        return self

    @model_validator(mode="after")
    def _url_is_clear(self) -> Self:
        if not self.url:
            return self
        problem = _problem_of(self.url)
        if problem:
            raise ValueError(f"the URL of '{self.name}' {problem}")
        if (self.parts.scheme == "file") != (self.product == "block device"):
            raise ValueError(
                f"'{self.name}' is a {self.product} at {self.url!a}: a block device, and nothing "
                "else, is at file:///DIRECTORY. Change `product` or `url`"
            )
        return self

    @property
    def parts(self) -> SplitResult:
        """The URL in its parts."""
        return urlsplit(self.url)

    @property
    def host(self) -> str:
        """The host of the URL; empty for a directory."""
        return self.parts.hostname or ""

    @property
    def port(self) -> int | None:
        """The port of the URL, else that of its scheme."""
        return self.parts.port or PORTS[self.parts.scheme]

    @classmethod
    def from_text(cls, rest: str) -> Self | None:
        """See `TargetRecord.from_text`."""
        if not rest or _problem_of(rest):
            return None
        is_directory = urlsplit(rest).scheme == "file"
        name = as_name(urlsplit(rest).hostname or "volume")
        return cls(name=name, url=rest, product="block device" if is_directory else "platform")

    def traits(self) -> Traits:
        """See `TargetRecord.traits`."""
        where = self.parts.netloc or f"{self.name}{self.parts.path}"
        return Traits(
            machine=f"service:{where}",
            place=f"service:{self.url}",
            listens_on=LOOPBACK if _is_loopback(self.host) else ROUTED,
            sends_to=frozenset(),
            is_service=True,
        )

    @property
    def is_priced(self) -> bool:
        """See `TargetRecord.is_priced`."""
        return any(price is not None for price in (self.per_hour, self.per_request, self.per_gib))

    @property
    def costs(self) -> bool:
        """See `TargetRecord.costs`."""
        return bool(self.per_hour or self.per_request or self.per_gib)

    def make(self) -> Target:
        """See `TargetRecord.make`."""
        from nephoscope.measure.targets.service import ServiceTarget

        about = {"provider": self.provider, "product": self.product, "region": self.region}
        return ServiceTarget(self.name, {**about, "url": self.url})

    def side_effects(self, lab: str) -> Iterator[SideEffect]:
        """See `TargetRecord.side_effects`."""
        provider = f" of {self.provider}" if self.provider else ""
        yield SideEffect(
            f"{self.product}{provider}", self.url, f"target {self.name}: gets the client's requests"
        )

    def unanswered(self, spec: BenchmarkSpec) -> tuple[str, str] | None:
        """See `TargetRecord.unanswered`: nothing can be started on a service."""
        return (
            f"'{self.name}' is a service, so {spec.id} cannot be started on it.",
            "Name the machine that runs it: `client: NAME`, with the service in `on`.",
        )

    def may_be_loaded(self, further: tuple[str, ...] = ()) -> bool:
        """Returns whether its host is on the client's loopback or one that the user owns.

        The rule is that of the probe: a loopback address, or a host that is named as one's own.
        """
        named = {_normal(host) for host in (*self.authorised_hosts, *further)}
        return not self.host or _is_loopback(self.host) or _normal(self.host) in named


def _problem_of(url: str) -> str:
    """Returns what is wrong with a service's URL, as the end of a sentence; empty for nothing."""
    try:
        parts = urlsplit(url)
        has_port = parts.port is not None
    except ValueError:
        return f"is not valid: {url!a}"
    if parts.scheme not in PORTS:
        known = ", ".join(f"{scheme}://" for scheme in PORTS)
        return f"is {url!a}, which begins with none of {known}"
    if parts.username or parts.password:
        return "has a login in it, which would be stored with the run. Leave it out"
    if parts.scheme == "file":
        is_good = not parts.netloc and len(parts.path) > 1
        return "" if is_good else f"is {url!a}. Write file:///DIRECTORY with an absolute path"
    if not parts.hostname:
        return f"is {url!a}, without a host"
    if parts.scheme == "tcp" and not has_port:
        return f"is {url!a}, without a port. Write tcp://HOST:PORT"
    return ""


def _normal(host: str) -> str:
    return host.removesuffix(".").lower()


def _is_loopback(host: str) -> bool:
    name = _normal(host)
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
