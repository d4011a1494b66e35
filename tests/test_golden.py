"""Plans by their fingerprints: the same on every platform and in every version, unless a change means to change them.

Where it is, `python tests/test_golden.py` prints the table anew.
"""

import itertools
from functools import partial

import pytest

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy

EIGHT, ATTENTION = lw.FixedSize(8), lw.Quadratic(linear=0.3, quadratic=0.007)
STRATEGIES = {
    **{
        name: parse_strategy(name, cut=lw.FixedSize(16))
        for name in (
            *("random", "sorted", "semi-sorted:0.1", "alternated:58", "windowed:256"),
            *("bucketed:256", "optimal:6", "uniform:6", "quantile:6", "exponential:6", "mxnet:6", "max-entropy:0.05"),
        )
    },
    "budget": lw.Batching(budget=20_000, padding=0.1),
    "dynamic": lw.Batching(order=lw.SemiSorted(), cut=lw.DynamicSize(4), deal=lw.Mixed()),
    "portions": lw.Batching(order=lw.Bucketed(buckets=5), cut=EIGHT, deal=lw.Portions()),
    "chunks": lw.Batching(order=lw.Shuffled(), cut=EIGHT, chunks=lw.Chunks(200, step=100), deal=lw.InTurn(tail="drop")),
    "default": lw.Batching(budget=30_000),
    "random-steps": parse_strategy("random-steps", cut=lw.Budget(20_000)),
    "steps-of-eight": lw.Batching(order=lw.Shuffled(), cut=EIGHT, deal=lw.RandomSteps()),
    "stratified": lw.Batching(budget=20_000, padding=0.05, deal=lw.Stratified()),
    "rows": lw.Batching(cut=lw.Rows(9_000, rows=4)),
    "rows-best-fit": lw.Batching(cut=lw.Rows(9_000, rows=4, by="best-fit"), cost=ATTENTION),
    "steps-of-rows": lw.Batching(cut=lw.Rows(9_000, rows=4), cost=ATTENTION, deal=lw.RandomSteps()),
    "multiples": lw.Batching(
        cut=lw.Budget(20_000, multiple_of=8, count_multiple_of=4), padding=0.1, deal=lw.Stratified()
    ),
    "steps-of-multiples": lw.Batching(
        cut=lw.Budget(20_000, multiple_of=8, count_multiple_of=8), order=lw.Shuffled(), deal=lw.RandomSteps()
    ),
}

# Epoch 0 on 1 and on 4 ranks, then epoch 1 on 1 and on 4 ranks.
GOLDEN = """
random 0da1dc69d6986644 f128a0ed603b1235 8ce2f414d8755a78 d0a2cac4664804a0
sorted 3012c98728c97477 960f4660d280edce bee3030cecdb8d1e 94407792ff2b4075
semi-sorted:0.1 010997f8c415391c 525149a02ed84b2d 664f1cf89e4a88bc 8d4b68c548562aaa
alternated:58 27bed45be6338bf8 ab8ec803db3329c7 0322a4632a330080 c46748ad0fa89b55
windowed:256 04aea511083f5160 c306d9281eef0b0e 662dbed31673146f afc50371843d2977
bucketed:256 084f35c2009bcaa7 39bb4998136b44d7 131b012e49c27d59 8e0354ba525a6cf2
optimal:6 7fbcda05707ffaaa 8a14389376ef7dd5 2e350460ee2ecc03 3c31e55c7b4093a3
uniform:6 0a831baa2604eb55 8b859fe28d91518f 3f88b584dcb1bc51 f3b08ad8442017f9
quantile:6 9ddd83438528da32 2448774ca84304a7 2abd6baae0d864ba d4f76b8fe5199f2b
exponential:6 a5baea997d0c7107 532aa6194449a1cf 11b119bf9ceff8ad 8adf236e821fc6f0
mxnet:6 54871b794df47ae8 101e6e12c7981c18 beb5b0a8a12eb51d 5e63999c01041906
max-entropy:0.05 933e7c6f7f3d0926 f6a7d9dd33ecc7d5 152e3fbde4203d74 f18f221cf575f56d
budget aa4c4effee15cb58 03d5198134148dff 5151683dde9afe11 788863ea867556ef
dynamic 3d6b760e34f6e610 2ce5ff1e1888a1cf 31b6fe7cd3c4ed0b f6712001131477cf
portions 91d1a7b0d5a580c0 f0d46de5361514d2 a97aa7d8fdf568cf d49f2a34798d7fe2
chunks 4e4a5e3e81990cfe 0a79e185320a6204 a4f9fef99cc8b940 41e0acc4f6383c24
default b883a257536e5731 0059c5000381527a 05c6e458a7c776ad 6bc793d8774546f1
random-steps 022c98a138265ba7 7b088be048b0fd2a 34dccef16253df05 b156ba731ec3aadb
steps-of-eight 7963be275d6d2e6e 4d6349cecceb2abd 1d27f203644158bd 196a69ac46acd61f
stratified 7d8475c8ddd282ed 64c256aad7f49e7c 974b03b4a27e093e 77bf09946071f224
rows b469b90d46d27f4e daf572e422aa3707 120cc379fb01d18a d582f6b169ce0881
rows-best-fit c3457ca5118c57fb 3210048a302f751d 11fccf787fbbabe7 1a1afe20e500c2bb
steps-of-rows c490e9b4aba47528 d8569bbc91e6bf7e ab282e713333d536 1cd69c090e29f25d
multiples 15e727237558a6f7 c823a40344ae2f3c 737d8c8606be1156 af82c6c12db3e498
steps-of-multiples ebf15999a45c6ef6 ce50c788960cf37c 38a4567726c9c98a 61d6fe5672907897
"""


def rows_of(table):
    return [line.split() for line in table.strip().splitlines()]


def fingerprints(strategy):
    lengths = lw.example_lengths("long-tailed", count=2_000)
    plan_for = partial(lw.make_plan, lengths, STRATEGIES[strategy], seed=1)
    plans = [plan_for(epoch=epoch, world_size=ranks) for epoch, ranks in itertools.product((0, 1), (1, 4))]
    return [plan.fingerprint() for plan in plans]


@pytest.mark.parametrize("row", rows_of(GOLDEN), ids=lambda row: row[0])
def test_a_plan_is_what_it_was(row):
    assert fingerprints(row[0]) == row[1:]


def test_the_table_holds_every_strategy():
    assert [row[0] for row in rows_of(GOLDEN)] == [*STRATEGIES]
    every = [fingerprint for row in rows_of(GOLDEN) for fingerprint in row[1:]]
    assert len(set(every)) == len(every) == 4 * len(STRATEGIES)


# What two runs on other ranks left, and windows: whoever goes on with a checkpoint of before must have them again.
LATER = """
default 3dc358544db514b3 9c2210cf4099604c cc443c8de037f981
budget 8a3a0e701ffc8340 694bed956f0a5f7d 57bcfcbead5da8b6
stratified 732e619a336b7464 5a59f036b03269b5 7223c0d1d062df57
portions bebc0ba295eafa00 c9e5916ec1dfd855 a3e5a7c08e3642ba
random-steps 4acdad1b1ae1da52 90ecc7fb499ab22f f50fb687d613786e
dynamic 71acfbb6dc189abd
optimal:6 53dd479be66eeea6 af6e4a8cb977e7c0 04d4ebca638a0c70
rows f94a86841428001b 572bf7432088ab62 d658e5f2a46b13ee
multiples 66d0a4d191713b0d 129ffaab5ae4806f e7430a33ac1fc5ed
"""


def later_fingerprints(strategy):
    lengths = lw.example_lengths("speech", count=600)
    batching = STRATEGIES[strategy]
    rest = lw.make_plan(lengths, batching, seed=3, epoch=2, world_size=2, after=[(4, 1, 1), (3, 1, 1)])
    if strategy == "dynamic":  # windows refuse it
        return [rest.fingerprint()]
    windows = lw.Windows(lengths, batching, window=256, block=16, seed=3, world_size=2)
    return [rest.fingerprint(), *(windows.plan(2, number).plan.fingerprint() for number in range(2))]


@pytest.mark.parametrize("row", rows_of(LATER), ids=lambda row: row[0])
def test_what_is_left_and_what_is_planned_window_by_window_is_what_it_was(row):
    assert later_fingerprints(row[0]) == row[1:]


# Epochs that take sequences more or less often than once, and what other ranks left of one.
OF_COPIES = """
default db8bc03f842b099d 2de05f60db4eb391 a1bfad9df5cd7010
budget f4dbcd0494d612e5 d378794b414bc5df 4e6b76d33714a13a
stratified 0a8bb02fc374cf54 54ec407fb3e1546b 08ed04ed50b46209
portions 557a3adb45207956 638754df56e8eb07 3ecb677a524bf149
random-steps 6f2c26fac45ab874 f2831eeed1acaf1e a36bdabb67cdca42
optimal:6 c284fb9f4be84349 ca0810f30ac35aa5 9a821552ab7ca460
rows 6e106c687e1946c2 efb3b2192f64f424 94a6ba80cb5defad
chunks 756f6159440959b8 6d293c80015ffb89 7ee5b43936523590
multiples 6e860101b3d0b9db 9fab59b67a42cbdc 6c9f811e2f1f1130
"""


def fingerprints_of_copies(strategy):
    lengths = lw.example_lengths("speech", count=600)
    options = {"seed": 3, "times": [0.4] * 400 + [2.5] * 160 + [1 / 3] * 40}
    plan_for = partial(lw.make_plan, lengths, STRATEGIES[strategy], **options)
    plans = plan_for(epoch=0), plan_for(epoch=10**6), plan_for(epoch=2, world_size=2, after=[(4, 1, 1), (3, 1, 1)])
    return [plan.fingerprint() for plan in plans]


@pytest.mark.parametrize("row", rows_of(OF_COPIES), ids=lambda row: row[0])
def test_plans_of_copies_are_what_they_were(row):
    assert fingerprints_of_copies(row[0]) == row[1:]


if __name__ == "__main__":
    for name in STRATEGIES:
        print(name, *fingerprints(name))
    for find, table in ((later_fingerprints, LATER), (fingerprints_of_copies, OF_COPIES)):
        for name, *_ in rows_of(table):
            print(name, *find(name))
