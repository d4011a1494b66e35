"""What all tests share: no deadlines, and a process of their own for the tests of JAX.

A busy machine makes an example of Hypothesis late, and no code wrong.

JAX warns when a process that imported it forks, as a DataLoader with workers does: its tests run in another process.

`tests/test_in_jax_process.py` starts that one.
"""

import gc
import os

from hypothesis import settings

OF_JAX = (
    "src/lengthwise/jax.py",
    "src/lengthwise/recipes/compiled/jax_lstm.py",
    "tests/recipes/test_compiled.py",
    "tests/test_jax.py",
)

# A loader's worker is a fork. Were it to collect the garbage of the tests before it, it would end their process groups,
# and wait without end for threads that it does not have. So a fork leaves alone what it inherits.
os.register_at_fork(after_in_child=gc.freeze)

settings.register_profile("without-deadline", deadline=None)
settings.load_profile("without-deadline")

collect_ignore = [] if os.environ.get("LENGTHWISE_TESTS_OF_JAX") else list(OF_JAX)
