"""What a test may ask of the double and set: the faults, the clock, the oracle."""

from __future__ import annotations

import time
from typing import Any

from . import billing, catalogue
from .calls import Call
from .cloud import Cloud, Resource
from .instances import end, interrupt, stop
from .scaling_groups import KIND, POLICY, trigger
from .signatures import Credentials


class Control:
    """Each public method is one command of the control port; arguments and answers are JSON."""

    def __init__(self, seed: int, scale: float) -> None:
        self._begin(seed, scale)

    def _begin(self, seed: int, scale: float) -> None:
        self.cloud = Cloud(seed, scale)
        self.defects_seen: list[str] = []

    def reset(self, seed: int = 0, scale: float = 1.0) -> None:
        """Everything is as at the beginning."""
        if self.cloud.machines is not None:
            self.cloud.machines.close()
        self._begin(seed, scale)

    def fault(self, name: str, **settings: Any) -> None:
        """See `Faults.set`."""
        self.cloud.faults.set(name, **settings)

    def faults(self) -> dict[str, int]:
        """How often each has happened."""
        return dict(self.cloud.faults.happened)

    def settings(self, **values: Any) -> None:
        """See `cloud.SETTINGS`. machines: each instance becomes a namespace with an ssh server."""
        unknown = set(values) - set(self.cloud.settings)
        if unknown:
            raise ValueError(f"no such settings: {unknown}")
        self.cloud.settings |= values
        if values.get("machines") and self.cloud.machines is None:
            from .machines import Machines

            self.cloud.machines = Machines(self.cloud)

    def bridge(self) -> str:
        """The network of the machines, which another double can join."""
        return str(self.cloud.machines.bridge)

    def join(self, bridge: str) -> None:
        """See `Machines.join`."""
        self.cloud.machines.join(bridge)

    def network(self) -> str:
        """The address of this machine that the machines of the double reach."""
        assert self.cloud.machines is not None, "settings(machines=True) makes the network"
        return self.cloud.machines.address

    def advance(self, seconds: float) -> float:
        """Moves the clock; returns the new time."""
        self.cloud.clock.advance(seconds)
        return self.cloud.now()

    def now(self) -> float:
        return self.cloud.now()

    def defects(self) -> list[str]:
        """Errors of the double itself."""
        return self.defects_seen

    def capacity(self, zone: str, type: str = "*", count: int | None = 0) -> None:
        """How many machines of a type a zone has; None for no end."""
        if count is None:
            self.cloud.capacity.pop((zone, type), None)
        else:
            self.cloud.capacity[zone, type] = count

    def quota(self, code: str, value: float) -> None:
        if code not in catalogue.QUOTAS:
            raise ValueError(f"no such quota: {code}")
        self.cloud.quotas[code] = value

    def credentials(
        self, key: str, secret: str, session: str = "", expires_in: float | None = None
    ) -> None:
        """Adds a pair of keys; in our seconds, it expires."""
        ends = float("inf") if expires_in is None else time.time() + expires_in
        self.cloud.credentials[key] = Credentials(secret, session, ends)

    def expire(self, key: str) -> None:
        self.cloud.credentials[key].expires = 0.0

    def withdraw(self, key: str) -> None:
        """The key is known no longer."""
        del self.cloud.credentials[key]

    def interrupt(self, id: str, after: float = 0.0) -> None:
        """A spot machine gets its notice."""
        interrupt(self.cloud, self.cloud.resources[id], after)

    def break_down(self, id: str) -> None:
        """The host of a machine fails."""
        end(self.cloud, self.cloud.resources[id], "Server.InternalError: Internal error")

    def power_off(self, id: str) -> None:
        """The machine powers itself off, as its own system would."""
        each = self.cloud.resources[id]
        reason = "Client.InstanceInitiatedShutdown: Instance initiated shutdown"
        if each.data["on_shutdown"] == "terminate":
            end(self.cloud, each, reason)
        else:
            stop(self.cloud, each, reason)

    def alarm(self, group: str, policy: str, beyond: float, region: str = "us-east-1") -> bool:
        """The alarm of a scaling policy goes off; see `scaling_groups.trigger`."""
        now = self.cloud.now()
        call = Call(self.cloud, region, "", {}, now, now)
        own = next(each for each in call.all(KIND) if each.data["name"] == group)
        chosen = next(
            each
            for each in call.all(POLICY)
            if each.data["name"] == policy and each.data["group"] == group
        )
        return trigger(call, own, chosen, beyond)

    def calls(self) -> list[dict[str, Any]]:
        """Every request that reached the API, in order."""
        return self.cloud.calls

    def bill(self) -> float:
        return sum(billing.bill(self.cloud, self.cloud.now()).values())

    def oracle(self) -> list[dict[str, Any]]:
        """Every resource that the account ever made, without any lag."""
        now = self.cloud.now()
        return [
            self._seen(each, now)
            for each in self.cloud.owned()
            if each.kind != "spot-instances-request"
        ]

    def _seen(self, each: Resource, now: float) -> dict[str, Any]:
        state = each.state(now)
        live = each.exists(now) and not (each.kind == "instance" and state == "terminated")
        shown = (
            "name",
            "instance",
            "associated",
            "address",
            "type",
            "spot",
            "rules",
            "metadata",
            "on_shutdown",
            "size",
            "host",
        )
        return {
            "id": each.id,
            "kind": each.kind,
            "region": each.region,
            "zone": each.zone,
            "created": each.created,
            "state": state,
            "states": each.states,
            "live": live,
            "tags": each.tags_at(now),
            "tags_at_creation": each.tags_at(each.created),
            "token": each.token,
            "cost": billing.cost(each, now),
            **{key: each.data[key] for key in shown if key in each.data},
        }
