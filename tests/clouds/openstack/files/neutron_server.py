"""Starts neutron's server with every mapper configured.

Without that its first requests meet half of the models and are answered by 500.
"""

import sys

from neutron.cmd.eventlet import server
from neutron.db.migration.models import head  # noqa: F401 (imports every model)
from sqlalchemy import orm

orm.configure_mappers()
sys.exit(server.main())
