"""Plans by their fingerprints: the same on every platform and in every version, unless a change means to change them.

Where it is, `python tests/test_golden.py` prints the table anew.
"""

import itertools
from functools import partial

import pytest

import lengthwise as lw
from lengthwise import _compile, _kernels
from lengthwise.planning import fit
from lengthwise.planning.recent import Recent

STRATEGIES = {
    **{
        name: lw.strategy(name, cut=lw.FixedSize(16))
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
    "random-steps": lw.strategy("random-steps", cut=lw.Budget(20_000)),
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
speech random 0 550d8ec902baec49 b80814bee3a34ea7 90993633c1373147 9b5b2a20079534c1
speech random 1 db9dc210edd7a02f d190ad9a76370b70 e6e471c52e0fcd85 4ecf51bd4cb0e27b
speech sorted 0 7dc569462a7ec037 29ed888f46d1a06b 7bfe1857cd7615f6 f416297284f0dcb2
speech sorted 1 ce06b3800d59b9a2 b062ceae5912b841 701883cd9c8ee1e4 5b5d18eb66701c63
speech semi-sorted:0.1 0 302a511aad94c9f3 c98f316691940834 33070fc8ce4c21cd 9981e068e82f5b05
speech semi-sorted:0.1 1 375da03628225132 b6f93f7166797379 cacbdd3e885c77c5 c64474b08e9064ff
speech alternated:58 0 2970b3943a7ac06c badc3219cac16617 a841edf65552ef4f 1ce32d3297fb3bde
speech alternated:58 1 f33ab7e976c841a4 8701598b1aab9a08 51ba19fc22aab995 0dd2007b507b967d
speech windowed:256 0 cf88b90c97392ab7 a85133f7b05338b1 f67f18373ccb2d60 ef46e44e5e28357f
speech windowed:256 1 3b99b4781e0d8b73 508b86ecce5f330a ad46b4a3540c4eea b91ce8b6310e7f08
speech bucketed:256 0 8b2af972c06e35fb 049362608e0561fb 8a20903cb07ac047 3ae3d68de84e3a30
speech bucketed:256 1 f51065e033e4cb54 e7449b3e0a82bda9 a47f154f26ce7ead c722aad9c427359f
speech optimal:6 0 bc7aa72939533e4e ca90813d0b240431 b13b2044d985f952 7bcdf7f0f88c2be9
speech optimal:6 1 17cb050eda67a786 4f595eb65c00f406 0a99154224b7ffee 693b1eba2fd82ae1
speech uniform:6 0 afe4b7ca60eaba05 685e291ecedd23b2 fb5e7630ce84c844 bde0096799c81ff4
speech uniform:6 1 efbc7c52a5972816 8bf0ad12bc8140cf 3445f0f6713fe3cd 60bd4a6ad7c098b7
speech quantile:6 0 504b8c6a6e4657c5 d622daf313f8ceb2 10dd4ea4871f47f7 52d4cc15f2b1a055
speech quantile:6 1 adbfc472212892cd 3c42e9c0bb06425c 99407f0c2fbd2335 400de38448af7ee1
speech exponential:6 0 981172024724713c 987abc981ced1400 59f506de54402fb6 aa9ecb1f0bc83115
speech exponential:6 1 16d3964ccb2b56f1 29dc772b277ac491 64bb60c5ce32b0c8 871f85764cdca581
speech mxnet:6 0 6c2c39689bd31ba8 8e76646878f88981 4f856f165d3ec6f1 db968844aa63cec1
speech mxnet:6 1 09a1868d3854b6b8 26cf9b2c4f842374 b7b11728abf1b68c 6be3e0a1d3fd5243
speech max-entropy:0.05 0 9ef7ce0809d8aec5 890d2036a667be66 6b45379a7f1c9dd8 a387a559735ae26e
speech max-entropy:0.05 1 0311c7eb8fb74621 faa747d78e3889e3 d0037e10efdb33bd f9e542f9b893c17c
speech budget 0 b9d6fcc3677b901f 6baf739ab586d29f 9465cfe353a9b8c3 ef29978a76ae613a
speech budget 1 052ca653cfab1187 82da07af619da818 b91f0425536bcba8 42923b396e0cbbba
speech dynamic 0 ef238d3900afd902 73fad89306d934e1 babf95a1475f2089 2d031f4dbfdb1571
speech dynamic 1 6067d43b00deb414 5ab437086dac4f5b de974d6aacd24428 ae5aade3daad8e5d
speech portions 0 7a9ff536e46c5f8f 684d7de6d35bd90e 145dd7c48b190c96 f5189b8277389133
speech portions 1 a0657cc0b60be790 479ee7e736206892 ecc4c675595b4cbd 0dd7ef79b8e11d1c
speech chunks 0 a45036605f203312 34641efb0bb55dcb df05158e7c9970f5 59ed35ba75a42edf
speech chunks 1 ae815f220f196e47 ffa5d3788f4e6039 7f822ca9328c7201 fd7689a953bc6002
speech default 0 95662b8f8bc4405e a0c2ca83876f5310 f870abc4d1f20c2b 2d34b10729658bd9
speech default 1 57d54fe0d540a29c ab07dc7f0f6ddf70 20513c107521e5fd a0eb3b173a4cec5b
speech random-steps 0 e3144e20e589f518 9324fabd8581bd9f 7c6b18a16240f1d8 53b6f7d3d387533f
speech random-steps 1 911c7a415b8aa217 767534857fcd40db e46b00d37c3e155a 1da92f672309c05c
speech steps-of-eight 0 112cf5fb510b744d 6be6c6c9f0fd433e 8a437edad8513e73 7b16117210e60d2d
speech steps-of-eight 1 0afa3823e802f699 02b939fb7e1b4d42 d3ffc4f003d2f099 9a568c5ddf20f060
speech stratified 0 762218deb1df4f96 0e003f100eeb52f1 b4da9a2a4e7464b9 2de7cdec0446a036
speech stratified 1 98ce958cbb3808b9 c0bda1bc99c95225 136ef92f3617e274 24884e7a8f275648
speech rows 0 7c25be8063a5cd95 a46fd3ada4b442ba 5113ba9fd31b8a36 c3481b6099d1fedb
speech rows 1 f0cdebceb5241bb3 c7be3b71357f72c6 e9677e0e2edbe8f0 315fab22b573f0ae
speech rows-best-fit 0 508989d4378c100c 566312f0f04a7d84 3e0cd1c0c98e0399 2b1d883c2ea8e632
speech rows-best-fit 1 903251c32b8bf762 c1a14a5611716afa bb195f1477b911db 9eedf4c86f249415
speech steps-of-rows 0 2091c76664943f7f 88d9101c99089e1b f4d3bd9bfb050a13 f415e78602381f24
speech steps-of-rows 1 93f944770a34da10 6e8c2734e7a05694 9c11f27320011873 f24aa022a62c407d
speech multiples 0 8f43b10d81585f9a c3f3d1307499892c 5cd14b50fcdcdfb9 e172a4aa3ef090ed
speech multiples 1 6bc9f70f8f8ba5c5 b363dd11b7476316 1a1e9288c9546cd2 285f7ec648f0fe76
speech steps-of-multiples 0 a8243531a7dd1e26 10faf3c6faa0547f a4227ca0516d3324 f9577fcb60b6afd5
speech steps-of-multiples 1 8b5a17c51cd82258 1061695f66ba7fb7 b8461f0cff983e95 bcdcd1cfe50f02c5
long-tailed random 0 b906b8c606cbab1e 60f65728c93b5185 7ea48f3275f86863 adc742ff9602e862
long-tailed random 1 919883c518e4979e 77eb01401d643786 bed6b72b159a51e3 d27b318ee2816574
long-tailed sorted 0 af289fe2f959540d e5cba6f17d7c0ef9 bf1717d670b3793e 826cdd000624b2ca
long-tailed sorted 1 227b53379523a96d 260f1ddbb5d12fd6 14cae597b578471f 57ebc45753acef73
long-tailed semi-sorted:0.1 0 c18b7c8e199501b3 0c8f64f8d6bf4734 ee762bf62ec5adc0 d9f3f6a0297a1894
long-tailed semi-sorted:0.1 1 de51f2889a489c71 681e9a644a0e7d61 7fd154bc079fe9bd d10a46d5615898e2
long-tailed alternated:58 0 e512e50ff6545d65 a2ff3a4f3471d01b fae65d3a07c51374 c7810d80d418a4cb
long-tailed alternated:58 1 2e1388791905757c aab67eeaa5097155 b51c7ec2c7c642e9 2a267abc44e1748d
long-tailed windowed:256 0 5464335019a367b8 e1337a2d35821820 560218bc406f8bdf a929c732a8ec56b8
long-tailed windowed:256 1 5c1ef4632609f040 9d9ded2d03492334 9f17a1edaccd24e9 c11efd2cabf5e8b2
long-tailed bucketed:256 0 d39fe4b5f6efff66 e89360874afc22a7 98e6764c43bb560b 6af0eb8c58cc7373
long-tailed bucketed:256 1 2ec74cf9e3f9725e 443477cb44be9b32 c3d40431dccf2524 fda8feaa8377ac17
long-tailed optimal:6 0 1a241e3ca97a639b 7fb787b46f14e8a5 851d1832b2c67cad ea13a65da3a8f00a
long-tailed optimal:6 1 f368321eacb7ef02 2925b44af13d3b39 1256e0db9f7c018a 7b011f92d579ae63
long-tailed uniform:6 0 135931f6c8e67f87 37b163321b4539cc cb2c50687a52acb0 8bfc2f3c0fbdd40c
long-tailed uniform:6 1 dc245a43494d5463 dba9692a693195fc d855b14656770461 cd53ba83c3754654
long-tailed quantile:6 0 8247caf85346fd3a 660edcdd3067b643 430ad72be1a03d87 914e6d838b62e6ca
long-tailed quantile:6 1 172edc1a362e90c2 8a2210ec3c3e1bdc 3c0e05c6c8e8814c e24489a8c84087e4
long-tailed exponential:6 0 e484491a8939bee4 9ad2997bff8e8402 2feaece8d04e0587 d23001f9886624d0
long-tailed exponential:6 1 fe57d2a452f43674 4ee2dfa64530cd82 70afe6b166482986 da177df9ada68ae6
long-tailed mxnet:6 0 f20feafd7f13d9ee 7865d3b41ad2f47c 8d008b1b7adbc3f8 5994dddaff467a99
long-tailed mxnet:6 1 0d11f4c8489cdee9 aacd88206c56609a 05c9f8950acc8217 040a9ac28b843b46
long-tailed max-entropy:0.05 0 c28773ddaf9e692a 8f29c12ed9542031 7a26beb0099aa8a7 1a0f795c4e98a5be
long-tailed max-entropy:0.05 1 d594daf21e8e289e e1f49eadaac2b8f6 af8207498c582105 46815e0ae622e97b
long-tailed budget 0 d554be97b2f9c1e9 8541b87fbb54534f 92aad9b7f625abc4 23236c1712ad9d8c
long-tailed budget 1 224842b80ea87421 4c455ced70cd4818 22f1fcf138dfd959 9878dd8c855b3ddc
long-tailed dynamic 0 a1ee4c812627cf17 a347ee7b8aa13109 b55c2ad4c153a142 d0f9732a1733e928
long-tailed dynamic 1 e074eca4d9d80f57 8f854cfcf3cfadbe 97f394c833ebecb3 8efb809611102681
long-tailed portions 0 0c5c040742eb8e5d 808b8560337e2548 6a7d0185b9e2cf2a 82115d70e9a29911
long-tailed portions 1 2917a3a1ebd83a17 3f01e953f108e06c c15ef88738a183bc b2f22245f2a3d56f
long-tailed chunks 0 60ea608d84c22a8a d3afd1878fdde638 ddf5e12d2105f3b8 faf8bf1ccfb7d886
long-tailed chunks 1 b844b08a5fe7dd36 af62e42e88ce6498 ddd11f2b926554d5 996375ecf1d74888
long-tailed default 0 cf4ca3d8b39f7aee 8fa0092c9c21236b c982ec3b0233843b e5bfd76d47e8390c
long-tailed default 1 8688dbea0704dd0c 844164520cfa4c41 aaebb7cfd9dfb681 7e0d3619f62067d7
long-tailed random-steps 0 8404cd3329c3b4e8 2eb898fa024dd55a 9fa46b4947f46645 97f0e93fff533278
long-tailed random-steps 1 82b5de2264a82893 a55252ec1c8a8176 f9431f03a918c115 a279d0f38a518589
long-tailed steps-of-eight 0 2486740237a1e436 25e9cf6feae47162 cd4c7c258204c937 3233bc620548fb32
long-tailed steps-of-eight 1 22c6551af9390215 41bcd6ec0962e239 d54d9f0aba9018c6 47e3f5d960019ba6
long-tailed stratified 0 eb6cb3ae99d390c3 82870037de701e17 3dceb21383d651ae 3b21b5010a864382
long-tailed stratified 1 976623f6094e1cd4 c6334613e5819126 fb3d7babf5ee36d0 65173988b5d374cb
long-tailed rows 0 0693cad77c3321fa 54bc7f5261737ce9 4fc7353a9b913b7c 267a9a502ed024c7
long-tailed rows 1 5a01cbbba6bb98d0 59b2c61f50549566 e2c3209b602f13f3 5d362dda5ce5345b
long-tailed rows-best-fit 0 2602e6c49a8fd201 d5c9121d5480009c b62fd5cafbb883bb aa5d138ce81915ef
long-tailed rows-best-fit 1 5f48b6fa2515dce8 3c1058b3d2b48616 a341ba2a416a9110 dfab11fc6bd5c6d6
long-tailed steps-of-rows 0 6642b160dd257bfb 7251f3a2299cf622 fb14256359773228 9d29606602bd7184
long-tailed steps-of-rows 1 921be6d6e85b2d38 f3389299b1df1428 81362178600cc58d cd96df8e3a81ed2d
long-tailed multiples 0 570556556179b492 7b99abfb4894364c f3ddb65668aa2766 c34c75419b0c199f
long-tailed multiples 1 83191ad2132bb582 ef85c0ada9936747 983c70ecfe7ca127 1eefddc2687e5a1b
long-tailed steps-of-multiples 0 29864a4028057bc8 0c240089d5bf30ce 4f7f06162b19e4b3 4cf0e50915a18efa
long-tailed steps-of-multiples 1 b06a7bd99291b4e8 aa6d32f0733cec03 61e658c49a27d576 cbf12b407dfc770c
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


@pytest.fixture
def in_python(monkeypatch):
    """Kernels run in Python, as small calls do at first, and nothing that was fitted before is remembered."""
    monkeypatch.setattr(_compile, "BEFORE_READING", 9e9)
    monkeypatch.setattr(_compile, "BEFORE_COMPILING", 9e9)  # the tests before may have compiled
    monkeypatch.setattr(fit, "_remembered", Recent(most=16))
    found = [each for each in vars(_kernels).values() if isinstance(each, _compile.Kernel)]
    for kernel in found:  # grows by those that each of them calls
        called = [kernel.py_func.__globals__.get(name) for name in kernel.py_func.__code__.co_names]
        found += [each for each in called if isinstance(each, _compile.Kernel) and each not in found]
        monkeypatch.setattr(kernel, "_waits", True)


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("row", [row for row in ROWS if row[0] == "speech" and row[2] == "1"], ids=lambda row: row[1])
def test_a_plan_is_the_same_by_kernels_in_python(row):
    _, strategy, seed, golden, *_ = row
    before = _compile.Kernel.seconds
    lengths = lw.example_lengths("speech", count=2_000)
    assert lw.make_plan(lengths, STRATEGIES[strategy], seed=int(seed)).fingerprint() == golden
    assert _compile.Kernel.seconds > before


# What two runs on other ranks left, and windows: whoever goes on with a checkpoint of before must have them again.
LATER = """
default 050b0ce61286fc40 10f8d53b6ff4a82c 87eef70a162f7978
budget 2bd84fba2979167c 23735cfc01182f4d 8d0b38ded2dda56a
stratified 55896251e264b4d1 3e84c21bf9bdbdab 698a1f52f40df8a9
portions 7005e212e4d09407 eed51208de4926d3 8d21acc202fd56d7
random-steps e1b80bb46fbfd469 dac4e7b1cb74d337 0406842d17af904a
dynamic 6998c33e54da48fa e5e659a0445afe50 6a8b26a5665aaaaa
optimal:6 4e497086ae88d74a 3236e19bb10cdc56 8c96f04c2e6d23b6
rows a7be684b9b6ef1f2 bd6a0d587713ac83 dfff330fcd767e1f
multiples 0e2be2bc448990ec f4a3b619d1109091 9b7a4f5323c82c11
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
default 0bb039dc8944b59f 7c6b9e7b190d6840 dfc06ab849cc2815
budget b7aaac6b4d8f2f76 dfd0c0a8a6c9d5c4 93c9be8e8aeaa8d2
stratified 8bf4d0d9d39436d2 e40db04102e3e5f9 74ed375b49ab2869
portions bfe9b70ae4d5ee92 735fd143ed4a6e96 631e620c82c9c4d6
random-steps 95e0029587d67225 d54d610bd5f3eb74 b2aebf9e90b0f4b8
optimal:6 c7034a3552e0e453 01bcf1d8dc090dfe 406ffea50bbdb2f7
rows 4bed1bc7049a5f98 eddd35d27b909cb0 47f82035bd6e3240
chunks 52128ac078d4cd08 95e164a1821f1376 8fd1ad828e3dd33c
multiples 591627f9db31c3ce 852c71461b9bd61d 2e6d9e8b421e6b29
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
