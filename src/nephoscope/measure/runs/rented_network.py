"""Networks of rented machines: which pairs lie in one, and what traffic between them costs.

Machines of one rental and region reach each other at their private addresses; some clouds bill what
goes from one zone to another. All others meet at their public addresses, which the firewalls have
to let in, and their traffic leaves a cloud or a region, which most clouds bill.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nephoscope import catalog
from nephoscope.catalog.instruments import NET_RTT, NET_THROUGHPUT
from nephoscope.core.errors import PlanError, UsageError
from nephoscope.core.model import Setting
from nephoscope.measure.cloud.model import Machine
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.cloud.spec import RentalSpec
from nephoscope.measure.plans import Plan, expand
from nephoscope.measure.provisioning import Quote
from nephoscope.measure.targets.kinds.rented import RentedRecord

FRAMES = 1.1
"""Bytes on the wire per byte of a benchmark: headers, receipts, and packets sent again."""

_PROBE_BYTES = 100
"""Of headers and token in each probe of a round trip, at most."""


@dataclass(frozen=True, slots=True)
class TrafficPrice:
    """Traffic of a run that leaves zones, regions and clouds and is billed: bytes and cost, at
    most."""

    sent_bytes: float
    cost: float
    currency: str = "USD"

    @property
    def quote(self) -> Quote | None:
        """As a part of the price of a rental; None where it costs nothing."""
        return Quote(0.0, self.currency, once=self.cost, machines=0) if self.cost else None


NO_TRAFFIC = TrafficPrice(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class RentedNetworks:
    """The networks of a plan's rented machines.

    networks: machine -> key of its network. across: client and server of each pair that shares
    none. between_zones: of each pair in one network whose zones are named and differ.
    """

    networks: Mapping[str, tuple[str, ...]]
    across: frozenset[tuple[str, str]]
    between_zones: frozenset[tuple[str, str]]
    settings: Sequence[Setting]

    @classmethod
    def of(cls, plan: Plan, *, are_apart: bool = False) -> RentedNetworks:
        """Returns those of a plan. are_apart: each machine is a rental of its own."""
        machines = {
            target.name: target for target in plan.targets if isinstance(target, RentedRecord)
        }
        networks = {
            name: network_of(target, name if are_apart else "") for name, target in machines.items()
        }
        settings = expand(plan, catalog.load())
        pairs = {
            pair for setting in settings for pair in _pairs(setting) if machines.keys() >= set(pair)
        }
        across = frozenset(
            (client, server) for client, server in pairs if networks[client] != networks[server]
        )
        zones = frozenset(
            (client, server)
            for client, server in pairs - across
            if are_other_zones(machines[client], machines[server])
        )
        return cls(networks, across, zones, settings)

    def addresses_for(self, own: Collection[str], machines: Mapping[str, Machine]) -> set[str]:
        """Returns the addresses of the machines that meet one of `own` from another network.

        machines: of the whole run, by the name of the target.
        """
        partners = {
            partner for pair in self.across for name, partner in (pair, pair[::-1]) if name in own
        }
        met = [machines[name].address for name in partners if name in machines]
        return {address for address in met if address}

    def bytes_out(
        self, plan: Plan, pairs: Collection[tuple[str, str]], free: Collection[str] = ()
    ) -> dict[str, float]:
        """Returns for each machine the bytes that it sends at most in a run to its partners.

        pairs: `across` or `between_zones`. free: machines whose traffic has no price. Raises
        PlanError where nothing bounds the bytes of another one.
        """
        sent: dict[str, float] = defaultdict(float)
        for setting in self.settings:
            rounds = plan.repeat_of(setting.entry).max + plan.warmup
            for pair in set(pairs) & set(_pairs(setting)):
                if set(pair) <= set(free):
                    continue
                for name, sent_bytes in zip(pair, _bytes_of_trial(setting, *pair), strict=True):
                    sent[name] += rounds * FRAMES * sent_bytes
        return {name: sent_bytes for name, sent_bytes in sent.items() if name not in free}

    def traffic_price(
        self, plan: Plan, rented: Sequence[tuple[Rentals, RentalSpec]]
    ) -> TrafficPrice:
        """Returns what the traffic between networks and zones costs at most.

        rented: checked rentals. Raises UsageError where a price is unknown, PlanError where nothing
        bounds the bytes.
        """
        sent_bytes = cost = 0.0
        for pairs in (self.across, self.between_zones):
            met = {name for pair in pairs for name in pair}
            prices = {
                name: _price_of(plan, name, rentals, spec, is_in_region=pairs is self.between_zones)
                for rentals, spec in rented
                for name in (group.name for group in spec.groups)
                if name in met
            }
            free = [name for name, price in prices.items() if price == 0]
            sent = self.bytes_out(plan, pairs, free)
            sent_bytes += sum(sent.values())
            cost += sum(prices[name] * own_bytes / 2**30 for name, own_bytes in sent.items())
        currency = "USD" if plan.money is None else plan.money.currency
        return TrafficPrice(sent_bytes, cost, currency)


def network_of(target: RentedRecord, own: str = "") -> tuple[str, ...]:
    """Returns the key of the network of a machine. own: its name, where it has a rental of its
    own."""
    cloud = (target.provider[0], target.endpoint, target.profile, target.login_from)
    return (*cloud, target.region[0], own)


def are_other_zones(first: RentedRecord, second: RentedRecord) -> bool:
    """States whether two machines are asked for in zones that are named and differ."""
    return "any" not in (first.zone[0], second.zone[0]) and first.zone[0] != second.zone[0]


def _pairs(setting: Setting) -> Iterator[tuple[str, str]]:
    """Yields client and server of everything that a setting sends."""
    for target in setting.targets:
        yield setting.client_of(target), setting.server_of(target) or target
    for load in setting.backgrounds:
        for target in load.targets:
            yield target, load.server_of(target) or target


def _bytes_of_trial(setting: Setting, client: str, server: str) -> tuple[float, float]:
    """Returns the bytes of one trial at most: from the client, and from the server."""
    params = setting.params
    if setting.benchmark == NET_THROUGHPUT and not setting.backgrounds:
        sent_bytes, direction = (
            float(params.get("transfer_bytes", 0)),
            params.get("direction", "up"),
        )
        if sent_bytes > 0:
            return sent_bytes * (direction != "down"), sent_bytes * (direction != "up")
    if setting.benchmark == NET_RTT and not setting.backgrounds:
        probes = params.get("rate_per_s", 1000.0) * params.get("duration_ns", 1e9) / 1e9
        if probes > 0:
            sent_bytes = probes * (params.get("packet_bytes", 64) + _PROBE_BYTES)
            return sent_bytes, sent_bytes
    raise PlanError(
        f"Nothing bounds the bytes of {setting.benchmark} between {client} and {server}, which "
        "leave a zone, a region or a cloud and may be billed.",
        "Give net.throughput `transfer_bytes`, or state `per_gib_out: 0` (between zones "
        "`per_gib_zones: 0`) where traffic is free.",
    )


def _price_of(
    plan: Plan, name: str, rentals: Rentals, spec: RentalSpec, *, is_in_region: bool
) -> float:
    """Returns the price of a GiB that a machine sends to other zones of its region, or out of
    it."""
    (target,) = (entry for entry in plan.targets if entry.name == name)
    assert isinstance(target, RentedRecord)
    stated = target.per_gib_zones if is_in_region else target.per_gib_out
    price = rentals.per_gib(spec, name, is_in_region=is_in_region) if stated is None else stated
    if price is not None:
        return price
    where = f"{target.region[0]} of {target.provider[0]}"
    if is_in_region:
        raise UsageError(
            f"The price of traffic between zones of {where} is unknown, and {name} sends to "
            "another zone.",
            "State it: --per-gib-zones PRICE, in a plan `per_gib_zones`; 0 where it is free.",
        )
    raise UsageError(
        f"The price of traffic that leaves {where} is unknown, and {name} sends to another region "
        "or cloud.",
        "State it: --per-gib-out PRICE, in a plan `per_gib_out`; 0 where it is free.",
    )
