"""Formats that one version of the program writes and another one reads, with their versions.

This table is the only place of a version number: what writes a format takes it from here, and what
reads a format asks here whether it can. docs/explanation/store-format.md has the policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

REFUSED, REBUILT = "refused", "rebuilt"
"""What happens to a later version: one sentence, or the file is derived and is made again."""


@dataclass(frozen=True, slots=True)
class FormatVersion:
    """A format. The program reads the versions from `earliest` to `version`, and writes `version`.

    name: what such a file is called in sentences. files: where it is, in documents. key: that has
    the version. converted_in: module that reads earlier versions and files of version 1 that lack
    a key; empty where all versions are read alike. later: REFUSED or REBUILT.
    """

    id: str
    name: str
    files: str
    key: str
    version: int = 1
    earliest: int = 1
    converted_in: str = ""
    later: str = REFUSED

    def is_readable(self, version: Any) -> bool:
        """States whether this program reads a version."""
        is_number = isinstance(version, int) and not isinstance(version, bool)
        return is_number and self.earliest <= version <= self.version

    def is_later(self, version: Any) -> bool:
        """States whether a version is of a later program."""
        is_number = isinstance(version, int) and not isinstance(version, bool)
        return is_number and version > self.version

    def refusal(self, where: object, version: Any, writer: str = "") -> tuple[str, str]:
        """Returns the sentence on a version that this program does not read, and the next step.

        where: beginning of the sentence, such as a path. writer: version of the program that wrote
        the file; empty where it is unknown.
        """
        written_by = f", written by nephoscope {writer}" if writer else ""
        step = "that version or a newer one" if writer else "a newer version of nephoscope"
        return (
            f"{where} has format version {version!s:.20}{written_by}; this program reads versions "
            f"up to {self.version}.",
            f"Install {step}.",
        )


RUN = FormatVersion(
    "run",
    "run",
    "`runs/RUN/`: `manifest.json`, `journal.jsonl`, `trials/`",
    "`version` of `manifest.json`",
    version=2,
    converted_in="store.merging",
)
"""Version 2 merges the trials of a run that ended; see store.merged_trials. The version is that of
all files of a run: it rises where an earlier program would misread one of them."""
RUN_SUMMARY = FormatVersion(
    "run-summary",
    "summary of a run",
    "`runs/RUN/summary.json`",
    "`version`",
    converted_in="store.summary",
    later=REBUILT,
)
DAY_FILE = FormatVersion(
    "day-file",
    "day file",
    "`days/…/YYYY-MM-DD.jsonl`",
    "`version` of each line",
    version=RUN_SUMMARY.version,
    converted_in="store.summary",
)
"""Its lines are summaries of runs, but the runs are gone: they cannot be made again."""
RUN_LIST = FormatVersion(
    "run-list", "list of runs", "`runs/.index.jsonl`", "`index` of the first line", later=REBUILT
)
OBJECT_STORE = FormatVersion(
    "object-store",
    "store on object storage",
    "`store.json`, `index/` and `days.json` of a bucket",
    "`version` of each",
)
WATCH = FormatVersion(
    "watch",
    "watch",
    "`watches/NAME/`: `watch.json`, `events/`",
    "`version` of `watch.json`",
    converted_in="features.watch.folder",
)
MARKET = FormatVersion(
    "market",
    "catalogue of server types",
    "`market/catalogue.parquet`, `market/prices.json`",
    "`version` of the metadata",
)
DOCUMENT = FormatVersion(
    "document",
    "JSON document",
    "`runs/RUN/report/result.json`, `--json`, `export --format jsonl`",
    "`schema_version`",
    later=REBUILT,
)
"""It rises when a key is removed or changes its meaning; new keys do not raise it."""
CAPACITY = FormatVersion(
    "capacity",
    "measured capacity",
    "`capacity_file` of `cost work` and `size`",
    "`schema_version`",
    version=DOCUMENT.version,
)
"""The document of `capacity --json`, which cannot be made again without measuring."""
EVIDENCE = FormatVersion(
    "evidence",
    "evidence bundle",
    "file of `sla evidence`",
    "`bundle` of its `manifest.json`",
    converted_in="features.sla.evidence",
)
LAB_STATE = FormatVersion(
    "lab-state", "lab", "`/run/nephoscope/LAB/state.json`", "`version`", later=REFUSED
)
RENTAL = FormatVersion(
    "rental",
    "rental",
    "`nephoscope/rentals/NAME/rental.json` of the state folder",
    "`version`",
    later=REFUSED,
)
LAB_IMAGE = FormatVersion(
    "lab-image",
    "guest image",
    "`images/KEY/` of the cache",
    "part of the digest KEY",
    later=REBUILT,
)
ACCELERATORS = FormatVersion(
    "accelerators",
    "list of accelerators",
    "`accelerators.json` of the cache",
    "`version`",
    converted_in="measure.lab.platforms.qemu",
    later=REBUILT,
)
ANNOUNCEMENT = FormatVersion(
    "announcement",
    "announcement of a run",
    "`/dev/shm/nephoscope-runs/RUN.PID`",
    "`version`",
    converted_in="measure.runs.concurrent_runs",
)
PROBE_PROTOCOL = FormatVersion(
    "probe-protocol",
    "probe",
    "output of `nephoscope-probe describe`, `contracts/benchmarks.json`",
    "`protocol`",
    version=3,
    earliest=3,
)
"""Package and probe are built together, on remote hosts too: no other version is read."""
RECORDING = FormatVersion(
    "recording",
    "recording",
    "file of `export --format recording`, `file` of a recorded target",
    "`recording` of the first line",
)
PLAN = FormatVersion("plan", "plan", "file of `run`, `watch`; plan of a manifest", "`version`")
TOPOLOGY = FormatVersion("topology", "topology", "file of `lab up`", "`version`")
SCENARIO = FormatVersion("scenario", "scenario", "file of `simulate`", "`version`")
STUDY = FormatVersion("study", "study", "`study.yaml` of a study", "`version`")
PRICE_BOOK = FormatVersion(
    "price-book", "price book", "file of `cost prices --output`, `--book`", "`version`"
)
WORK_OPTIONS = FormatVersion("work-options", "list of options", "file of `cost work`", "`version`")
OFFERS = FormatVersion("offers", "list of offers", "file of `cost utility`", "`version`")
TARIFF = FormatVersion("tariff", "tariff", "file of `cost tariff`", "`version`")
APPLICATION = FormatVersion(
    "application", "description of an application", "file of `size`", "`version`"
)
CONTRACT = FormatVersion("contract", "contract", "file of `sla`", "`sla`")

FORMATS: Sequence[FormatVersion] = (
    RUN,
    RUN_SUMMARY,
    DAY_FILE,
    RUN_LIST,
    OBJECT_STORE,
    WATCH,
    MARKET,
    DOCUMENT,
    CAPACITY,
    EVIDENCE,
    LAB_STATE,
    RENTAL,
    LAB_IMAGE,
    ACCELERATORS,
    ANNOUNCEMENT,
    PROBE_PROTOCOL,
    RECORDING,
    PLAN,
    TOPOLOGY,
    SCENARIO,
    STUDY,
    PRICE_BOOK,
    WORK_OPTIONS,
    OFFERS,
    TARIFF,
    APPLICATION,
    CONTRACT,
)
"""Every format: first what the program stores, then what people write and the program reads."""
WRITTEN_BY_PEOPLE = FORMATS[FORMATS.index(PLAN) :]


def written_by_people(name: str) -> FormatVersion | None:
    """Returns the format of a file that a person wrote, by its name in sentences."""
    return next((version for version in WRITTEN_BY_PEOPLE if version.name == name), None)
