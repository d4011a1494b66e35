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
speech random 0 587462fecaddd99a ea47d6b587510e21 2f1bf73796b7d5c0 e53cac3b9da68363
speech random 1 e49d2dab75655907 944f0cc2a22ea146 7440c896758512c3 96d9be16aaff41be
speech sorted 0 2abd3bd7b82c936d 0728108e82529dff 373fb8b69d161bcc 08a28b22fd096020
speech sorted 1 55e88987145e18ba f66a5afc93ba3fc7 e25ff3e6bc3bb7e3 a3cf54b772157d4c
speech semi-sorted:0.1 0 eae8873c52ae04fa b8803a0347d4e98a c7f5970cd00c2023 af9a2ded0185c742
speech semi-sorted:0.1 1 75da129b3e451bd9 a360ceb3d71d6b84 3a9ffd82ee6e3b8b 7cd6dc0acaf67a0d
speech alternated:58 0 6021eaea7d6c91a4 3f5fcca675414ccc 300276075485f13f b9f6ef6573e8d8fe
speech alternated:58 1 b51529eb5214d90d c1157967ed2124cf bf32dd578d8fb466 959266ee06146f12
speech windowed:256 0 b67628647b67f11f 64cd318af907857b c390e576ea67b798 6d479e717ce74d21
speech windowed:256 1 b2a919554b7344db b59ca9d070344027 f0206225a4de4d65 ff05ca1f00c5da1a
speech bucketed:256 0 e757ba314f57d3bf edf13822e1df0ead 603f8ab9cd5d3778 80f4760b56d8d6da
speech bucketed:256 1 263b50679ea1a933 bbbe74c44941c3ff e8c1099bedee1ace b72f27a406da8918
speech optimal:6 0 0353943165a5bce0 82d49071d63a69c4 1dbe41b31b45717a 5c2d301701a8ee4a
speech optimal:6 1 0fa9cdffddf4c711 3d9025370e1813ca 90879e4ab946703e 81e4f9974a8a76be
speech uniform:6 0 6a10dad7ddf27954 be3c08952059b96b e58fc6c1c05f7b3e 0f740d54fc89469d
speech uniform:6 1 738ff56497f82a0b 090afa9fab628be0 92ddaab34889114d 38f6b72506417429
speech quantile:6 0 595d23f323719ee6 d717691205c8e452 27f3d468a60b4e72 9422425096b168a1
speech quantile:6 1 8b24f7062d3f563e fbbc4b0cb16bfbb4 652ebf872dbfed44 0f8502200ad65398
speech exponential:6 0 2deb091f9983ccf9 66533a2c43e04892 1e5bb8a66c640b6e 39e3dec97cd6268f
speech exponential:6 1 f33a6341f29b9c74 2c69a7ca7589bc86 b9a116203af4e2c7 9da5db5f0465621d
speech mxnet:6 0 ea20d7bc4ed0a3fa 068924715a473b7f 89b0db01ec1d6729 e9b74d7fe7b450c3
speech mxnet:6 1 a2549b9abd8522a4 448df037ac8700d0 b771da55a685d1ea e53f81833519888e
speech max-entropy:0.05 0 b283e6df22e02c54 cba1ccb157b77086 b72b0692cfd50a45 b2c9635558f417a0
speech max-entropy:0.05 1 197a1f57023ab594 58337ae460629ca9 7d89c7db80bb8fa4 00eba9f3d98add0e
speech budget 0 fe221be34db637c3 53aa80442f1a5cc7 2acf5e2d5dbb9404 4333fdc11c463e69
speech budget 1 e79a983602579d69 0d95d7c97a35ca00 ea620552bd35ec2f 707f29b560190fd5
speech dynamic 0 021cba8a5685f261 7bdc4e7a07af8577 fb7f4c925732fcd9 6968ac5847f15595
speech dynamic 1 78e8fa0c00ce1ad6 d0a9418d4f87be04 055ffd5310c36423 02b752886f4c190c
speech portions 0 63e370013679cc80 5a5630d25533c229 c36632a77a88d5ff ccbe5ec4cff4d9a4
speech portions 1 aebf41fd2fce76d1 a2bc8c2c0473ed97 6984486dbca842f7 dcd242c4172489c7
speech chunks 0 ddc20db86ba63ed0 32c47c9874adb6a6 01d92bf44e61cee1 1d36f3e20d529505
speech chunks 1 a3de2b16e8c592f0 93fdf46f2d710122 b5d24399d1c9078b fe298e603bef9b2b
speech default 0 76b1762a58329f1e 9af1b11fbd28e678 acb056249d78f301 3fb48c3a5941a241
speech default 1 75d1cd8042e10527 7e982a68a8b01ad2 0f7ea578cdf5be2a 974a2d3ddd86f9c0
speech random-steps 0 8dfc2f82dede243b de0ff7c15d164510 28922a37354a2e5f 4645c724c75a5ffe
speech random-steps 1 99978507c1b379b1 96dcb3d53a7c6541 31f228672455bd4b 250624d74a0dde96
speech steps-of-eight 0 5b6105be01ed06f6 af699727288045c3 7b3dc8c1586753c0 6fa79c92041eaa19
speech steps-of-eight 1 6402ad605bfacbdd ec5b8b05e5ee9867 8d0a0f2c1e9110c7 3aa797cf9542828d
speech stratified 0 e0002fd165117eec 49411bbba432f9a6 0b1cf1123f9fec58 2bd66c380af66004
speech stratified 1 d9ddc21e63c4ca5c 05b5afb1340e42fa 1f208747070fe563 b7ac453ac2dffa56
speech rows 0 528f1c1350f998d5 87597f475bb6660a ca60e58bc127d47f 138afbfb089b7de4
speech rows 1 e83ca0f5274fa8e8 1ba5a0fb582cabfb 129df415fd354974 0cc91c42a069ed17
speech rows-best-fit 0 508989d4378c100c 566312f0f04a7d84 3e0cd1c0c98e0399 2b1d883c2ea8e632
speech rows-best-fit 1 903251c32b8bf762 c1a14a5611716afa bb195f1477b911db 9eedf4c86f249415
speech steps-of-rows 0 2091c76664943f7f 88d9101c99089e1b f4d3bd9bfb050a13 f415e78602381f24
speech steps-of-rows 1 93f944770a34da10 6e8c2734e7a05694 9c11f27320011873 f24aa022a62c407d
speech multiples 0 3c83230d4d12af45 6fa4f7196b0a1674 561dc821683d85fb f94574ff648a62b1
speech multiples 1 ac185a73bc63a85b 46459ce9f5a88d9c 024ae9810019903e 0e94f4c6ab118cb5
speech steps-of-multiples 0 f15628e78e5fb6ef 4ab0c1fde7b07a1f 1c9a4a8d17566b28 3e6e217fb8f7f419
speech steps-of-multiples 1 7d22a1c354d10b9e c60af2753104620b cfdf5f168624d078 d9fe03f83ee13980
long-tailed random 0 2c9d7c76f930c0eb 15ad041731939dc1 2fb7a3bee9475408 8d3e531e03085fbe
long-tailed random 1 465ebfc74a280f79 578b124ba18dfdfa 14ab7db7832fb8ad db0223f0187dd4f4
long-tailed sorted 0 af18ffe0fc7f9d35 6aa0bd519b66d124 d1f1e9e0eb53543f 70820e823b49b68d
long-tailed sorted 1 b76106179ea28fcf bf26d472be4f885a e3ad732d852401c0 40fa1cbd37462c55
long-tailed semi-sorted:0.1 0 a4bf611a6a2efb8e 15a631da9d60d49d 41c10738890a3812 3ac42eeff5449cdf
long-tailed semi-sorted:0.1 1 893f552a41e51ab0 0da7830df892f3d9 cad1b9293d01346e cb14db2cd7873ba8
long-tailed alternated:58 0 1945ef054f82bbc9 6850999f62c8c209 225464a503a72aa3 a396ebb42a902444
long-tailed alternated:58 1 c8148fbe6bd1a3c6 21145f95edc39de4 b65b64b3687f08a8 5f235ecff6c9b6df
long-tailed windowed:256 0 76246cf41a402fda f4b81aabaabb22c3 458fc59eb317d02b f6d2e391fc384d7e
long-tailed windowed:256 1 31c742e343ef7303 822f5c43c84fc080 b152b4cb81dac043 8d5dbb068e8dd94a
long-tailed bucketed:256 0 ede2dd2a13e28c97 509fca96c2d974c4 56272d06b9cccf03 a708ce6f9ed35dd4
long-tailed bucketed:256 1 17ee0eda3c73e997 2a92b03858c1fac8 d9a4d4700009c9e9 e67b0f342558dac3
long-tailed optimal:6 0 4ac9f42550b9f113 c6ebd865124d5b5a 7c243c4a763c1090 024239d9ef5e652e
long-tailed optimal:6 1 39eb6824771334c6 792abacae13b97dc cb01ce18a2847a5a 70b1e9e36d326d12
long-tailed uniform:6 0 1f76487c58edec1f 23b75b50a1472d4d fc51123160dadd88 307c858ede2fca22
long-tailed uniform:6 1 76a37a15e0cb041e 9f5fa93f1b909818 6d1bf08f46226618 b90dd903394a1650
long-tailed quantile:6 0 9fe39e69986e450d c498b01a9a1cfcf1 33c01212d1914b2b e29aa4006841da01
long-tailed quantile:6 1 2ffdeca24e6cbae7 a10ab4b57be284db c0a19f8ed658aa6b 9f9ffbf227a3674a
long-tailed exponential:6 0 23bde5d454322d31 486c20b4f6a944c4 d0c806d49e931882 cbd1646225c92cc5
long-tailed exponential:6 1 764c9a9598bcc7a1 dc55dfdea4f8b7c9 4f6acd7342b8dffe 42567b87facc5c88
long-tailed mxnet:6 0 d4060a6b534b3629 bd8bfacf433e10f0 9ee6d5baecf6ad5f 517a7c453ee4c4ec
long-tailed mxnet:6 1 8432bdbf41e44c77 0f493ecc6b2d1dc8 b4a2e2eb264ec03f 5fe5df505ee424fc
long-tailed max-entropy:0.05 0 1d05148e6e382403 bab2d47635199e19 fa38f6aaa897e3d2 6c3d9ea3c16644fd
long-tailed max-entropy:0.05 1 cf11c6c377b3573e 6d02434c440c8a35 3026bb41a013ea10 a1e2346457d99484
long-tailed budget 0 abe0c598248fd3d9 6c8ce750e932af99 5870e4b6df5a536f e8efce0a6f375a3a
long-tailed budget 1 b483f1a19ea372c9 7a188cfab6919982 5604ea8c2804f21a 5f0a9358e5368977
long-tailed dynamic 0 4eb96e1da7bdaedb efbf5e7d9dd49c37 517b39d0e78775af d3ef8db1a96427f7
long-tailed dynamic 1 8b6d18cab17d7183 133576f7e5689004 636f11674bb472cd f6661019ed71ac13
long-tailed portions 0 73d87b4d41e9e728 e6301028ba2c8747 299cbfd60ce7ed88 0789c494429c82dd
long-tailed portions 1 3499de43a50e5962 499781b3729fb257 b891ba5a5e86a8de b6e7371b5bd51787
long-tailed chunks 0 163955b944d5a856 c8393f22ec494aca c3459894bef25cbc 6fd313774c363373
long-tailed chunks 1 3138a35fe1476b91 5740b6d64411d0d6 2c51c18e4b042e8d 097eae8b22150146
long-tailed default 0 f2b4d7cf48997b52 515f437145de004c 6f13c07554496ea9 0978eb8f066f8fa0
long-tailed default 1 96df42ed73830c8b bfb6837773d4cb21 9760b500f33686c8 2899fa05c1d97ccf
long-tailed random-steps 0 be96e7f8476fcaca 8636337d75f106b7 8f19b988eb7875ad 290617a88923f300
long-tailed random-steps 1 18e02a06cb89d2d2 f80d9a2786fa7081 a94f319f57873246 58ec73f9005a03c9
long-tailed steps-of-eight 0 c717047023b62957 b3d64f38decac560 21317124f53b883c 83a3559c99db476a
long-tailed steps-of-eight 1 6ce3f83d96c4e317 3d653805768d2773 1c0a5f668036d1e4 ae8ed14550ad11df
long-tailed stratified 0 8da97d9e114edf57 22e3cbdf260b62e9 2066a2a21974820c 3ab3b00336e71004
long-tailed stratified 1 1cca91bca98b77a4 3c555f6955d94bb5 c90125e75d62edcc 5fb13ab14687d5cb
long-tailed rows 0 ca89f85d897373e1 c7566718fc5ee66a bdba49cd022d2e34 66b45b47a056c928
long-tailed rows 1 3a8d9fbec7002f02 c6574efe3cc06341 d1e3f6bf765eed89 d246e3b59c0104be
long-tailed rows-best-fit 0 2602e6c49a8fd201 d5c9121d5480009c b62fd5cafbb883bb aa5d138ce81915ef
long-tailed rows-best-fit 1 5f48b6fa2515dce8 3c1058b3d2b48616 a341ba2a416a9110 dfab11fc6bd5c6d6
long-tailed steps-of-rows 0 6642b160dd257bfb 7251f3a2299cf622 fb14256359773228 9d29606602bd7184
long-tailed steps-of-rows 1 921be6d6e85b2d38 f3389299b1df1428 81362178600cc58d cd96df8e3a81ed2d
long-tailed multiples 0 aa2548f02e35ea3e 8ced4af1a1eca704 8ad9b789b4ca8966 0983f560af64831c
long-tailed multiples 1 5c2849d3dba29f26 b34f56a525f51f1a bebba520b077cf69 b89a5ce6388bf3dc
long-tailed steps-of-multiples 0 c82803744703f9ab 8be52bf6b6f021cb ed07e07a81c4ae3d 3df594874d3af1bc
long-tailed steps-of-multiples 1 869343359fcca0a7 96f7c04c13eae2b3 fd255de6ccc7afb1 5df10c6e35763fe8
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
default 98f6014375ee5d5c d73d5451223b9840 0f17afd98f2bae48
budget 204571e68b1009da cc6545bac829099c 7ef2eebb1e15c4d9
stratified 4b8506a6d069e9d4 90ae1a34a6bfa232 78a9eaf02ebaa0c5
portions c1fb11d28a7fc593 f334b5c1680fe9b5 f046bf14effaa72c
random-steps dd267aa055814bfc 624fe83aa13db234 3426164d3702f1bb
dynamic 6bfd1bab51b12c55 9058bcc3a0868d47 b55148b49fa38266
optimal:6 a9ae09d40fa85d30 f5c79856a65a0c26 74d4aa36868b769e
rows 87f5401dd4c48a2f 59b83928ec8cf4a0 9acc479d1e014678
multiples 1f38e821299db5bc 8f9c5ffa83b88ffa 05d6a9039aa2d9a2
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
default 273c25b0c936012a d9f28c317e560ce9 72aa57ddf847ac46
budget 776c217557e576b3 65789b7a3ced8564 1e253907450a4097
stratified 06510178f4eb96e8 5ca5ad77deb29f33 7c2587a58a353479
portions cac1c389fc6ec48c 6e46b57f498614f2 fb4952312bf52d86
random-steps edb8e86b2c23c49b 16eccdc0b3116cbe 273da431a29ca3da
optimal:6 954421f7863f06b6 9ffcd4d53bf1498f 384e40620f0aabb5
rows f23d345d82e45593 431db25912abf804 10930022173d9ba0
chunks f29b80b5ef3a3654 c5e427328143a3d4 4530dd5e8f695e57
multiples 7d5e29efed57f003 691f2e9f51438d1d 2965b3f763136843
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
