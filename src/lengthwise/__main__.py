"""`python -m lengthwise`, for when the script is not on the path."""

import sys

from lengthwise.cli import main

sys.exit(main())
