"""What was seen: samples in Parquet, one file a trial, and the questions asked of them.

The heavy libraries are loaded by the functions that need them: `nephoscope runs` reads manifests
only.
"""

from nephoscope.store.holder import ABANDONED as ABANDONED
from nephoscope.store.holder import WITHOUT_RESULTS as WITHOUT_RESULTS
from nephoscope.store.holder import Holder as Holder
from nephoscope.store.holder import identity as identity
from nephoscope.store.manifest import FAILED as FAILED
from nephoscope.store.manifest import FINISHED as FINISHED
from nephoscope.store.manifest import MEASURED as MEASURED
from nephoscope.store.manifest import RUNNING as RUNNING
from nephoscope.store.manifest import STATES as STATES
from nephoscope.store.manifest import RunManifest as RunManifest
from nephoscope.store.manifest import is_number as is_number
from nephoscope.store.run import StoredRun as StoredRun
from nephoscope.store.run import counts as counts
from nephoscope.store.store import Store as Store
from nephoscope.store.store import default_path as default_path
