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
speech bucketed:256 0 061e86ae8f71d72e f5a2224d7e603595 d84f17878a6dc362 106f6c0f8afa97e6
speech bucketed:256 1 a7fa83d1290d5780 161d686cf5f0d792 4130eed346c86ea5 5acaa1875d7fa8d5
speech optimal:6 0 c3ab417571c593d9 9d0a0494c3e7ada0 71e142220621a7af eee7c63ca21e3235
speech optimal:6 1 a111dfa08ce8ed0b 0e938a8900103a91 f0b784a0bb053bc2 d3eb8b6151e1072e
speech uniform:6 0 1885fc8ffdd0d45f e44088a6c399e8fe 5cc2c054833c2c05 fd53ddf8bc67bb74
speech uniform:6 1 b744e88ca37392c3 5c07f246e8a421c6 a9cfa2766365179d 706ce2f892c7861f
speech quantile:6 0 329cfc488a3f1bd8 85c8a846d028c3ae 5ef66db98bc17932 b08d31ab917bd588
speech quantile:6 1 f2c5670261d76285 abd36f73201297f1 019dca122c382666 10c89458c59ec869
speech exponential:6 0 e3bde4c29bde4bce e0ef059fe23af4a5 8c4b8a03186845be 4164d0827c09141e
speech exponential:6 1 b0db89ef54f4b6bd cb212e1fcf41e8cf 525999b1d56fb81f e6906ab556370da9
speech mxnet:6 0 ad1e1006cb2d55ea 17ba14cb651c9291 210ffcafd4bb0d7b 8de83c9643af0e3a
speech mxnet:6 1 d6b563ee4a6ff445 3db738f0bef8457b a2034aa4365eadd4 6b32aac5bf7a00c6
speech max-entropy:0.05 0 9ef7ce0809d8aec5 890d2036a667be66 6b45379a7f1c9dd8 a387a559735ae26e
speech max-entropy:0.05 1 0311c7eb8fb74621 faa747d78e3889e3 d0037e10efdb33bd f9e542f9b893c17c
speech budget 0 b9d6fcc3677b901f 6baf739ab586d29f 9465cfe353a9b8c3 ef29978a76ae613a
speech budget 1 052ca653cfab1187 82da07af619da818 b91f0425536bcba8 42923b396e0cbbba
speech dynamic 0 ef238d3900afd902 73fad89306d934e1 babf95a1475f2089 2d031f4dbfdb1571
speech dynamic 1 6067d43b00deb414 5ab437086dac4f5b de974d6aacd24428 ae5aade3daad8e5d
speech portions 0 a429cade39df9e58 9ff9f35eb273716a dab92ea0f052ce48 477145f2724f0c61
speech portions 1 e1a2376d79b3492b 43a3a4da755ce2e4 1f14579b0960c1af 319e81e4e8779db0
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
long-tailed bucketed:256 0 2eca2705a9a812f4 f1c1f0a33bedf633 c2b5209db5d48281 9e73ae445d92033c
long-tailed bucketed:256 1 7daf5479a0832e8c 7113716b024dbbe2 2f5718b9acdc91e6 25126b2b02fa4243
long-tailed optimal:6 0 27aa938ce3680a1f 812bb1c0b2c791af c9204da574b38f6c be0bd93841b17c03
long-tailed optimal:6 1 a0642830757b81b4 67e30e557b702320 b6af389fcc1a124d 88363114fcdd390e
long-tailed uniform:6 0 328175b83d7a5261 6a2de610bbc19a35 069384179984d4d7 5c4db1192678397e
long-tailed uniform:6 1 9d6581ce0bc7939e 060c2d68c354798f 21e3679a5a51d8fe 2211f5962cc740de
long-tailed quantile:6 0 cfebf91c9dd9bace cebcfe5ebf960729 50311fa96c23084d f3ae847a8383cd56
long-tailed quantile:6 1 6b10580c16156daa 171da8fa1f642c19 31794c6fa217de9f bfc46961d3dcec47
long-tailed exponential:6 0 c2425cf6e04839be e9fcdf01ccf90948 feb648902984ace2 e776307163a3f093
long-tailed exponential:6 1 9694e73e2c81330a 8e854b01df404a51 0f70fff62e7ac227 3ff7b0da6da3afec
long-tailed mxnet:6 0 953662f99062cbb3 7ee729b2de03e15b e7fa5bdfcc243bd9 aef61105e3aab38b
long-tailed mxnet:6 1 929d98e9dab17985 0d593a476c88fa01 57d5e9ebbfd6b231 88574d453039cec3
long-tailed max-entropy:0.05 0 c28773ddaf9e692a 8f29c12ed9542031 7a26beb0099aa8a7 1a0f795c4e98a5be
long-tailed max-entropy:0.05 1 d594daf21e8e289e e1f49eadaac2b8f6 af8207498c582105 46815e0ae622e97b
long-tailed budget 0 d554be97b2f9c1e9 8541b87fbb54534f 92aad9b7f625abc4 23236c1712ad9d8c
long-tailed budget 1 224842b80ea87421 4c455ced70cd4818 22f1fcf138dfd959 9878dd8c855b3ddc
long-tailed dynamic 0 a1ee4c812627cf17 a347ee7b8aa13109 b55c2ad4c153a142 d0f9732a1733e928
long-tailed dynamic 1 e074eca4d9d80f57 8f854cfcf3cfadbe 97f394c833ebecb3 8efb809611102681
long-tailed portions 0 7888193b5813b65b b20089aa2ccc3621 0ff4544c55052011 7314f1e6788cf046
long-tailed portions 1 1fdee581a411509c c27720c0f6a0e743 9ad5c41e68712bd1 f484edc7db64c1bd
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
portions 1d0da21b3b6f7180 6514226b8e6b236e afda5f665ab8fa84
random-steps e1b80bb46fbfd469 dac4e7b1cb74d337 0406842d17af904a
dynamic 6998c33e54da48fa e5e659a0445afe50 6a8b26a5665aaaaa
optimal:6 d42212e21eefbc36 e975950acf563867 d2e3e38e31ef13ae
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
portions dc8e39a714fbfdb0 08be7fb61e8cd286 5dc646834bff1c0a
random-steps 95e0029587d67225 d54d610bd5f3eb74 b2aebf9e90b0f4b8
optimal:6 4b9150290ff3a702 8bfd0915feb40803 168caa8281ac8096
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
