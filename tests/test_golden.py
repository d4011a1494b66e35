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
    "optimal-cut": lw.Batching(cut=lw.Budget(20_000, by="optimal"), order=lw.Shuffled()),
    "multiples": lw.Batching(cut=lw.Budget(20_000, multiple_of=8, count_multiple_of=4), deal=lw.Stratified()),
    "steps-of-multiples": lw.Batching(
        cut=lw.Budget(20_000, multiple_of=8, count_multiple_of=8), order=lw.Shuffled(), deal=lw.RandomSteps()
    ),
}

# Example, strategy, seed; then epoch 0 on 1 and on 4 ranks, epoch 1 on 1 and on 4 ranks.
GOLDEN = """
speech random 0 d978e438a6ce9df2 11fb576ecaad8498 b0df95fe8e672e5a 40e3c14ff2bab172
speech random 1 50bcbdc7c8a2f4a1 cb5831863fc7efff 95640f8ef78f79c9 3ed3313f67610216
speech sorted 0 4b738c235f3a3500 d58c1b3f9c05275c 1da41c786f72dca4 724a373fc9e230f8
speech sorted 1 9c3c1ded051c0106 f5b9148c495705e4 1ad58216314c47ae 3c9461f4bb5fa100
speech semi-sorted:0.1 0 bb016ce2970ac6d0 88f77b14b0b0ea89 5c33e031a7392d34 7111343e84e44d02
speech semi-sorted:0.1 1 06c4fcf873beb6f9 16a3331ed2ab9ac8 4db1571d97891a27 67616d29a626bf92
speech alternated:58 0 0336d8b4fe4ca0d4 56d79626e61959fe 3968b704f443f25e c2724e0e893817a8
speech alternated:58 1 e6dc74b02d16c51e dc26f57373767f29 b6f69848f8c25a5b acc90e30bbfe3567
speech windowed:256 0 7501177f516892b6 d53b69b3dd6114c6 d811fc0a02dcb2b6 2b36f897dadbd9ff
speech windowed:256 1 f10755a1682c80f5 6a0b46ec72a91d1a 24d1b05f533eea77 f2607b5774957259
speech bucketed:256 0 a818dc73a98965e7 a221c8489623ea12 208bfde0e09b7b60 d2c5e27c52325706
speech bucketed:256 1 66614a134bef3ccd 05df47ab4df7ef51 758eeee6b957abb7 bbda146d141bba81
speech optimal:6 0 b90fead40eab78f4 687322bf614e8e9a 54f6c9c0a597c536 d99a77bdb3f91637
speech optimal:6 1 f4b5f4fb247c7fc4 fe52354a64635e35 0ad5e2f2079c6b14 06ef82f55d40e55e
speech uniform:6 0 ea0069f66a7954c0 23f48b505b76567a 79880661396261a5 96783d7029fdc680
speech uniform:6 1 b71d6687f37937d7 4a4b62d9b9b0016a b87e3750effab9f7 3c7bf757c707a6c5
speech quantile:6 0 f30e138c0bd4e7c7 efcba6a769c98761 4e070b9432848e32 cf8be1c1e74e7360
speech quantile:6 1 70ed40f62b93c8ae b97aed6d3d66433d 228c9e92de82c5af 0d6843bb395d3f62
speech exponential:6 0 f9513eb6701a1409 f5aca23a01e74091 daedeb92d9da81db e29f6f9692a30a2b
speech exponential:6 1 38dc3ee101bfbcab 9e71b93de0ebe657 c8cd03d3d71c229c 5a787eaf4cccd61c
speech mxnet:6 0 25b79889bbac5a40 33f4c31adb42e7c0 b64c85172101703a 29cd733df18554b1
speech mxnet:6 1 b6ff0930108d9a15 ef6aac8baff940af de5ff069c6bb84b2 fd043adb085db9ad
speech max-entropy:0.05 0 82aebc410e70f39e 749c88338cd228c1 02c83a82f6ba075d d7b642dc49f12701
speech max-entropy:0.05 1 da34b8a2f17849ac 13378d0efa5ac441 5077227b5157ebd9 a96cb42521e57fe5
speech budget 0 9be7fca45d55e952 8c294ac2b40f7315 690b3e51a90f6008 c1e90ae888caedfe
speech budget 1 4f77b6dcce8e570e 44c737f1c2990106 fe76e25a4aa3fa32 13dca1863ca33a97
speech dynamic 0 e7579836fa1b509a cc45005ce7d5bbca c3e72ceb54b9c313 11f32b07eb11415b
speech dynamic 1 e42a2dc80e00be92 b7afa15b985ac899 eb191a590e7ce8f9 ab9835276f804183
speech portions 0 d5ec0676a9a4b9aa d5dbf8eb6f18204c f34063a77c949d94 212f3bc5cd448dbb
speech portions 1 1b0b48023fbac9c2 48ba953ed9334341 8c7238d0b4229b5e 431111dbdcd04490
speech chunks 0 f40bd8783829fab5 c64e11dbcca99ae2 622d8b57e93ff4f6 991544dcc0c658d3
speech chunks 1 775ef18d320222f3 94841317ac05c451 2dc6c6a18adc0616 1de5690a2a053d9a
speech default 0 29f7089acd41a3a2 700a61fbfa2f9c5d 1e54d2b8054cb4d4 6cbb1673cc56c2fd
speech default 1 dd6f46c468535ecb 73dab593f92f16a3 29d55202b5104fe0 9ad7f24a0eb69710
speech random-steps 0 2c7b9ce613a8bbcb ef6310d155a2df95 5293e0580c4ef8b8 659b676118b1a923
speech random-steps 1 7f084ad4b0da4fcc d24ea82ce248d997 e0cf43dd174c3f32 6745083f5cb7716e
speech steps-of-eight 0 0bcea3dab6c43b78 17ded2395e739bcf 7c8a04b11b3f017c 60bd7d01780284fb
speech steps-of-eight 1 f3eb13f9086911bd 66b3f2394b4e5f34 8ddaee0ca319b635 261d201aba775ed5
speech stratified 0 5646f81153498bd6 d30b583c0b291dbf 7219e18296e3bdd2 1b73c34b0278b098
speech stratified 1 5fdb900c1312d675 477377cb3d7aba4f 732ebc889dd4f430 98579663561b99ab
speech rows 0 7c25be8063a5cd95 a46fd3ada4b442ba 5113ba9fd31b8a36 c3481b6099d1fedb
speech rows 1 f0cdebceb5241bb3 c7be3b71357f72c6 e9677e0e2edbe8f0 315fab22b573f0ae
speech rows-best-fit 0 508989d4378c100c 566312f0f04a7d84 3e0cd1c0c98e0399 2b1d883c2ea8e632
speech rows-best-fit 1 903251c32b8bf762 c1a14a5611716afa bb195f1477b911db 9eedf4c86f249415
speech steps-of-rows 0 2091c76664943f7f 88d9101c99089e1b f4d3bd9bfb050a13 f415e78602381f24
speech steps-of-rows 1 93f944770a34da10 6e8c2734e7a05694 9c11f27320011873 f24aa022a62c407d
speech optimal-cut 0 c6b75842485bc937 c1de9c23f18d6a85 216bb13b5f9c6b0b bb34b6c453375c0d
speech optimal-cut 1 af2f1ac8d1bbd9e4 0a45833dec565c90 8a0180b6d2bcfd8c 5eb2beb6b3fe7918
speech multiples 0 3cc1ea9776397308 bdd18e0ddfa827e2 e4bb88c0841a2ab2 ed3da285a50507ce
speech multiples 1 a62d9030742141f1 58e86e72827cd52c d6c60e92f00555fc 62b236bc2b3ae4f4
speech steps-of-multiples 0 0c7ac1f7081574fb 501578c880683f54 febadb8c4c280c0c a22d9069b1b1df5e
speech steps-of-multiples 1 a3a80015a72a85ce 1b3c9feac4241869 091ca39bb968896b 80eb14cff597357e
long-tailed random 0 e02ea5209fcc3483 f99a9ab473c00d16 871b34e6b398744e ad3bf79c5e5cc023
long-tailed random 1 038cbc9e5f2dd140 81d43ba67bacdfbd 0d6939bd63399b22 bae75d9b3ea7e026
long-tailed sorted 0 f54c6b88362d6cac 6e62bb0db4657ff6 a182ae705e47c548 f9300e706f1fa0b4
long-tailed sorted 1 37f6040f4a785122 e709b2b8daf1d5d4 2ecc4ed9515573bd 87318f136b85c078
long-tailed semi-sorted:0.1 0 52d61263a53b0674 6b2e24d693f8b596 c339e5a6890da2a8 b9b60cc67c33e482
long-tailed semi-sorted:0.1 1 6505da42d881f406 2c978fa240d56ba2 692adfb1a9437719 75abb8998479b9cd
long-tailed alternated:58 0 ffe1d5ff6a11274d 15cc9762eb07433d 865226ffda58f9a9 11ae45b1141983b1
long-tailed alternated:58 1 d977bc0d5c3c2266 d890357eb169e740 14b4461651090b07 4581746444dbb90a
long-tailed windowed:256 0 c98b04f1623d63fe ca0f469ff6259229 88f72b3965e5d694 b8459a7436fb9eaf
long-tailed windowed:256 1 d746e712ccc88c0c ea1ec7f028b3365c 0e082c97c2c7f598 b0f0dd33d2cade27
long-tailed bucketed:256 0 b8001d2e7ab580b2 1fe6eff1a1cb6065 52aeae2878880911 2e3afd42dffd5612
long-tailed bucketed:256 1 0783f7eeb0f5eeb0 944d3ad9a58877a8 3bfe0d05bf0896af de01d7df9bc22145
long-tailed optimal:6 0 80b649fe0148fba4 dcbadffe52900749 eab33149ef68b2a1 a1747cb91cc14929
long-tailed optimal:6 1 865c98c523ce3ca2 aa267754d4ae8ffa 98fa2adc5f147daa ca64382c20bf52ef
long-tailed uniform:6 0 92da71278a8b95a3 360a6a9cb82f61bb 451e6e0c5eee09b7 4783e3f889525ecd
long-tailed uniform:6 1 6933c363cdfe7fca 5adc46caebdc49a5 032b7ef8b634808f 1f6e5d6805e12a1d
long-tailed quantile:6 0 c44c6d976937af56 0275e835a79c7164 b2e7dae9bd7dde94 a5f72bdb08eaef24
long-tailed quantile:6 1 187a0189cdc555cb 027f2a9bc3fc8f88 27c123f3e48f3594 14ce0dbcc1fd5b15
long-tailed exponential:6 0 b837a576a5701c42 44c77f200ebaa2e5 f476efabffa4460d 19a5f296c6b6d23f
long-tailed exponential:6 1 efe81a01c4fc3530 02b171f80a82bf20 d0cd07090db45b8a 6f5b3f76356bf196
long-tailed mxnet:6 0 546952aefcd67190 a4188bcfbf2a717d 139e6d2187e32d2f 5738dd1a3ca9ad10
long-tailed mxnet:6 1 522ae5aecb01f507 03940138a598b47e e3a42a621a5eb90b f1a81ade69d06a0c
long-tailed max-entropy:0.05 0 8c4daf88483c46aa 3b625e0dd9556ebd dcfbc0abcbb106c8 1938b5b84563df9c
long-tailed max-entropy:0.05 1 3fa728f594645287 a7f13f7d7a54bc57 8063e0ac82b98da4 fefdc53d3840bcbb
long-tailed budget 0 28d9e994679a6709 4f6c41aaca118c43 0326b30a420eef99 bf9c2893b8ca74b1
long-tailed budget 1 f852955ed570ebbe a43feaee630357c6 d040923dfbbda520 9db1dc336b1cdaa6
long-tailed dynamic 0 ad6f6ffa74f81923 1a39897b598c56f5 db93305e08d4b995 d12f2e43a1c5e7f7
long-tailed dynamic 1 4be8667437f3135f de0f357f16e9d09f 292f826e813b5bdf ef709cab4b47392f
long-tailed portions 0 ced28b1b140c3eea 5269b2223f1be6b9 efaddf212228cc5c 3d78d1827dd015e5
long-tailed portions 1 419a2b358839b9d4 7046d03c14642bd2 9ef2bf17ef594e2b 387c523e9e5a54d5
long-tailed chunks 0 9bec63fe4af88e75 dff4763f2d4805f8 ae899a656ef31638 e7a45cab9af397b5
long-tailed chunks 1 103cbf07d81b7a54 e7693a8621955c5c 9d388177f3a17ec6 70aa7f8116827cd5
long-tailed default 0 310f65b6154423d2 5b041a566c8ab1e5 dc55c4c27af43b8b 8514bdeae551674d
long-tailed default 1 79563c1006ae1afe 1bc458f110bf177c 79fd81e2e2bc2895 2ff600c2c14cb5a2
long-tailed random-steps 0 65de055f48169927 b7e6231231413c2e 11351254b65b64d8 b0a0bfdd75592f1d
long-tailed random-steps 1 814d36d803accfda e7919bc1fc02aadb ee364fecd5f8f432 acdcf3568941b945
long-tailed steps-of-eight 0 0080710d32a32ac5 451c6d2ecdff2473 b4895ece1cde0bab ed9891548433d13d
long-tailed steps-of-eight 1 8bd8969f1c10bd8e 9fd84d181230f88a 84e214d9a038e104 fb9ea70bca3014d2
long-tailed stratified 0 f945d004b7c6688b 22a4e66b43f981cd 88448772a5bca7d8 5c00519aa2b2fd1e
long-tailed stratified 1 3a93b1aeee355528 f6fd8d04fab13b8f c70cee63165bf5f3 31eef41dcf87a912
long-tailed rows 0 0693cad77c3321fa 54bc7f5261737ce9 4fc7353a9b913b7c 267a9a502ed024c7
long-tailed rows 1 5a01cbbba6bb98d0 59b2c61f50549566 e2c3209b602f13f3 5d362dda5ce5345b
long-tailed rows-best-fit 0 2602e6c49a8fd201 d5c9121d5480009c b62fd5cafbb883bb aa5d138ce81915ef
long-tailed rows-best-fit 1 5f48b6fa2515dce8 3c1058b3d2b48616 a341ba2a416a9110 dfab11fc6bd5c6d6
long-tailed steps-of-rows 0 6642b160dd257bfb 7251f3a2299cf622 fb14256359773228 9d29606602bd7184
long-tailed steps-of-rows 1 921be6d6e85b2d38 f3389299b1df1428 81362178600cc58d cd96df8e3a81ed2d
long-tailed optimal-cut 0 c2ecef902fe4ecfb 8860813b42aa8ae5 74bd874c9472cb7d cff00f972476b730
long-tailed optimal-cut 1 2d3e3409e6e38553 0b856c67ff85bad9 e51efc43b48f1599 a170142269b74e76
long-tailed multiples 0 f9a10a12146aa43b 956e80a7fe1ab543 f16bbfd2564f45c9 9f3cf6b9128d1b27
long-tailed multiples 1 d0cc2dfa02441a97 32a9165589919bb7 5de0a6443e905769 8455a5cce070ddbe
long-tailed steps-of-multiples 0 7528a5e956169781 307e475a886a170f 00680880b1c3aa71 e70c750989d54055
long-tailed steps-of-multiples 1 eb765e0139faa166 89849da8e2155ed5 f99875372bf7dc99 4513fe89d639e754
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
default 8528fed317f5ee7e e7e6a77bb44d8dca 95c719456361117b
budget ae17d74270bd96e1 10f662af15df2b7e e0e7f696b804109b
stratified f0285280598e9da0 234d4d91504f92d7 37ea44fb4ae8369f
portions 5b9c194bc873d49a d61b211c3a7c6285 1b5826acd2a85bb2
random-steps 39d6bc009306fc02 3cd0c0b61dc71b87 81517c3e902a65b8
dynamic 53574ada8ba9f1ff f52e4abc2da9a76c 1b3f52900359a7ee
optimal:6 76e2a6d28290653f 1c1cf7a3ebe6d6ca aaedc0d6037d0b38
rows a7be684b9b6ef1f2 bd6a0d587713ac83 dfff330fcd767e1f
multiples 16c9d442e8647ada cfec22a1accced94 ace8ba7f743f48e1
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
default d543d02113cc2d7c 38c3910b2debe700 a904440a06931430
budget 29b18570e075e0d9 d25fc584454ff50e 3a3acd9e4dbaa452
stratified 905ae6c25a2a9971 f2bbf2703f661bdb d88ac8792916f502
portions 01f02ae57c20de11 92c1330e40df4414 018f2d016f0ca1fd
random-steps 526eeedab37c8585 21351d72b797e94c e4c711fbb0b7ff76
optimal:6 48018deace37f150 c03920d528d6c0f1 50d7de97668c950c
rows 4bed1bc7049a5f98 eddd35d27b909cb0 47f82035bd6e3240
chunks c3ca6eccd6392eb9 e4614a401b9c920b 5f16df13a9423a42
multiples 6ef309016b08ee16 ded71f686de147cd 3d1b5f95d5da7702
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
