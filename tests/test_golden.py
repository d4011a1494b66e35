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
random 0da1dc69d6986644 a37b909e17bd0383 8ce2f414d8755a78 866aeb34ca5f1c02
sorted 3012c98728c97477 bab0e5a2eb33e0d5 bee3030cecdb8d1e 935798d12c10c54c
semi-sorted:0.1 010997f8c415391c 8bf067dc25a3ca38 664f1cf89e4a88bc df5b2f5937da3d92
alternated:58 27bed45be6338bf8 a69220718b3bb448 0322a4632a330080 99cfe9efa4f2deff
windowed:256 04aea511083f5160 a9422f27d8be255c 662dbed31673146f 51e32ea82c90a541
bucketed:256 084f35c2009bcaa7 937cc3429c62c30f 131b012e49c27d59 fded07017e97e030
optimal:6 7fbcda05707ffaaa c30b87876880eaa4 2e350460ee2ecc03 cdbcb6b99298f7a2
uniform:6 0a831baa2604eb55 54d920ffa7d2ff8a 3f88b584dcb1bc51 db9f6959a576d9ed
quantile:6 9ddd83438528da32 bd01afb16e6389dd 2abd6baae0d864ba 846fe7b9ddc6449a
exponential:6 a5baea997d0c7107 2780e8da0300f8c4 11b119bf9ceff8ad 33942722359134b4
mxnet:6 54871b794df47ae8 04ad52cd249ed871 beb5b0a8a12eb51d f072a34049de51fd
max-entropy:0.05 933e7c6f7f3d0926 879f89f84285899b 152e3fbde4203d74 c464cf8906e55a20
budget aa4c4effee15cb58 c0a2c99ed6cf3564 5151683dde9afe11 a60661088a93c86d
dynamic 3d6b760e34f6e610 ef5e29d978c99f02 31b6fe7cd3c4ed0b 82f697df3b36adf3
portions 91d1a7b0d5a580c0 f0d46de5361514d2 a97aa7d8fdf568cf d49f2a34798d7fe2
chunks 4e4a5e3e81990cfe 0a79e185320a6204 a4f9fef99cc8b940 41e0acc4f6383c24
default b883a257536e5731 e478e183b3a6ec99 05c6e458a7c776ad 83e969a6f6a61af9
random-steps 022c98a138265ba7 d2d75265e478393f 34dccef16253df05 536f37e37d636c84
steps-of-eight 7963be275d6d2e6e 603e6c0bbc6a2abb 1d27f203644158bd c604dd7c4a675a54
stratified 7d8475c8ddd282ed 299719bb61e33447 974b03b4a27e093e f6beef03afd0fc4b
rows b469b90d46d27f4e e6a58acfe91988b7 120cc379fb01d18a 5e6cfa41d1b973d6
rows-best-fit c3457ca5118c57fb 12475b3cafb7d8fa 11fccf787fbbabe7 74f2caebd68a1026
steps-of-rows c490e9b4aba47528 ff696fa382c46c5f ab282e713333d536 957949f7ed954e37
multiples 15e727237558a6f7 c5b09b573335bc8d 737d8c8606be1156 cb7c0350089bf3ea
steps-of-multiples ebf15999a45c6ef6 527ec28b21f3de05 38a4567726c9c98a bd2bf3c594280916
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
default f72f37bdfdfef966 7b6f7fe9552585af 38d958cf89721a81
budget 17b3cbf0736dd3bc cf3c6685ebe767ee 5eaa4d41bc679dee
stratified 8d8ad2e0347a8ee2 e0b29d67451343cd 78ab314cdd5c46cb
portions bebc0ba295eafa00 c9e5916ec1dfd855 a3e5a7c08e3642ba
random-steps 2dd9325ba3831a13 e2734192bb58d933 c6a00f5f4a1ba54f
dynamic 9f022454d01fff5e
optimal:6 4ddc7e15148fe58b 9147c485ca249f2b 71ccddf82f09052d
rows 003f88b508b2747b 7f5e4bd5d85cf756 0ef990ea6bb7d78f
multiples 41c0c72c8a5fb341 cfbc67dca313ac78 86368264c9d1c3a4
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
default db8bc03f842b099d 2de05f60db4eb391 e9c187532bbfca46
budget f4dbcd0494d612e5 d378794b414bc5df 37942ae042c2a1e3
stratified 0a8bb02fc374cf54 54ec407fb3e1546b e741df20a977884e
portions 557a3adb45207956 638754df56e8eb07 3ecb677a524bf149
random-steps 6f2c26fac45ab874 f2831eeed1acaf1e 380936e976637dba
optimal:6 c284fb9f4be84349 ca0810f30ac35aa5 b44fcf9f9065be0a
rows 6e106c687e1946c2 efb3b2192f64f424 fccba99e426c566d
chunks 756f6159440959b8 6d293c80015ffb89 7ee5b43936523590
multiples 6e860101b3d0b9db 9fab59b67a42cbdc b9245562a25a0f68
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
