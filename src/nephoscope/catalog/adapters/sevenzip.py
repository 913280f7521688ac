"""7-Zip's own benchmark, `7z b`."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.catalog.adapters.quantities import Params, rate, threads, throughput, whole
from nephoscope.catalog.adapters.reports import Figures
from nephoscope.catalog.meaning import Resource

_COLUMNS = r" +([0-9]+) +[0-9]+ +[0-9]+ +([0-9]+)"
_FIGURES = (
    Figures(
        "its averages",
        rf"^Avr:{_COLUMNS} +\|{_COLUMNS}\n",
        {
            "compress_bytes_per_s": 1024,
            "compress_rating_per_s": 1e6,
            "decompress_bytes_per_s": 1024,
            "decompress_rating_per_s": 1e6,
        },
    ),
    Figures("its total", r"^Tot: +[0-9]+ +[0-9]+ +([0-9]+)\n", {"rating_per_s": 1e6}),
)


def _command(params: Params) -> ToolCommand:
    options = (f"-mmt{params['threads']}", f"-md{params['dictionary_bits']}")
    return ToolCommand(("b", str(params["iterations"]), *options))


_ADAPTER_DOC = "Instructions a second of a reference CPU for this work, as 7-Zip rates it: {}."

ADAPTER = adapter(
    "7zip",
    "7-Zip: LZMA compression and decompression",
    resource=Resource.CPU,
    tool="7z",
    minimum="9.20",
    install="apt-get install p7zip-full",
    source="Pavlov, 7-Zip, 7-zip.org",
    version=r"^7-Zip (?:\[[0-9]+\] |\([a-z]\) |\(z\) )?([0-9]+\.[0-9]+)",
    version_command=(),
    params=(
        whole("dictionary_bits", 22, 18, 32, "Dictionary of 2 to this power bytes (`-md`)."),
        whole("iterations", 1, 1, 1_000, "Times that all is repeated."),
        threads("Threads (`-mmt`)."),
    ),
    command=_command,
    figures=_FIGURES,
    metrics=(
        throughput("compress_bytes_per_s", "Bytes compressed a second."),
        throughput("decompress_bytes_per_s", "Bytes decompressed a second."),
        rate("compress_rating_per_s", _ADAPTER_DOC.format("compression"), headline=False),
        rate("decompress_rating_per_s", _ADAPTER_DOC.format("decompression"), headline=False),
        rate("rating_per_s", _ADAPTER_DOC.format("mean of both"), headline=False),
    ),
    overhead="one CPU for each thread, and about 60 MiB of memory for each two",
    measures="How fast the CPU compresses and decompresses with LZMA.",
    how="7-Zip generates data with a Lempel-Ziv-like structure in memory, and works on them.",
    truth="It checks the sums of all decompressed data, and ends with an error otherwise.",
    cross_check="`app.lzma` and `xz` compress with the same algorithm, on another text.",
    overhead_page="One CPU for each thread.",
    caveats="""
Compression is bound by the latency of caches and memory, decompression by mispredicted branches.
Two threads share one coder with an even number of threads: rates of one and of two threads do not
tell how the CPUs scale.""",
)
