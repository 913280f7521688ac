"""`python -m nephoscope` is the same program as `nephoscope`."""

import sys

from nephoscope.cli import main

if __name__ == "__main__":
    sys.exit(main())
