"""The features of the program, in the order of help, findings, answers and report sections.

docs/contributing/feature.md describes how to add one. Sections stand in the order of their regions
first.
"""

from __future__ import annotations

from nephoscope.cli.commands.feature import EMULATION, FILES, HOST, MEASURING, STORED_RUNS
from nephoscope.features.advise.feature import ADVISE
from nephoscope.features.balance.feature import BALANCE
from nephoscope.features.census.feature import CENSUS
from nephoscope.features.clients.feature import CLIENT_SERVER
from nephoscope.features.cloud.feature import CLOUD
from nephoscope.features.clusters.feature import CLUSTERS
from nephoscope.features.compaction.feature import COMPACTION
from nephoscope.features.comparison.feature import COMPARISON
from nephoscope.features.cost.feature import COST
from nephoscope.features.credits.feature import CREDITS
from nephoscope.features.crosscheck.feature import CROSS_CHECK
from nephoscope.features.datasets.feature import DATASETS
from nephoscope.features.duet.feature import DUET
from nephoscope.features.durability.feature import DURABILITY
from nephoscope.features.elastic.feature import ELASTIC, GROWTH
from nephoscope.features.engines.feature import ENGINES
from nephoscope.features.experiments.feature import EXPERIMENT
from nephoscope.features.fleet.feature import FLEET
from nephoscope.features.history.feature import HISTORY
from nephoscope.features.isolation.feature import ISOLATION
from nephoscope.features.known_machines.feature import KNOWN_MACHINES
from nephoscope.features.load.feature import GENERATOR, LOAD
from nephoscope.features.machine.feature import BENCHMARKS, LIMITS, MACHINE, PROPERTIES
from nephoscope.features.market.feature import MARKET
from nephoscope.features.migration.feature import MIGRATION
from nephoscope.features.network.feature import NETWORK
from nephoscope.features.parallel.feature import PARALLEL
from nephoscope.features.platforms.feature import BOOTS, SYSTEM_CALLS
from nephoscope.features.pricing.feature import PRICING
from nephoscope.features.rank.feature import RANK, RANKING
from nephoscope.features.scaling.feature import SCALING
from nephoscope.features.scheduler.feature import SCHEDULER
from nephoscope.features.simulation.feature import SIMULATION
from nephoscope.features.sizing.feature import SIZING
from nephoscope.features.sla.feature import SLA
from nephoscope.features.studies.feature import STUDIES
from nephoscope.features.traffic.feature import TRAFFIC
from nephoscope.features.watch.feature import WATCH
from nephoscope.report.feature import COUNTERS, EXECUTION, REPORT
from nephoscope.results.feature import Feature
from nephoscope.serve.feature import SERVE

FEATURES: tuple[Feature, ...] = (
    MEASURING,
    MACHINE,
    DUET,
    DURABILITY,
    EXPERIMENT,
    CLIENT_SERVER,
    LIMITS,
    # Before the generator, whose figures under a load that varies are no answer.
    ELASTIC,
    GROWTH,
    GENERATOR,
    BALANCE,
    ISOLATION,
    PARALLEL,
    CLUSTERS,
    SCHEDULER,
    BENCHMARKS,
    EMULATION,
    SIMULATION,
    NETWORK,
    LOAD,
    PROPERTIES,
    CENSUS,
    FLEET,
    CREDITS,
    CLOUD,
    RANKING,
    SYSTEM_CALLS,
    BOOTS,
    MIGRATION,
    CROSS_CHECK,
    SLA,
    SCALING,
    TRAFFIC,
    COST,
    PRICING,
    MARKET,
    SIZING,
    KNOWN_MACHINES,
    ADVISE,
    STORED_RUNS,
    COMPARISON,
    RANK,
    HISTORY,
    WATCH,
    STUDIES,
    COMPACTION,
    ENGINES,
    DATASETS,
    FILES,
    SERVE,
    HOST,
    EXECUTION,
    COUNTERS,
    REPORT,
)
