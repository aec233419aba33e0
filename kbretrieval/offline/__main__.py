"""`python -m kbretrieval.offline`."""

import sys

from kbretrieval.offline.cli import main

if __name__ == "__main__":
    sys.exit(main())
