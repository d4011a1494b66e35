"""What the tests of trainers share: garbage collectors that do not search what trainers import."""

import gc

import pytest


@pytest.fixture(autouse=True)
def quick_collections():
    """Leaves alone what is there already: the Trainer of Hugging Face collects garbage with every run."""
    gc.freeze()
