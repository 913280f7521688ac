"""Limits on what is read from files, stores, probes and the command line.

What exceeds one is refused in one sentence, before anything of it runs.
"""

from __future__ import annotations

TARGETS = 1_000
"""Targets of a plan."""

LEVELS = 1_000
"""Levels of a factor."""

SETTINGS = 1_000
"""Settings of a plan after its fraction and exclusions."""

CROSSED_SETTINGS = 200_000
"""Combinations of levels before a fraction or exclusions reduce them."""

ALTERNATIVES = 64_000
"""Settings of a plan times the targets that run each."""

ROUNDS = 100_000
"""Rounds of a plan."""

SECONDS = 30 * 86_400.0
"""Seconds of a budget, and of every other time in a plan: 30 days."""

INCLUDED_FILES = 100
"""Files that a plan includes, directly or through other files."""

INCLUDE_DEPTH = 8
"""Files that include one another in a row."""

LAB_HOSTS = 200
"""Hosts of a lab."""

VOLUMES = 8
"""Volumes of a rented machine."""

VOLUME_BYTES = 1 << 50
"""Of one of them."""

JUMP_HOSTS = 8
"""Hosts on the way to an ssh target, itself included."""

TEXT_BYTES = 1 << 20
"""Bytes of a plan, topology, scenario, latency matrix or list of counts: 1 MiB."""

YAML_DEPTH = 50
"""Levels of nesting in a YAML file."""

YAML_NODES = 250_000
"""Values of a YAML file, counting each alias with all that it stands for."""

NUMBER_DIGITS = 30
"""Digits of a whole number in a YAML file."""

IMPORT_BYTES = 256 << 20
"""Bytes of a file of samples to import, or of numbers to compare: 256 MiB."""

IMPORT_LINE_BYTES = 1 << 20
"""Bytes of a line of a file to import: 1 MiB."""

IMPORT_SCORES = 20_000
"""Scores of a database that are imported into one run."""

RECORDING_BYTES = 64 << 20
"""Bytes of a recording that targets answer from: 64 MiB."""

TRIAL_LINES = 300_000
"""Lines (samples, most of all) that a probe prints for one trial."""

TRIAL_BYTES = 64 << 20
"""Bytes that a probe prints for one trial: 64 MiB."""

SLA_SLOTS = 50_000_000
"""Slots of a period of a service level agreement."""

SLA_PERIODS = 10_000
"""Periods between the first and the last event of a service."""

SLA_EVENTS = 200_000_000
"""Events of service levels that are judged together."""

MARKET_TYPES = 50_000
"""Server types of a folder of published measurements."""

MARKET_TYPE_FILES = 5_000
"""Files of one of them."""

MARKET_FILE_BYTES = 8 << 20
"""Bytes of one of its files that is read: 8 MiB."""

MARKET_CATALOGUE_BYTES = 1 << 30
"""Bytes of the stored figures of all server types: 1 GiB, some 100,000,000 figures."""

MARKET_PRICES_BYTES = 256 << 20
"""Bytes of the stored prices: 256 MiB, some 1,000,000 of them."""

MARKET_FIGURES = 20_000
"""Figures of one server type."""

MANIFEST_BYTES = 64 << 20
"""Bytes of a run's manifest: 64 MiB. A run of 1,000 settings has 1 MiB."""

JOURNAL_BYTES = 256 << 20
"""Bytes of a run's journal: 256 MiB, some 500,000 trials."""

RECORDS_BYTES = 1 << 30
"""Bytes of the records of a run's trials: 1 GiB, some 500,000 trials."""

TRIAL_FILE_BYTES = 256 << 20
"""Bytes of the file of one trial: 256 MiB."""

SAMPLES_BYTES = 64 << 30
"""Bytes of the samples of a run: 64 GiB, read in parts."""

REPORT_BYTES = 1 << 30
"""Bytes of a file of a run's report, whose digest is compared in parts: 1 GiB."""

RUN_LIST_BYTES = 256 << 20
"""Bytes of the list of a store's runs: 256 MiB."""

DAY_FILE_BYTES = 64 << 30
"""Bytes of a day file, which is read line by line: 64 GiB."""

STATE_BYTES = 64 << 20
"""Bytes of a file of this program's own state: a rental, a lab, a watch, a mirror of a store."""
