"""The plan that is checked, with its catalogue and the place of each part in the user's files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nephoscope.catalog import BenchmarkSpec, Catalog
from nephoscope.core.errors import PlanError, UnknownName, UsageError
from nephoscope.core.reading.sentences import Place, choices, did_you_mean
from nephoscope.core.reading.validation_errors import ValidationErrors
from nephoscope.core.reading.yamltext import Loc
from nephoscope.core.records import dataclass
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.plans.parameters import convert_value

if TYPE_CHECKING:
    from nephoscope.measure.lab.topology import Topology

DEFAULT_ROLES = ("victim", "client")
"""Roles whose targets run the benchmarks that name no target."""

SERVER = "server"
"""Role whose targets are compared where an entry names a client and no target."""

AGGRESSOR = "aggressor"
"""Role whose targets run the background loads that name no target."""


def nowhere(_: Loc) -> str:
    """The place of a plan that no file holds."""
    return ""


@dataclass(frozen=True)
class PlanContext:
    """A plan and what its parts are checked against. place: text of a place, to begin an error."""

    plan: Plan
    catalog: Catalog
    place: Place = nowhere

    def error(self, loc: Loc, message: str, hint: str = "") -> PlanError:
        """Returns the error about the part at `loc`."""
        return PlanError(f"{self.place(loc)}{message}", hint)

    def spec(self, benchmark: str, loc: Loc) -> BenchmarkSpec:
        """Returns the declaration of the benchmark that the record at `loc` names."""
        try:
            return self.catalog.benchmark(benchmark)
        except UnknownName as error:
            raise self.error((*loc, "benchmark"), error.message, error.hint) from error

    def convert(
        self, spec: BenchmarkSpec, name: str, value: Any, named: Loc, value_loc: Loc
    ) -> Any:
        """Returns a value in its parameter's unit. named, value_loc: places of name and value."""
        try:
            return convert_value(spec.id, spec.param(name), value)
        except UnknownName as error:
            raise self.error(named, error.message, error.hint) from error
        except UsageError as error:
            raise self.error(value_loc, error.message, error.hint) from error

    def convert_all(self, spec: BenchmarkSpec, params: dict[str, Any], loc: Loc) -> dict[str, Any]:
        """Returns all values of the mapping at `loc`, each in its own unit."""
        errors = ValidationErrors()
        converted = {}
        for name, value in params.items():
            with errors.of_part():
                converted[name] = self.convert(spec, name, value, (*loc, name), (*loc, name))
        errors.report()
        return converted

    @cached_property
    def topology(self) -> Topology | None:
        """The topology of the plan's lab; None without one."""
        if self.plan.lab is None:
            return None
        if isinstance(self.plan.lab, str):
            message = f"the topology '{self.plan.lab}' was not read with the plan."
            raise self.error(("lab",), message, "Load the plan from its file.")
        from nephoscope.measure.lab import files

        return files.from_values(self.plan.lab, lambda loc: self.place(("lab", *loc)))

    def default_targets(self, roles: Sequence[str] = DEFAULT_ROLES) -> tuple[str, ...]:
        """Returns the targets of an entry without `on`: without a role, or with one of these."""
        return tuple(
            target.name
            for target in self.plan.targets
            if not target.roles or any(role in roles for role in target.roles)
        )

    def services(self) -> tuple[str, ...]:
        """Returns the targets on which no program can be started."""
        return tuple(target.name for target in self.plan.targets if target.traits().is_service)

    def resolve_roles(self, names: Sequence[str], loc: Loc) -> tuple[str, ...]:
        """Returns the targets that names and roles stand for, in the plan's order, each once."""
        chosen = {target for name in names for target in self._resolve(name, loc)}
        return tuple(target.name for target in self.plan.targets if target.name in chosen)

    def resolve_one(self, name: str, loc: Loc) -> str:
        """Returns the only target that a name or role stands for."""
        targets = self._resolve(name, loc)
        if len(targets) > 1:
            raise self.error(
                loc,
                f"'{name}' is the role of {len(targets)} targets ({', '.join(targets)}), and one "
                "is needed.",
                "Write its name.",
            )
        return targets[0]

    def _resolve(self, name: str, loc: Loc) -> list[str]:
        names = [target.name for target in self.plan.targets]
        with_role = [target.name for target in self.plan.targets if name in target.roles]
        if name in names and with_role not in ([], [name]):
            message = f"'{name}' is a target, and a role of {', '.join(with_role)}."
            raise self.error(loc, message, "Rename one of the two.")
        if name in names:
            return [name]
        if with_role:
            return with_role
        roles = sorted({role for target in self.plan.targets for role in target.roles})
        raise self.error(
            loc,
            f"no target is named '{name}' or has that role{did_you_mean(name, [*names, *roles])}.",
            f"Targets: {', '.join(names)}{choices('; roles', roles, '; no target has `roles`.')}",
        )
