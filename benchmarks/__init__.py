"""Makes `python -m benchmarks.planning` work like `python benchmarks/planning.py`."""

import sys
from pathlib import Path

# Benchmarks import `record` and each other from this folder.
sys.path.insert(0, str(Path(__file__).parent))
