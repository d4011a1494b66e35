"""JAX warns when a process that imported it forks, as a DataLoader with workers does: its tests run in another process.

`tests/test_in_jax_process.py` starts that one.
"""

import os

OF_JAX = (
    "src/lengthwise/jax.py",
    "src/lengthwise/recipes/compiled/jax_lstm.py",
    "tests/recipes/test_compiled.py",
    "tests/test_jax.py",
)

collect_ignore = [] if os.environ.get("LENGTHWISE_TESTS_OF_JAX") else list(OF_JAX)
