"""`python -m lengthwise`, if the command `lengthwise` is not on the path."""

import sys

from lengthwise.cli import main

sys.exit(main())
