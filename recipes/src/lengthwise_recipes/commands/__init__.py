"""The commands `lengthwise study` and `lengthwise reproduce`: the library finds them by their entry points.

They stand on what `lengthwise.cli` gives to commands of other packages: `parser`, `show` and `strategies`.
"""

import os

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or PyTorch's profiler says when it starts and stops
