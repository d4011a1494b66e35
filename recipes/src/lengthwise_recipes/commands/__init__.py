"""The commands `lengthwise study` and `lengthwise reproduce`, which the library finds by their entry points.

They use what `lengthwise.cli` offers to commands of other packages: `parser`, `show` and `strategies`.
"""

import os

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # silences PyTorch's profiler
