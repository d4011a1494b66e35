"""So that `python -m benchmarks.planning` does what `python benchmarks/planning.py` does."""

import sys
from pathlib import Path

# Where Python looks first for what it runs by its path: benchmarks import `record` and each other from there.
sys.path.insert(0, str(Path(__file__).parent))
