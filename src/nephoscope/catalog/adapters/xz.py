"""xz, the compressor of XZ Utils, on the text that `app.lzma` compresses."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import Output, ToolCommand, ToolError, ToolStep, matched
from nephoscope.catalog.adapters.quantities import Params, figure, throughput, whole
from nephoscope.catalog.meaning import Resource

_FILE = "corpus"
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


CORPUS = """\
function below(bound) {
  state = (state * 16807) % 2147483647
  return int(state * bound / 2147483647)
}
BEGIN {
  state = 20100101; alphabet = "etaoinshrdlucmfwypvbgkjqxz"; count = 4096
  for (word = 0; word < count; word++) {
    letters = ""
    for (left = 2 + below(9); left > 0; left--)
      letters = letters substr(alphabet, 1 + below(1 + below(26)), 1)
    vocabulary[word] = letters
  }
  while (written < size) {
    word = vocabulary[below(1 + below(count))]
    text = word (below(12) ? " " : "\\n")
    if (written + length(text) > size) text = substr(text, 1, size - written)
    printf "%s", text > file
    written += length(text)
  }
}
"""
"""Writes the text of `app.lzma`: words of a vocabulary in which few are frequent. Numbers stay
below 2^53, so that every awk computes them exactly."""


def _command(params: Params) -> ToolCommand:
    size = params["corpus_bytes"]
    options = (f"-{params['preset']}", "--format=lzma")
    return ToolCommand(
        ("--verbose", "--keep", *options, _FILE),
        prepare=(ToolStep("awk", ("-v", f"size={size}", "-v", f"file={_FILE}", CORPUS)),),
        needs_bytes=2 * size,
    )


def _figures(output: Output) -> dict[str, float]:
    size = r"([0-9.,]+) ([KMG]?i?B)"
    total = size.replace("(", "(?:")
    # xz prints the speed and the time of work that takes longer than its first report.
    pattern = rf"^{_FILE}: {total} / {size} = ([0-9.]+)(?:, {total}/s)?(?:, [0-9:]+)?\n"
    number, unit, ratio = matched(output, pattern, "its last line")
    try:
        size_bytes = float(number.replace(",", "")) * _UNITS[unit]
        return {
            "compress_bytes_per_s": size_bytes / (output.elapsed_ns / 1e9),
            "compressed_ratio": float(ratio),
        }
    except (ValueError, KeyError, ZeroDivisionError) as error:
        raise ToolError(f"its report has '{number} {unit}' for the size.") from error


ADAPTER = adapter(
    "xz",
    "xz: LZMA compression of a generated text",
    resource=Resource.CPU,
    minimum="5.2",
    install="apt-get install xz-utils",
    source="Collin, XZ Utils, tukaani.org/xz",
    version=r"^xz \(XZ Utils\) ([0-9]+(?:\.[0-9]+)+)",
    on_stderr=True,
    params=(
        whole("corpus_bytes", 1 << 20, 4_096, 1 << 26, "Size of the text.", "bytes"),
        whole("preset", 6, 0, 9, "Preset: 0 is fastest.", "none"),
    ),
    command=_command,
    figures=_figures,
    metrics=(
        throughput("compress_bytes_per_s", "Bytes of text compressed a second."),
        figure("compressed_ratio", "ratio", "Compressed size over size of the text."),
    ),
    overhead="one CPU, and about 100 MiB of memory with preset 6",
    measures="How fast xz compresses: work that caches, memory and branches limit.",
    how="""
The text of `app.lzma` is written to a file before the trial, by awk. The time is that of the whole
program, from its start to its end, reading and writing files included.""",
    truth="xz reports the size of the text, which is `corpus_bytes`.",
    cross_check="`app.lzma` compresses the same text natively; `7zip` generates other data.",
    overhead_page="One CPU; twice `corpus_bytes` of disk space.",
    caveats="""
The start of the program takes a millisecond or two; with less than a second of work use a larger
text. The reported size has two digits after the point.""",
)
