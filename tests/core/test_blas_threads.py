"""Linear algebra uses one thread, and what is started does not notice."""

from __future__ import annotations

import os
import subprocess
import sys

from nephoscope.core import blas_threads

LOADING = """
import os
from nephoscope.core import blas_threads
blas_threads.use_one()
import numpy, scipy.linalg
a = numpy.ones(1_000_000)
a @ a, scipy.linalg.cholesky(numpy.eye(300))
print(len(os.listdir("/proc/self/task")), os.environ.get(blas_threads.VARIABLE))
"""


def loaded(**variables: str) -> list[str]:
    """Returns the threads of a process that used the libraries, and the variable after that."""
    own = {key: value for key, value in os.environ.items() if key != blas_threads.VARIABLE}
    command = [sys.executable, "-c", LOADING]
    done = subprocess.run(
        command, env={**own, **variables}, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_libraries_start_no_threads_and_leave_no_variable_behind() -> None:
    assert loaded() == ["1", "None"]


def test_the_number_of_the_user_stands() -> None:
    assert loaded(**{blas_threads.VARIABLE: "2"})[1] == "2"
