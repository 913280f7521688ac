"""The Phoronix Test Suite: one installed test profile, in batch mode."""

from __future__ import annotations

import re
from dataclasses import replace
from statistics import fmean

from nephoscope.catalog import MetricSpec
from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import (
    SCRATCH,
    Output,
    ToolCommand,
    ToolError,
    ToolStep,
    check_ending,
)
from nephoscope.catalog.adapters.quantities import Params, text, whole
from nephoscope.catalog.meaning import Resource
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, Sample, Shape
from nephoscope.core.reading.phoronix import read_composite

_NAME = "nephoscope"
_METRICS = {"HIB": "higher_is_better_score", "LIB": "lower_is_better_score"}
# Batch mode saves results and asks nothing; the suite neither uses a network nor sends anything.
_CONFIGURATION = f"""<?xml version="1.0"?>
<PhoronixTestSuite><Options>
<OpenBenchmarking><AnonymousUsageReporting>FALSE</AnonymousUsageReporting></OpenBenchmarking>
<Modules><AutoLoadModules></AutoLoadModules></Modules>
<Installation>
<EnvironmentDirectory>{SCRATCH}/suite/installed-tests/</EnvironmentDirectory>
</Installation>
<Testing><SaveSystemLogs>FALSE</SaveSystemLogs><SleepTimeBetweenTests>0</SleepTimeBetweenTests>
<ResultsDirectory>{SCRATCH}/suite/test-results/</ResultsDirectory></Testing>
<BatchMode><SaveResults>TRUE</SaveResults><OpenBrowser>FALSE</OpenBrowser>
<UploadResults>FALSE</UploadResults><PromptForTestIdentifier>FALSE</PromptForTestIdentifier>
<PromptForTestDescription>FALSE</PromptForTestDescription><PromptSaveName>FALSE</PromptSaveName>
<RunAllTestCombinations>TRUE</RunAllTestCombinations><Configured>TRUE</Configured></BatchMode>
<Networking><NoInternetCommunication>TRUE</NoInternetCommunication></Networking>
</Options></PhoronixTestSuite>
"""


# As root the suite takes other folders, and installs packages of the system.
_SUITE = ToolCommand(
    ("version",),
    prepare=(
        ToolStep("mkdir", ("suite",)),
        ToolStep("tee", ("suite/user-config.xml",), _CONFIGURATION),
    ),
    user="nobody",
    environment={
        "PTS_USER_PATH_OVERRIDE": f"{SCRATCH}/suite/",
        "NO_EXTERNAL_DEPENDENCIES": "TRUE",
        "TEST_RESULTS_NAME": _NAME,
        "TEST_RESULTS_IDENTIFIER": _NAME,
    },
)


def _checked(name: str, text: str, pattern: str, example: str) -> str:
    # The suite's own script hands its arguments to a shell.
    if not re.fullmatch(pattern, text, re.ASCII):
        raise UsageError(
            f"phoronix: {name} '{text[:60]}' is none that the suite understands.",
            f"Set {name}={example}.",
        )
    return text


def _command(params: Params) -> ToolCommand:
    profile = _checked(
        "profile",
        params["profile"],
        r"[a-z0-9_]+/[a-z0-9][a-z0-9_.+-]*-[0-9]+(?:\.[0-9]+)+",
        "pts/c-ray-2.0.0",
    )
    options = _checked("options", params["options"], r"[A-Za-z0-9_./ =;,+-]*", "''")
    data = _checked("data", params["data"], r"/[^\n]*", "/home/me/.phoronix-test-suite").rstrip("/")
    runs = {"FORCE_TIMES_TO_RUN": str(params["runs"])} if params["runs"] else {}
    # All combinations would win over a choice.
    every = "<RunAllTestCombinations>{}</RunAllTestCombinations>"
    configuration = _CONFIGURATION
    if options:
        configuration = configuration.replace(every.format("TRUE"), every.format("FALSE"))
    folder = f"suite/installed-tests/{profile.split('/')[0]}"
    return replace(
        _SUITE,
        arguments=("batch-run", profile),
        needs_bytes=params["space_bytes"],
        prepare=(
            ToolStep("mkdir", ("-p", folder)),
            ToolStep("tee", ("suite/user-config.xml",), configuration),
            ToolStep("cp", ("-r", f"{data}/installed-tests/{profile}", folder)),
            ToolStep("cp", ("-r", f"{data}/test-profiles", "suite")),
        ),
        after=(ToolStep("cat", (f"suite/test-results/{_NAME}/composite.xml",)),),
        environment={
            **_SUITE.environment,
            **runs,
            **({"PRESET_OPTIONS": options} if options else {}),
        },
    )


def _parse(output: Output) -> list[Sample]:
    check_ending(output)
    start = output.stdout.find("<?xml ")
    if start < 0:
        notices = re.findall(r"\[(?:PROBLEM|NOTICE|ERROR)\] ([^\n]+)", output.stdout)
        words = f" It printed: '{notices[-1].strip()[:200]}'." if notices else ""
        raise ToolError(f"it has left no results.{words}")
    try:
        suite = read_composite(output.stdout[start:])
    except ValueError as error:
        raise ToolError(f"its results are not understood: {error}.") from error
    if suite.failed:
        raise ToolError(f"its results are not whole: {suite.failed[0]}.")
    samples = [
        Sample(
            _METRICS[result.proportion],
            fmean(result.values),
            factors={"test": result.test, "arguments": result.arguments, "unit": result.scale},
        )
        for result in suite.results
        if result.proportion in _METRICS
    ]
    if not samples:
        raise ToolError("its results have no figure with a direction.")
    return samples


ADAPTER = adapter(
    "phoronix",
    "Phoronix Test Suite: an installed test profile in batch mode",
    resource=Resource.SEVERAL,
    tool="phoronix-test-suite",
    minimum="10.0",
    install="apt-get install php-cli php-xml, and the suite of phoronix-test-suite.com in PATH",
    source="Larabel, Phoronix Test Suite, phoronix-test-suite.com",
    version=r"Phoronix Test Suite v([0-9]+\.[0-9]+(?:\.[0-9]+)*)",
    version_command=_SUITE,
    params=(
        text(
            "profile",
            "system/compress-7zip-1.0.0",
            "Test profile with its version, which is installed.",
        ),
        text("options", "", "Choice of its options (PRESET_OPTIONS); empty runs all combinations."),
        whole("runs", 0, 0, 1_000, "Runs of each test; 0 leaves it to the profile."),
        text(
            "data",
            "/var/lib/phoronix-test-suite",
            "Folder of installed tests and profiles: ~/.phoronix-test-suite of a user.",
        ),
        whole("space_bytes", 1 << 30, 0, 1 << 50, "Disk space, checked before the run.", "bytes"),
    ),
    metrics=tuple(
        MetricSpec(
            *(name, "none", better, Shape.SCALAR, True),
            "Mean over the runs of a test, in its own `unit`, by `test` and `arguments`.",
        )
        for name, better in zip(_METRICS.values(), (Better.HIGHER, Better.LOWER), strict=True)
    ),
    command=_command,
    parse=_parse,
    overhead="as the test profile states",
    measures="What a test profile measures; `unit` has the suite's words for it.",
    how="""
The installed test is copied into a scratch folder and run there by `batch-run`, with a
configuration of its own: results are read from its composite.xml and removed with the folder.
Runs of a test are averaged as the suite does.""",
    truth="A test that prints a set number has that result.",
    cross_check="""
The adapters of the same tools without the suite (`7zip`, `openssl`, `fio`); `nephoscope import`
reads result files of the suite.""",
    overhead_page="As the test profile states; php for the suite itself.",
    caveats="""
Nephoscope never installs a profile: that downloads programs, and as root the suite installs
packages of the system. Install it with `phoronix-test-suite batch-install PROFILE` as a user
without rights. Where the probe is root, tests run as `nobody`, so that they have to be readable
for all. A profile is a program: run those of people whom you trust. Lines of a graph over time
are left out. The suite is not in Debian 12; the captures are of version 10.8.6, run from its
source with two local profiles; set-ups for tests do not install it.""",
)
