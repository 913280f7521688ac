from __future__ import annotations

import pytest

from nephoscope.core.model import RunResult
from report import made


@pytest.fixture(scope="session")
def survey() -> RunResult:
    return made.result()
