"""`python -m nephoscope` is the same program as `nephoscope`."""

import sys

from nephoscope.app import main

if __name__ == "__main__":
    sys.exit(main())
