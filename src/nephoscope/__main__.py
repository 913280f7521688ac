"""`python -m nephoscope` is the same program as `nephoscope`."""

import sys

from nephoscope.command_line import main

if __name__ == "__main__":
    sys.exit(main())
