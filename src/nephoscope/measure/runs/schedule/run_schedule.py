"""What a run does next, decided from its plan, its seed and its finished trials alone.

Pure: no clock, no file, no target. `RunSchedule.steps` walks through the rounds. A trial that is
stored is taken in, one that is missing becomes work; what comes next follows from `Progress`. So a
run that was killed at any moment goes on where it was, with no trial lost and none doubled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from nephoscope.catalog import Catalog
from nephoscope.core.model import Setting, TrialKey, TrialRecord
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.schedule.alternatives import Outcome, Pair
from nephoscope.measure.runs.schedule.cells import Cells
from nephoscope.measure.runs.schedule.groups import Group, Work, scheduled
from nephoscope.measure.runs.schedule.headline import rows_of_table
from nephoscope.measure.runs.schedule.progress import Progress

_REBOOTED = "The run was interrupted in this cell: its host was recreated since the cell began."
_APART = "The run was interrupted between this trial and the quiet one before it."
_LATER = "Measured after later rounds: it was missing when the run went on."
_WAVE = 4
"""Simulated rounds that are begun at once, for each CPU: few CPUs wait at the end of them, and what
is still to come is estimated anew before the next."""


class Order(Enum):
    """How the works of one step follow one another."""

    ONE_BY_ONE = auto()
    ON_FREE_MACHINES = auto()  # side by side on machines that have no part in one another
    ON_FREE_CPUS = auto()  # simulated: they disturb nobody


@dataclass(frozen=True, slots=True)
class RoundBegins:
    """Targets and hosts are made ready for a round, and those after it in its cell."""

    number: int


@dataclass(frozen=True, slots=True)
class Trials:
    """Works that are measured. is_boot: they are no trials of the plan's alternatives."""

    works: Sequence[Work]
    order: Order = Order.ONE_BY_ONE
    is_boot: bool = False


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """A round is over. outcomes: of the alternatives that ended since the last one."""

    outcomes: Sequence[Outcome]


Step = RoundBegins | Trials | RoundEnded
_Steps = Iterator[Step]


class RunSchedule:
    """The steps of a run. stored: the trials that it has already, with their samples.

    Whoever carries out a step adds its trials to `progress` before asking for the next.
    """

    def __init__(
        self,
        plan: Plan,
        settings: Sequence[Setting],
        catalog: Catalog,
        seed: int,
        stored: Iterable[tuple[TrialRecord, Any]],
        cpus: int,
    ) -> None:
        self._plan, self._seed, self._cpus = plan, seed, cpus
        self._cells = Cells(plan, settings)
        self.settings = [*settings, *self._cells.settings()]
        specs = {setting.benchmark: catalog.benchmark(setting.benchmark) for setting in settings}
        self.progress = Progress(plan, settings, specs)
        self._stored = {record.key: (record, table) for record, table in stored}
        self._last_stored = max((key.round for key in self._stored), default=0)
        self._begun_ahead = 0
        self._cell: int | None = None
        self._rebooted_cell: int | None = None
        self._order = Order.ONE_BY_ONE
        if plan.simulated:
            self._order = Order.ON_FREE_CPUS
        elif plan.concurrent:
            self._order = Order.ON_FREE_MACHINES

    def steps(self) -> _Steps:
        """Yields the steps of the run, from the first missing trial to the last."""
        for numbers in self.progress.cells():
            if self._cells.by_block:
                yield from self._cell_by_block(numbers)
            else:
                for number in numbers:
                    yield from self._round(number)

    def lose_target(self, name: str, sentence: str) -> None:
        """Ends every alternative that needs a target, which was given up."""
        for setting in self.settings:
            for target in setting.targets:
                group = Group(setting, setting.targets if setting.together else (target,))
                if name in group.needs:
                    self.progress.lose(group.members, f"{name} was lost: {sentence}")

    def _round(self, number: int) -> _Steps:
        if 0 < number <= self._begun_ahead:
            return
        yield from self._begin(number)
        active = self.progress.begin_round(number)
        works = self._works(number, self._missing(number, active))
        if self._plan.simulated:
            works += self._ahead(number, active)
        yield Trials(works, self._order)
        yield RoundEnded(self.progress.end_round())

    def _cell_by_block(self, numbers: Sequence[int]) -> _Steps:
        """The blocks of a cell one after the other: each is booted, then all its rounds are
        measured. The order of the blocks is the seed's."""
        yield from self._begin(numbers[0])
        cell = self._cells.cell_of(numbers[0])
        missing: dict[str, list[tuple[int, Group]]] = {}
        for number in numbers:
            active = self.progress.begin_round(number)
            for group in self._missing(number, active):
                missing.setdefault(group.setting.block, []).append((number, group))
        blocks = [(name,) for name in missing]
        for (block,) in plans.order_round(self._seed, numbers[-1], blocks):
            yield from self._boots(cell, self._cells.block_boots(cell, block))
            for number, group in missing[block]:
                yield Trials(self._works(number, [group]))
        yield RoundEnded(self.progress.end_round())

    def _begin(self, number: int) -> _Steps:
        yield RoundBegins(number)
        if self._cells.nested and (cell := self._cells.cell_of(number)) != self._cell:
            self._cell = cell
            yield from self._boots(cell, self._cells.boots(cell))

    def _boots(self, cell: int, boots: Sequence[Work]) -> _Steps:
        self._rebooted_cell = None
        for boot in boots:
            if self._take_in(boot.keys):
                # Booted by the process before us; whether it still is that boot, we cannot know.
                self._rebooted_cell = cell
            else:
                yield Trials([boot], is_boot=True)

    def _missing(self, number: int, active: Sequence[Pair]) -> list[Group]:
        """Returns what is to be measured in a round; what is stored of it is taken in."""
        groups = scheduled(self._plan, self._seed, number, active, self.settings)
        return [group for group in groups if not self._take_in(group.keys(number))]

    def _ahead(self, number: int, active: Sequence[Pair]) -> list[Work]:
        """Trials of later rounds, begun with those of this one while it is sure that each
        alternative has that round. Not before the first round is over, which says what is refused.
        """
        works: list[Work] = []
        if number < 2 or self._cells.nested:
            return works
        for later in range(number + 1, number + _WAVE * self._cpus):
            if not all(self.progress.sure(pair, later) for pair in active):
                break
            self._begun_ahead = later
            works += self._works(later, self._missing(later, active))
        return works

    def _works(self, number: int, groups: Sequence[Group]) -> list[Work]:
        nest: Mapping[str, int] = {}
        notes = []
        if 0 < number < self._begin_of(self._last_stored) and not self._plan.simulated:
            notes.append(_LATER)
        if self._cells.nested:
            cell = self._cells.cell_of(number)
            nest = self._cells.nest_of(cell)
            notes += [_REBOOTED] if self._rebooted_cell == cell else []
        works = []
        for group in groups:
            before = group.around(number, group.targets[0]).get("before")
            apart = [_APART] if before is not None and before in self._stored else []
            works.append(Work(number, group, nest, [*notes, *apart]))
        return works

    def _take_in(self, keys: Sequence[TrialKey]) -> bool:
        """Takes in what is stored; False when a trial of these has to be measured."""
        if any(key not in self._stored for key in keys):
            return False
        for key in keys:
            record, table = self._stored[key]
            self.progress.add(record, rows_of_table(table))
        return True

    def _begin_of(self, number: int) -> int:
        """The first round that is measured together with a round."""
        nest = self._plan.design.nest
        rounds = nest.rounds if nest is not None and self._cells.by_block else 1
        return number - (number - 1) % rounds
