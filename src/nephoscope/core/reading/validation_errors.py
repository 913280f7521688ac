"""Collects the errors of independent parts of a file, so that all are reported at once."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator

from nephoscope.core.errors import PlanError, PlanErrors, UsageError

MAX_ERRORS = 200
"""Errors after which the parts that follow are not checked: each takes a search for names that are
similar, and a file may have 100,000 parts."""

_PLACE = re.compile(r"^(.*?):(\d+):(\d+): ")


class ValidationErrors:
    """Errors so far. A part is checked inside `of_part`, and `report` raises all errors.

    omitted: number of further errors, of which no sentence was made.
    """

    def __init__(self, errors: Iterable[PlanError] = (), omitted: int = 0) -> None:
        self._errors = list(errors)
        self._omitted = omitted
        self._is_complete = True

    @contextlib.contextmanager
    def of_part(self) -> Iterator[None]:
        """Takes the error of a part in, so that the next part is checked as well."""
        try:
            yield
        except PlanError as error:
            self._errors += error.each
            self._omitted += error.omitted
            self._is_complete = self._is_complete and error.is_complete
            if len(self._errors) >= MAX_ERRORS:
                self._is_complete = False
                self.report()
        except UsageError:
            # It may follow from a part that is wrong itself.
            if not self._errors:
                raise

    def report(self) -> None:
        """Raises PlanError for what was found, in the order of the file; each sentence once."""
        distinct = list({str(error): error for error in self._errors}.values())
        has_place = any(re.match(r"\S+: |--set ", error.message) for error in distinct)
        if distinct and ((len(distinct) == 1 and not self._omitted) or not has_place):
            # A plan that stands in no file is the program's own: it has one cause.
            raise distinct[0]
        if distinct:
            raise PlanErrors(
                sorted(distinct, key=_position), self._omitted, is_complete=self._is_complete
            )


def _position(error: PlanError) -> tuple[int, str, int, int]:
    return position_of(error.message)


def position_of(sentence: str) -> tuple[int, str, int, int]:
    """Returns the key of the order: sentences without a place come last."""
    place = _PLACE.match(sentence)
    if place is None:
        return (1, "", 0, 0)
    return (0, place[1], int(place[2]), int(place[3]))
