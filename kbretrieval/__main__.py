"""`python -m kbretrieval …` is the same as `kbretrieval …`."""

import sys

from kbretrieval.cli import main

if __name__ == "__main__":
    sys.exit(main())
