"""Plans under JAX: batches of few fixed shapes, so that `jax.jit` compiles once for each shape.

Batches are NumPy arrays, which `jax.jit` accepts. `map(jax.device_put, ...)` puts them on a device, and on several
hosts `jax.make_array_from_process_local_data` makes them global.
"""

try:
    import jax as _jax  # noqa: F401
except ImportError as _error:
    raise ImportError("lengthwise.jax needs JAX: pip install jax") from _error

from lengthwise.jax.collate import PadCollate, PaddedSequences
from lengthwise.jax.epoch import Dataset, batches
from lengthwise.jax.rows import PackedRows, RowCollate, block_mask

__all__ = ["Dataset", "PackedRows", "PadCollate", "PaddedSequences", "RowCollate", "batches", "block_mask"]


def __dir__() -> list[str]:
    # Hides the submodules from tab completion.
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
