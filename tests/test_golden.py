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
speech random 0 76729323520424e7 6815e1b0b8a0aa92 155c32fc8d2abd98 5fbb228dd84bfac3
speech random 1 bbe70a9e52227d40 941f6344bad6770b dc78d9bf3e44996e 9f189e41e89fe14d
speech sorted 0 e6621d863b98db14 1d4182ac121693a7 d5c4412d16fac6f1 3b090d3617f0b645
speech sorted 1 a8c39d60b5475b02 617e9a69eb94d67e 982dd7a77babf1f7 dad39c0d4f2c3084
speech semi-sorted:0.1 0 fc69bd97628f52c2 2a6accde2aa86d27 17d1e44118537d14 433195c945359b4d
speech semi-sorted:0.1 1 fe0a98b8e31fae3b b1cceefd02a777b5 1c55e23f36966c17 16c88fd44365a01f
speech alternated:58 0 031458a5c5e96f22 d090363f0a682f91 c2f4a50c75e59909 d611fa250896e13d
speech alternated:58 1 b76fd59d77b77df5 f8076e6f2e3673e8 a75cc1da52b3c8f5 136c6630258caca7
speech windowed:256 0 7118493de070f02f 5db7d7bb3aa4b6ce cc142120929c59ae 2930f91c89904b0f
speech windowed:256 1 0f011631d24b45f7 88d0b94bc465f54a 72d52fd02f58e933 7c09734e2d9c2e82
speech bucketed:256 0 edb10fb6f726293f 1cd4607dbeb83597 5e2e872cf93f6e90 328b0903d134b465
speech bucketed:256 1 47f7870e49ccb20a 14d2601b4511e5a2 5a188d4765c0c721 037a862f3841aaeb
speech optimal:6 0 44ffbf0421dd2bef 45078f40bfc5cf9a 75c3cb521604a250 57f175403f60051f
speech optimal:6 1 1d1f2ec0672cf358 bc13c389f0d46a9c 3437bfc462092b2e 7672d607223a8c83
speech uniform:6 0 262f12d84ffe0c4d aefdea316919a087 4bb4b27e116668bc 57337e07156b8a0c
speech uniform:6 1 f663528fd7281646 2f5e4c1076e46b89 06961745b56f9520 4a5d18dc750ef303
speech quantile:6 0 cd0688370ca7f032 f8464b12c6f5d5eb 87f0215b9aefc51d a13549d82fc91d2a
speech quantile:6 1 add9e8b20749f02c b56c5e75f709d872 1efa0a7d0cdd4f5d e903649922cc776c
speech exponential:6 0 d0b671d8bb46a97e 74ef2f7b4428f97b 12d04c5fe2c3b4d2 4f2a28343e65f6f8
speech exponential:6 1 d3b2e9a9449a6d40 277500229cd7b526 f1958260685b3191 7d177b465c828850
speech mxnet:6 0 149ee620f5922c6a a9eeddad42ef70a3 0afa22248811fe2a 401690645e41022b
speech mxnet:6 1 6d39c3e63452499b cc9f8b2d76e25f08 33839cd8c909569e 2f2f97c688355dee
speech max-entropy:0.05 0 fe63347d4966bcb3 d78590e9d8d51c70 92c3004cc92b5edf de79a6b5db42f805
speech max-entropy:0.05 1 eee177847e6f7857 98e450449c6ce120 20e48a277e3aaedc c8c9dcb783ca8108
speech budget 0 803915080832f74e bc28c092b5dadb86 94974b5e5c3cbc5b 596203fac71a812f
speech budget 1 421758dab98b5e5e 15bf41205c65ebde 113f0082561fe15b caf50a7f6141fed9
speech dynamic 0 d7644e63e5b6e32a d9fc52661f22856a 8fbb6bb2edae2819 9453b82c319921bc
speech dynamic 1 8a5751b990d85d1a 3811661d6b43beb7 1c4d5c33af006568 72376da4c56f52b2
speech portions 0 d2b9aeb377a4ff1c 19fad4c01de46619 12b52c126bc6bbd5 0428b5007d82166e
speech portions 1 e0fc14cc203fa08a b53ff4cfe8069387 b398ab2978009866 8c6fc4374896590d
speech chunks 0 fd0264698356d0f1 777283d70af89ca6 c5cde60f3cb26eae bb9068a980309343
speech chunks 1 c3895cddf5e1252f dfcfcfcc614fcee4 554a590fc783c0d1 526736887c03d5f9
speech default 0 d697859bf21dabf8 ad1190199aa3b02a df10b64dcef4ca81 7446451dd0232f06
speech default 1 63c6c4efda7b18b0 89d862066aee0113 b1322a608c0ae2cb f17cb8265b5e0c3b
speech random-steps 0 4957de069c6a9522 8a4ace4064270cd6 ad176f320f567b46 0e4fcd2a0b95fea3
speech random-steps 1 37e40d641ea112de cf3e427171f349b7 59314ec0886aebfa 3e4ec9ae90d0d3f9
speech steps-of-eight 0 74013367418a9726 0e74052d396ae955 753a391ae492b4ed bcd5b4a86934744b
speech steps-of-eight 1 4a62518dd3e92aaf f80619343f2af583 d0394e0083bb0516 e6a9db311962040a
speech stratified 0 157e32413c158286 b77728e36e458794 9fae7e43449983cb cdbb8174afef5583
speech stratified 1 ac74684af838ddef 9a730d5c18af32b1 9b4ba1bd7ce98918 50d47addb5ae682b
speech rows 0 f55a022f2d5706a4 bf1669189939903f 5f02ab006240f21b da5b638b1c891b5a
speech rows 1 4dc5c98ba52ed0d1 b3adb052704d31e6 6de0d8330a6c7430 7df30a74e5bf2ca4
speech rows-best-fit 0 04b1c42319aa9e86 e6636f13da04fc27 a296f5ccd502c204 34b07183c7a7e41d
speech rows-best-fit 1 89dcf1c4926ee07c 2e31ed761359f85d 7dd7e5f54e749fd5 3d491b2752e5ba47
speech steps-of-rows 0 dc5345b3596d3221 47bc52016af30e58 923ef9967447ccb1 65f2e3542c5390fa
speech steps-of-rows 1 66aa5472374b75ce 44a96250697b41ae e4119f5b664b6960 8613cb42ed92b549
speech multiples 0 da70cba654258124 0c3a8eb1084b660c df475d96dc92eb96 572d9a7c01cc24a6
speech multiples 1 7f45c03bd5103bd7 3b2d7407406b2a48 fdee689a176b33a5 10fad93d6858309f
speech steps-of-multiples 0 60c82f56b8f65980 8b2ca3d1607b5504 d31e8234f399ead2 5c2f601333abf866
speech steps-of-multiples 1 20916dd316d77a5e 5bd688f31b479dfd d06592d7678fa287 8f957f9811091f4d
long-tailed random 0 c25485000c17e20a b31ae87583b15a2d a9b68b2c43955893 17136257628dfe29
long-tailed random 1 e1a31342d362fb28 7184772429200d9a 67e106afde7a1a55 d92b3f68be724f9f
long-tailed sorted 0 425d2695a3b5852f 450fba8f1c916ab1 b75d270bed6eadfb f41577a278fdea82
long-tailed sorted 1 102e718d98c23906 63bcba3198e402ac 80850dd59d50fd0a 5d691e35cd3953d3
long-tailed semi-sorted:0.1 0 f56ace48ac1a10fd 21ccbb4a46e3d140 c414d248c3f442f7 bde9fafa918138e2
long-tailed semi-sorted:0.1 1 3fe44e78653da866 6dab269c23a97eed 1bd5de507ed079a3 4be16fe14f6fefbb
long-tailed alternated:58 0 1bcf12f16cfaa325 9641913a844e6ac8 ab7326e0f6f38344 82eb6477143171d3
long-tailed alternated:58 1 4ec4fb8eefc0feab 767dc115b0c6957a 602e01b20bfc142f 63d336675250610a
long-tailed windowed:256 0 48fa12816016a513 de5af15f9fa6fa01 e3d8596e2df91de9 c92adc1eb0b13603
long-tailed windowed:256 1 1ddb5005e6e4900f c70882a4b158be1d de6b3959f694e6d5 22af1735998be0af
long-tailed bucketed:256 0 9324849d230bd770 5ea7d95cf8cc96bc 9b341f3235ee7300 620f37b509a85a2b
long-tailed bucketed:256 1 07a38f94ab7d2dfa 4008b1222338ed7e fdc8bdb5c78afb21 935990dbf3225e7a
long-tailed optimal:6 0 2c3cfc10d4da56da 6f07c9454833d414 e791efaebc73b4d3 d342a6a452a95406
long-tailed optimal:6 1 48b36ca3f476bc59 046fbc57be0a78ce 51a4e146520df736 100be286633b1394
long-tailed uniform:6 0 fda6e08b0823ff14 c2ba32195096cdae 1509e8cbc929b7c0 5cd8db03c22bcaba
long-tailed uniform:6 1 e4b9e49950670365 53a604bb13faedc1 a36cbf8bcb3cc017 1a093878c7c1f862
long-tailed quantile:6 0 29f3a16c726ce55a 90b52155bd467e59 1102bbafc65e2c54 f039da0fb17b86b4
long-tailed quantile:6 1 3a6932f4269173dd 554f4a4399cb4479 ef2910af6340dbd7 023b56c981d5e8b0
long-tailed exponential:6 0 5d613c34fad20293 09e03bbeb632e967 61eb82ce8011e503 3e1aaba8f968163d
long-tailed exponential:6 1 791f7b4a54adddf0 06c07a1641acdd7f 2791eac6df9ad72e 1569b44b5b9e1b48
long-tailed mxnet:6 0 90e3e9079e18298e 5ca2e908b740455d 0cbf803587b0f669 0d9aa07381756d30
long-tailed mxnet:6 1 36a4de5cb6536945 abbf81f7b6c1dd4a 5f1d9e24945dbe26 132c040d970b886e
long-tailed max-entropy:0.05 0 7462546460173f10 42d84d92c47278b0 61ec9eb0372afa4b 4a1593249faf25f1
long-tailed max-entropy:0.05 1 3610fd87c92c9efe 5b79f0b2437b93cb 2b6ea82a2eac9cb3 5351ab9c5b3aee59
long-tailed budget 0 41d8a34d718c2381 ce37d03a05edd5bf 15f6380e9b923ee3 11f20d6778a747a8
long-tailed budget 1 694aa2717711917d b23bd3c653a2f15e 94c45cd36bb88859 fde0ae952372dab9
long-tailed dynamic 0 70242786508c4fdc 59abc9e5e76aef28 fd3ab77ae6d353e0 56a6a4858a848741
long-tailed dynamic 1 3d6b760e34f6e610 ef5e29d978c99f02 31b6fe7cd3c4ed0b 82f697df3b36adf3
long-tailed portions 0 a9f32a3554a535f2 5193ec5907087093 5b7ec71f5d24a736 dbca2415a1679124
long-tailed portions 1 91d1a7b0d5a580c0 f0d46de5361514d2 a97aa7d8fdf568cf d49f2a34798d7fe2
long-tailed chunks 0 21004d6f66830d67 039def271024c602 525e831555a81526 1ae0e44ffc1562b8
long-tailed chunks 1 4e4a5e3e81990cfe 0a79e185320a6204 a4f9fef99cc8b940 41e0acc4f6383c24
long-tailed default 0 7784acfbdd232419 2cb0ea34b5934345 42614896c681d060 841c7519031f0578
long-tailed default 1 487a7baf6106b520 791fd89668a6d54f 916ce94421c1874a 1e5261ddb2986535
long-tailed random-steps 0 80830d57ff1159e9 d0f96a95ad12d491 8da68988d6cb80a1 5466c72e9785ba39
long-tailed random-steps 1 022c98a138265ba7 d2d75265e478393f 34dccef16253df05 536f37e37d636c84
long-tailed steps-of-eight 0 687eab97000c1e05 80db92c978fc6dba e5c01afc6bbaa87a a4e9de32500135b2
long-tailed steps-of-eight 1 7963be275d6d2e6e 603e6c0bbc6a2abb 1d27f203644158bd c604dd7c4a675a54
long-tailed stratified 0 c1c667ba07456eb1 a4f00be42f1ddec4 3e943420fb30769b 4a90170c1c791f98
long-tailed stratified 1 3bb4eac2cf6fafd4 a74501b9b80746de 46ccc191dd514b63 8ee5f81f80656206
long-tailed rows 0 11ee6d0237ad7063 9f7076bc9538d840 ac7dea44ace6f118 ed1da80ab69d7f38
long-tailed rows 1 0f948419891a2076 af0c843f2f49bbec 466ae8aa311a6798 bb2aad452a5d3ce8
long-tailed rows-best-fit 0 5ceb09188a49a0c0 9c3553cbcfceded4 40e25ca5b1fc358a a8ccc452c0c63656
long-tailed rows-best-fit 1 3fa628b14e93f038 b695fceb6b5a1a84 55f8d839e04c0aff 3b6156a7e950c24a
long-tailed steps-of-rows 0 6efc0b1c6b7f2d94 28fad8be8915fe16 ecbb942dea46e8da 3731f6fdf8b547fb
long-tailed steps-of-rows 1 c490e9b4aba47528 ff696fa382c46c5f ab282e713333d536 957949f7ed954e37
long-tailed multiples 0 284c1b9ed9ebdd26 252c94e0e2bc6d37 f8090588ac9013e3 97af0dba0d1ce0c4
long-tailed multiples 1 eee2e3d2e8429ad2 48d83ae55d0ae458 f1717dd5745c73d8 d90100cb4d6dc0f6
long-tailed steps-of-multiples 0 7f1d490c367ab6a5 0b346fa8fd171498 1c372204d17548ba d4191e66a47737e8
long-tailed steps-of-multiples 1 ebf15999a45c6ef6 527ec28b21f3de05 38a4567726c9c98a bd2bf3c594280916
"""

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
    assert [tuple(row[:3]) for row in ROWS] == list(itertools.product(("speech", "long-tailed"), STRATEGIES, "01"))
    every = [fingerprint for row in ROWS for fingerprint in row[3:]]
    assert len(set(every)) == len(every) == 4 * len(ROWS)


# What two runs on other ranks left, and windows: whoever goes on with a checkpoint of before must have them again.
LATER = """
default 51ad79bd0f7220fb 9acb9a78915be86b d801ebe5a94871b2
budget 1a13d3788703334b bc97e274419b6ec7 446066313b201610
stratified 4132730fa61d20fb b8ba0a35d3db3802 a57b121734b0355e
portions bebc0ba295eafa00 61ee17501d41d925 a3e5a7c08e3642ba
random-steps 2dd9325ba3831a13 097423fb0f0cacd4 273d12e6a2b44cdc
dynamic 9f022454d01fff5e c8c300a8a26b3cdb 838e1b45631b5961
optimal:6 f2c1c845184d31b6 13b5bbacbd7ac2c0 da24a10b8e0f2db0
rows b1ce377550b0b0cc 407865826395aa81 deb306f9816d0588
multiples ab823fd4dbe4e4ef 784147d97244b9af a2594b7221e04830
"""


def later_fingerprints(strategy):
    lengths = lw.example_lengths("speech", count=600)
    batching = STRATEGIES[strategy]
    rest = lw.make_plan(lengths, batching, seed=3, epoch=2, world_size=2, after=[(4, 1, 1), (3, 1, 1)])
    windows = lw.Windows(lengths, batching, window=256, block=16, seed=3, world_size=2)
    return [rest.fingerprint(), *(windows.plan(2, number).plan.fingerprint() for number in range(2))]


@pytest.mark.parametrize("row", [line.split() for line in LATER.strip().splitlines()], ids=lambda row: row[0])
def test_what_is_left_and_what_is_planned_window_by_window_is_what_it_was(row):
    assert later_fingerprints(row[0]) == row[1:]


# Epochs that take sequences more or less often than once, and what other ranks left of one.
OF_COPIES = """
default 32017be731f71fb6 c39f6cb832eac9d8 7d4beff2864a6514
budget 5cb6b12fa6afea41 a99333901095bed7 6fa689c340624364
stratified c59e3e0f919b963d 9c9e854577d9ee4a e20210059c53c638
portions c8a9434b4af62b14 662dc82e27706ab6 0f10e138243b3a4f
random-steps 1f24ee2bbe20e312 30cf41351a063288 380936e976637dba
optimal:6 8d12cca369edd1fc 5a0dfcbe0ad5a312 1f09d6fb1e01302c
rows 18ecc314d4b46d2a 3323c007f40578ef 8fd5ef2d8ece6f9d
chunks 18d65699926e6513 8b81dbf78a080f39 7ee5b43936523590
multiples 3c4bfe63bb9b6ec9 1e167b9163a6f270 74befc4ed9091e6e
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
    for each in itertools.product(("speech", "long-tailed"), STRATEGIES, "01"):
        print(*each, *fingerprints(*each[:2], int(each[2])))
    for each in LATER.strip().splitlines():
        print(each.split()[0], *later_fingerprints(each.split()[0]))
    for each in OF_COPIES.strip().splitlines():
        print(each.split()[0], *fingerprints_of_copies(each.split()[0]))
