"""A trainer that resumes by throwing batches away, as Accelerate's skip_first_batches does: those count as had."""

import pytest
from torch.utils.data import DataLoader, Sampler

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=60)
BATCHING = lw.Batching(cut=lw.FixedSize(5))


class Skipping(Sampler):
    """Leaves out the first batches of another sampler."""

    def __init__(self, sampler, skipped):
        self.inner = sampler
        self.skipped = skipped

    def __len__(self):
        return len(self.inner) - self.skipped

    def __iter__(self):
        for number, batch in enumerate(self.inner):
            if number >= self.skipped:
                yield batch


@pytest.mark.parametrize("options", [{}, {"num_workers": 2, "prefetch_factor": 2}])
@pytest.mark.parametrize("skipped", [0, 1, 7])
def test_skipped_batches_are_no_longer_to_be_delivered(skipped, options):
    whole = [batch.tolist() for batch in lw.make_plan(LENGTHS, BATCHING).batches()]
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING)
    loader = DataLoader(range(60), batch_sampler=Skipping(sampler, skipped), collate_fn=list, **options)
    for place, batch in enumerate(loader, skipped + 1):
        assert batch == whole[place - 1]
        assert sampler.delivered == place
        resumed = lw.torch.BatchSampler(LENGTHS, BATCHING)
        resumed.load_state_dict(sampler.state_dict())
        resumed.set_epoch(0)
        assert list(resumed) == whole[place:]


def test_accelerate_skips_so():
    accelerate = pytest.importorskip("accelerate")
    sampler = lw.torch.BatchSampler(LENGTHS, BATCHING)
    loader = accelerate.skip_first_batches(DataLoader(range(60), batch_sampler=sampler, collate_fn=list), 4)
    assert [sampler.delivered for _ in loader] == list(range(5, 13))
