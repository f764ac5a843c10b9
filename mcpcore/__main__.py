"""``python -m mcpcore`` is the command ``mcpcore``."""

import sys

from mcpcore.cli import main

if __name__ == "__main__":
    sys.exit(main())
