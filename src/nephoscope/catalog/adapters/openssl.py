"""OpenSSL's own benchmark, `openssl speed`."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import Figure, adapter
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.catalog.adapters.quantities import (
    Params,
    choice,
    duration,
    seconds,
    threads,
    throughput,
    whole,
)
from nephoscope.catalog.meaning import Resource

_ALGORITHMS = (
    *("sha256", "sha512", "sha3-256", "sha1", "md5", "blake2b512"),
    *("aes-128-cbc", "aes-256-cbc", "aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"),
)


def _command(params: Params) -> ToolCommand:
    limit_s = seconds("openssl", params)
    several = ("-multi", str(params["threads"])) if params["threads"] > 1 else ()
    sizes = ("-seconds", str(limit_s), "-bytes", str(params["block_bytes"]))
    # Without -elapsed it divides by its own CPU time, which hides what the host takes away.
    return ToolCommand(("speed", "-elapsed", "-mr", *several, *sizes, "-evp", params["algorithm"]))


ADAPTER = adapter(
    "openssl",
    "OpenSSL speed: throughput of a hash function or a cipher",
    resource=Resource.CPU,
    minimum="1.1.1",
    source="The OpenSSL Project, openssl-speed(1)",
    version=r"^OpenSSL ([0-9]+(?:\.[0-9]+)+)",
    version_command=("version",),
    params=(
        choice("algorithm", _ALGORITHMS, "Hash function or cipher (`-evp`)."),
        whole("block_bytes", 16_384, 1, 1 << 24, "Bytes of one call (`-bytes`).", "bytes"),
        threads("Processes (`-multi`)."),
        duration(3),
    ),
    command=_command,
    figures=(
        Figure(
            throughput("hash_bytes_per_s", "Bytes of all processes a second."),
            r"^\+F:[0-9]+:[^:\n]+:([0-9.]+)\n",
        ),
    ),
    overhead="one CPU for each process",
    measures="How many bytes a second the CPU hashes or encrypts with OpenSSL's code.",
    how="""
One buffer is processed again and again for a set time. Bytes are divided by elapsed time
(`-elapsed`), and not by CPU time.""",
    truth="Bytes a second are the calls that it counts, times their size, over the time.",
    cross_check="`cpu.hash` hashes with SHA-256, too.",
    caveats="""
Instructions for SHA and AES decide: a hypervisor that hides them costs a factor of three to ten.
With small blocks the call itself counts.""",
)
