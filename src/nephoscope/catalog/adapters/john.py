"""John the Ripper's own benchmark, `john --test`."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError, matched
from nephoscope.catalog.adapters.quantities import Params, choice, duration, rate, seconds
from nephoscope.catalog.meaning import Resource

_FACTORS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_LINE = r"^{}:\t([0-9.]+)([KMG]?) c/s real, ([0-9.]+)([KMG]?) c/s virtual\n"


def _figures(output: Output) -> dict[str, float]:
    salted = "Many salts:" in output.stdout
    label = "Many salts" if salted else "Raw"
    if salted:
        # Its last line: the report is whole.
        matched(output, _LINE.format("Only one salt"), "its figure of one salt")
    real, real_prefix, cpu, cpu_prefix = matched(output, _LINE.format(label), "its rate")
    try:
        return {
            "guesses_per_s": float(real) * _FACTORS[real_prefix],
            "cpu_guesses_per_s": float(cpu) * _FACTORS[cpu_prefix],
        }
    except ValueError as error:
        raise ToolError(f"its report has '{real}' and '{cpu}' for its rates.") from error


def _command(params: Params) -> ToolCommand:
    limit_s = seconds("john", params)
    return ToolCommand((f"--test={limit_s}", f"--format={params['format']}"))


ADAPTER = adapter(
    "john",
    "John the Ripper: password hashes a second",
    resource=Resource.CPU,
    minimum="1.8",
    source="Openwall, John the Ripper, openwall.com/john",
    version=r"^John the Ripper [^0-9\n]*([0-9]+(?:\.[0-9]+)+)",
    version_command=(),
    paths=("/usr/sbin",),
    params=(
        choice(
            "format", ("descrypt", "md5crypt", "bcrypt", "LM"), "Kind of hash.", default="bcrypt"
        ),
        duration(2),
    ),
    command=_command,
    figures=_figures,
    metrics=(
        rate("guesses_per_s", "Passwords that are hashed and compared a second."),
        rate("cpu_guesses_per_s", "The same a second of its CPU time, as the kernel counts it."),
    ),
    overhead="one CPU, or all of them with bcrypt",
    measures="How many passwords a second are hashed with DES-crypt, MD5-crypt, bcrypt or LM.",
    how="""
A self-test, then candidates are hashed for a set time. Of formats with salts the figure is that of
many salts, where preparing a candidate is shared by them.""",
    truth="Its self-test compares known hashes, and fails on a CPU that computes wrongly.",
    cross_check="`cpu.hash` with `algorithm` des-crypt, md5-crypt or bcrypt.",
    overhead_page="One CPU; as Debian builds it, all CPUs with bcrypt.",
    caveats="""
It computes many candidates at once in vector instructions (DES: bit-sliced, 128 to 512 of them), as
an attacker would and no login does: a rate of candidates, not the time of one hash. Rates have
three to four digits.""",
)
