"""`isolate` as its users have it: a lab of its own, a matrix, a report, nothing left behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.attempts import attempt
from tests.e2e.conftest import Run

from nephoscope.measure.lab.provisioner import LABS

WORDS = ("isolate", "cpu", "--aggressor", "cpu", "--placement", "shared", "--quick", "--seed", "1")


@pytest.mark.alone
@pytest.mark.usefixtures("root_only")
def test_a_neighbour_on_the_same_cpu(nephoscope: Run, tmp_path: Path) -> None:
    def measure() -> tuple[str, bool]:
        done = nephoscope(*WORDS, "--store", str(tmp_path))
        assert done.code == 0, done.err
        row = re.search(r"^  cpu +100 % +1 +6 +([0-9.]+) +\[", done.out, re.M)
        assert row is not None, done.out
        # Half of a CPU: far from 1, whatever else this machine does.
        assert float(row[1]) > 1.4
        assert re.search(r"^  idle +100 % +1 +6 ", done.out, re.M)
        assert "A/A control" in done.out
        assert Path(done.out.split()[-1]).exists()
        assert not [lab.name for lab in LABS.existing() if lab.name.startswith("iso-")]
        assert max(map(len, done.out.splitlines()[:-1])) <= 79

        again = nephoscope("show", "--json", "--store", str(tmp_path)).json()
        cells = {
            (one["resource"], one["victim"]["metric"]): one for one in again["isolation"]["cells"]
        }
        assert cells["cpu", "pi_digits_per_s"]["factor"]["value"] == pytest.approx(
            float(row[1]), rel=0.01
        )
        return f"factor {row[1]}", True

    attempt("isolate", measure, contends=True)


def test_two_programs_on_this_machine_need_no_lab(nephoscope: Run, tmp_path: Path) -> None:
    words = ("isolate", "null", "--aggressor", "idle", "--quick", "--json")
    targets = ("--target", "victim=local", "--target", "aggressor=local")
    done = nephoscope(*words, *targets, "--store", str(tmp_path))
    assert done.code == 0, done.err
    (cell,) = done.json()["isolation"]["cells"]
    assert (cell["resource"], cell["comparison"]["n_a"]) == ("idle", 6)
    assert cell["pairing"] == "adjacent baseline trials"
    # The benchmark `null` gives what it is told: beside anything.
    assert cell["factor"]["value"] == 1
