"""Plans by their fingerprints: the same on every platform and in every version, unless a change means to change them.

Where it is, `python tests/test_golden.py` prints the table anew.
"""

import itertools
from functools import partial

import pytest

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy

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
    "portions": lw.Batching(order=lw.Bucketed(buckets=5), cut=lw.FixedSize(8), deal=lw.Portions()),
    "chunks": lw.Batching(
        order=lw.Shuffled(), cut=lw.FixedSize(8), chunks=lw.Chunks(200, step=100), deal=lw.InTurn(tail="drop")
    ),
    "default": lw.Batching(budget=30_000),
    "random-steps": parse_strategy("random-steps", cut=lw.Budget(20_000)),
    "steps-of-eight": lw.Batching(order=lw.Shuffled(), cut=lw.FixedSize(8), deal=lw.RandomSteps()),
    "stratified": lw.Batching(budget=20_000, padding=0.05, deal=lw.Stratified()),
    "rows": lw.Batching(cut=lw.Rows(9_000, rows=4)),
    "rows-best-fit": lw.Batching(
        cut=lw.Rows(9_000, rows=4, by="best-fit"), cost=lw.Quadratic(linear=0.3, quadratic=0.007)
    ),
    "steps-of-rows": lw.Batching(
        cut=lw.Rows(9_000, rows=4), cost=lw.Quadratic(linear=0.3, quadratic=0.007), deal=lw.RandomSteps()
    ),
    "multiples": lw.Batching(cut=lw.Budget(20_000, multiple_of=8, count_multiple_of=4), deal=lw.Stratified()),
    "steps-of-multiples": lw.Batching(
        cut=lw.Budget(20_000, multiple_of=8, count_multiple_of=8), order=lw.Shuffled(), deal=lw.RandomSteps()
    ),
}

# Example, strategy, seed; then epoch 0 on 1 and on 4 ranks, epoch 1 on 1 and on 4 ranks.
GOLDEN = """
speech random 0 5489be8f3ff647e7 4d575555e3e9d78b 963adae223210a10 35575ab56c4983ed
speech sorted 0 d850424e4ad7bbdb f9d07c5b553719bd a320fcce351bc6bc b678543906ce27e9
speech semi-sorted:0.1 0 9a39e7b4b8e1291f 440ac38f79d231eb 8a23314ff5542fae a58d7919bae2a17a
speech alternated:58 0 d459cdef00617ef8 deb19310c5c8431a caa1b26fac06c54a 837f11fb9ac7b11f
speech windowed:256 0 103b0fea0b2cf95d eec436165c6bd8af 56cc2c4425c23495 d3bb2f12eee1106d
speech bucketed:256 0 0c47c8df078773e9 a002a9d172cfa486 2b20601c363aa51d 14aedaa258c8894f
speech optimal:6 0 8d23b25f518fd29e 6a68126df3227424 6ceb3021c903ba07 9b77d186f8b07aa3
speech uniform:6 0 3302b853de45531e 649932a5acf510e3 c144c800f935520e bb6bd7e9ff8ace56
speech quantile:6 0 a9c6ee00b13a7ade 1418feb0bd8762a3 6381f7a929eb4ab6 a70915380667dd19
speech exponential:6 0 7a4a76ce9c06e6ae c32af76c13a1abb6 5a939f8b436a7fb6 7f78d45bbb2280ef
speech mxnet:6 0 27eb32d25b4b3191 38c83d88372845be f93eedf69187a409 50dc1cfa6240bee0
speech max-entropy:0.05 0 02993c273ac8b6e9 1d2a411adf86a666 5aff8999e2c636f8 b9b7c3a32322a231
speech budget 0 c83b1453138f4bda 73d695c568897f2a f6989b7cffe51891 ed20d2eaaf3f46e4
speech dynamic 0 d7644e63e5b6e32a d9fc52661f22856a 8fbb6bb2edae2819 9453b82c319921bc
speech portions 0 d2b9aeb377a4ff1c 19fad4c01de46619 12b52c126bc6bbd5 0428b5007d82166e
speech chunks 0 fd0264698356d0f1 777283d70af89ca6 c5cde60f3cb26eae bb9068a980309343
speech default 0 96efbcceedd5fc7d d93ac3bfb5ca5b54 0cc2c69d425debb0 0fb16aa986fd21e3
speech random-steps 0 4957de069c6a9522 8a4ace4064270cd6 ad176f320f567b46 0e4fcd2a0b95fea3
speech steps-of-eight 0 74013367418a9726 0e74052d396ae955 753a391ae492b4ed bcd5b4a86934744b
speech stratified 0 7a69ac419dbb37f0 e6d186bea764e54e c550fe6835d76271 7fc0e64f1f382018
speech rows 0 54e2408ed76cf539 46d1ff5873528324 cd952b68a75addbf ec0772897fa8e008
speech rows-best-fit 0 03b78cd66d4bf0f6 0b8af1d6d728e7c5 01c5e6b3219459f6 8ef3a3ddfd0fc9f7
speech steps-of-rows 0 dc5345b3596d3221 47bc52016af30e58 923ef9967447ccb1 65f2e3542c5390fa
speech multiples 0 250fddf7899cdcbe 93579897244aaddd 9008b970f894c529 dde2a2bd93687499
speech steps-of-multiples 0 60c82f56b8f65980 8b2ca3d1607b5504 d31e8234f399ead2 5c2f601333abf866
long-tailed random 1 0da1dc69d6986644 a37b909e17bd0383 8ce2f414d8755a78 866aeb34ca5f1c02
long-tailed sorted 1 3012c98728c97477 bab0e5a2eb33e0d5 bee3030cecdb8d1e 935798d12c10c54c
long-tailed semi-sorted:0.1 1 010997f8c415391c 8bf067dc25a3ca38 664f1cf89e4a88bc df5b2f5937da3d92
long-tailed alternated:58 1 27bed45be6338bf8 a69220718b3bb448 0322a4632a330080 99cfe9efa4f2deff
long-tailed windowed:256 1 04aea511083f5160 a9422f27d8be255c 662dbed31673146f 51e32ea82c90a541
long-tailed bucketed:256 1 084f35c2009bcaa7 937cc3429c62c30f 131b012e49c27d59 fded07017e97e030
long-tailed optimal:6 1 7fbcda05707ffaaa c30b87876880eaa4 2e350460ee2ecc03 cdbcb6b99298f7a2
long-tailed uniform:6 1 0a831baa2604eb55 54d920ffa7d2ff8a 3f88b584dcb1bc51 db9f6959a576d9ed
long-tailed quantile:6 1 9ddd83438528da32 bd01afb16e6389dd 2abd6baae0d864ba 846fe7b9ddc6449a
long-tailed exponential:6 1 a5baea997d0c7107 2780e8da0300f8c4 11b119bf9ceff8ad 33942722359134b4
long-tailed mxnet:6 1 54871b794df47ae8 04ad52cd249ed871 beb5b0a8a12eb51d f072a34049de51fd
long-tailed max-entropy:0.05 1 933e7c6f7f3d0926 879f89f84285899b 152e3fbde4203d74 c464cf8906e55a20
long-tailed budget 1 aa4c4effee15cb58 c0a2c99ed6cf3564 5151683dde9afe11 a60661088a93c86d
long-tailed dynamic 1 3d6b760e34f6e610 ef5e29d978c99f02 31b6fe7cd3c4ed0b 82f697df3b36adf3
long-tailed portions 1 91d1a7b0d5a580c0 f0d46de5361514d2 a97aa7d8fdf568cf d49f2a34798d7fe2
long-tailed chunks 1 4e4a5e3e81990cfe 0a79e185320a6204 a4f9fef99cc8b940 41e0acc4f6383c24
long-tailed default 1 838749ed7c3e18b3 44c0e3b77b50e02e f6926c7a691906ad c11c4b5fc9bfdb2d
long-tailed random-steps 1 022c98a138265ba7 d2d75265e478393f 34dccef16253df05 536f37e37d636c84
long-tailed steps-of-eight 1 7963be275d6d2e6e 603e6c0bbc6a2abb 1d27f203644158bd c604dd7c4a675a54
long-tailed stratified 1 7d8475c8ddd282ed 299719bb61e33447 974b03b4a27e093e f6beef03afd0fc4b
long-tailed rows 1 b469b90d46d27f4e e6a58acfe91988b7 120cc379fb01d18a 5e6cfa41d1b973d6
long-tailed rows-best-fit 1 c3457ca5118c57fb 12475b3cafb7d8fa 11fccf787fbbabe7 74f2caebd68a1026
long-tailed steps-of-rows 1 c490e9b4aba47528 ff696fa382c46c5f ab282e713333d536 957949f7ed954e37
long-tailed multiples 1 15e727237558a6f7 c5b09b573335bc8d 737d8c8606be1156 cb7c0350089bf3ea
long-tailed steps-of-multiples 1 ebf15999a45c6ef6 527ec28b21f3de05 38a4567726c9c98a bd2bf3c594280916
"""

CASES = [*(("speech", name, "0") for name in STRATEGIES), *(("long-tailed", name, "1") for name in STRATEGIES)]
ROWS = [line.split() for line in GOLDEN.strip().splitlines()]


def fingerprints(example, strategy, seed):
    lengths = lw.example_lengths(example, count=2_000)
    keys = itertools.product((0, 1), (1, 4))
    plans = [
        lw.make_plan(lengths, STRATEGIES[strategy], seed=seed, epoch=epoch, world_size=ranks) for epoch, ranks in keys
    ]
    return [plan.fingerprint() for plan in plans]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row[:3]))
def test_a_plan_is_what_it_was(row):
    example, strategy, seed, *golden = row
    assert fingerprints(example, strategy, int(seed)) == golden


def test_the_table_holds_every_strategy():
    assert [tuple(row[:3]) for row in ROWS] == CASES
    every = [fingerprint for row in ROWS for fingerprint in row[3:]]
    assert len(set(every)) == len(every) == 4 * len(ROWS)


# What two runs on other ranks left, and windows: whoever goes on with a checkpoint of before must have them again.
LATER = """
default d02638f9f2444a98 271aea8993140421 93baaa631a552907
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


@pytest.mark.parametrize("row", [line.split() for line in LATER.strip().splitlines()], ids=lambda row: row[0])
def test_what_is_left_and_what_is_planned_window_by_window_is_what_it_was(row):
    assert later_fingerprints(row[0]) == row[1:]


# Epochs that take sequences more or less often than once, and what other ranks left of one.
OF_COPIES = """
default e2d3334cedd76836 55e568fd5369fa4c 32e50c2ba8ad308f
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


@pytest.mark.parametrize("row", [line.split() for line in OF_COPIES.strip().splitlines()], ids=lambda row: row[0])
def test_plans_of_copies_are_what_they_were(row):
    assert fingerprints_of_copies(row[0]) == row[1:]


if __name__ == "__main__":
    for each in CASES:
        print(*each, *fingerprints(*each[:2], int(each[2])))
    for each in LATER.strip().splitlines():
        print(each.split()[0], *later_fingerprints(each.split()[0]))
    for each in OF_COPIES.strip().splitlines():
        print(each.split()[0], *fingerprints_of_copies(each.split()[0]))
