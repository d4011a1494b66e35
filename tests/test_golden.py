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
speech random 0 27fb3ac82fa83433 405d93bb0f278390 8889001a14c29076 bf191d26f037940b
speech random 1 5493959739d305c6 7d2258b127009815 4a6a25cdccc4fef9 817d5d1673d8ff83
speech sorted 0 66846e21638cb15c 82a60d1cf5dd0299 11cf3be0757b2931 59284beddb6d17b1
speech sorted 1 cd244a8a26766ba2 340e887a8f947536 e24e87fad128f80e ddafef0937d6f804
speech semi-sorted:0.1 0 d70587af05095ed8 de0a95d65f994e77 3d3d48d359f953fb acb34a9d1dfd42c4
speech semi-sorted:0.1 1 8b04c33fbd8ad4b7 46853da4cdba797c fa1a7c77b5daaa11 fe058c6a17bc8f35
speech alternated:58 0 c964fd2e8bb44a27 c18d06aac8b59b4d 054ca2f80c2f2095 b6e8d01115967c36
speech alternated:58 1 250caaf0486a79b7 f558e5be0f55dce0 a7a6866f4b109ccd cdc09daa222038ca
speech windowed:256 0 1ff22cea51b17dc8 ea4ad4e02bd5f4c3 458e4500d59a2bf5 ca92f80e204825b4
speech windowed:256 1 0b742577ec882462 94480553cb02a58c ee7410adfb0db6ac cf1ef81d413bdf39
speech bucketed:256 0 89ba82f60eb785fb 92e1ad32d7a49b6b 2cd9a93a6ad7605a 0b1acfd1df8aedbd
speech bucketed:256 1 15b90cc4edc0c764 6fe5a86a2955c672 178c644e49eebc21 eeb92e32c94fc5d1
speech optimal:6 0 e0614cc3c7faf005 b55da9c9eb176810 1761c6faead10a65 cb64ac8dca882e12
speech optimal:6 1 e045f660304ab55a 7285944e22ceaa6f 0294a8f6262f5b49 a3a11d3462cf1a0e
speech uniform:6 0 aa4a0e7f8b202d64 04aa3d66e6112d5b be457999fd839582 c393ef25a78277ae
speech uniform:6 1 2b24c9d28f0de53a 2ec8f0bd545416a1 b90f58fbd061f549 c47a0b74774c1ec4
speech quantile:6 0 403dd2d2918dba96 7564dd1ff13b723e c4149315c8b0b0e2 ff192498947bc3cf
speech quantile:6 1 af9620fd53ee3dea 89ca864eb39ed061 2f53e8ffb8aff132 03aadfc712af174d
speech exponential:6 0 b2b1ad79221f1821 13e2b5ec594afb44 d3356323e41cd1df 62292b6c7c60d20c
speech exponential:6 1 634605e1559190c9 cbf99818b6eba829 e35c5e6c350a76f0 2e9ae31c8886758f
speech mxnet:6 0 3235296a00915ea0 6ed5e9b16dc1e2db 55eacedee32a316d 294fcbf636524e50
speech mxnet:6 1 ba8385f861d707d8 da081b33627f9b9b 3a3062dc89d4fb7f 86a8304eab0794e1
speech max-entropy:0.05 0 f787768dadc1d330 52ca044165dacc4f 7cac250de5cd92a4 f9173e9107453611
speech max-entropy:0.05 1 2b8c0812c54399db d71fecfe23801acd 7aec351ffca0e7b8 8d3bca92d4e47ba6
speech budget 0 4fadd0e4cb7a88cc 4bde2a8122d07c2c d1034caa7da5e052 48ec104c0e47d14c
speech budget 1 60490172d948f647 7df5bc9190931277 41af31b2f7896ee2 c792c729ad8089cf
speech dynamic 0 2b2bc74e9ea417ca 08cd498995e22121 1ce6ca1974492814 b6756c8da2ddaec7
speech dynamic 1 1add8a9fff9aa46f f4606b3ac4b0d0ca eef755ac7e3530ea 5734374fc863e9fb
speech portions 0 0b36226b4fe9b3ff a3286f824dcb803b 6cae5732b5387840 6e42998d303f6cd5
speech portions 1 05cc72b714c49a26 9d365f11df245c1d 11152a25cf78926a 0fac23c3f4a7a4c7
speech chunks 0 401fdbfe90e0fa39 86422f69a0f27da5 2fc0467abde0a017 9d22c44ea2e67503
speech chunks 1 55e0480f3c1deabf 6d7412660d9bda96 e9375dfe76abf61d f6fa22de7ba43af1
speech default 0 f4ec5bc1f279d595 c83de85d7d2d20ac 9c69c66be2215357 005d59bebc1c4394
speech default 1 b516750b7ba510c6 a820b906d1134fc5 18a93976e8d8acdb 5a6044f3a16abcac
speech random-steps 0 6ccf9154ca883062 155e2a37f2cef477 fcb326069796ed27 e61c085f25f6aa1c
speech random-steps 1 86c3e9ad23c96678 8ad17db384c8ebe2 4f1e4a1e2137080d 4bf4bb3cd8606894
speech steps-of-eight 0 8396fcdb444a33f8 f0d3d693f71a2aca 284323a971a6061c c41fa07d1858a681
speech steps-of-eight 1 02102d8c1549a842 a5a7546d6df93753 fe7082346b937139 19d3d88a17b81d08
speech stratified 0 67f9a4f05b39255a 76aa8f2b1be2f782 ed4d5b58a0eeb18d 09840839a33c9edd
speech stratified 1 3652b1611815673b 5b513890c57c8154 098ccbdadf81600d 617d9395ab398166
speech rows 0 8f17e42f40f61b94 ff5e8c8a5fec7716 55de3915175e361a d3e890d319322f0e
speech rows 1 6ce694b7161508f2 ff5c17c7b1149998 25686d033b4c01a9 b31bc2273f025492
speech rows-best-fit 0 5743cf5f26e47cef 3b5925079e930833 5f40b8893bae05de 021773f943e8f194
speech rows-best-fit 1 40ac2a3559252064 88264268fe74acc0 12c8d3691bb01671 644110d4fe2d5601
speech steps-of-rows 0 3042e1e634e8110f 531bb2d41c934e36 475fb92c074f8337 7cf8d64d9f7cfc94
speech steps-of-rows 1 5558ca8737e88818 cc851543d13282ac 0a0606e862322102 31c982a84bf66b93
speech optimal-cut 0 a4e060b8f2a66b32 8537b612a531504f 40c64e7b1abc520c 7a3da29888feea36
speech optimal-cut 1 5b42944589ef788d 13d375688bfd3c07 615d3c2c05d1eae7 032941640f7d37c1
speech multiples 0 2b17131cb5627f39 62441e9d7bf2de7c 03513d5d4b3792b8 dde20bafd2c3e183
speech multiples 1 11060323a5fe8108 e09b42464096b60b ee2b12c7f8be1e86 c7a30e70967d2e78
speech steps-of-multiples 0 a8243531a7dd1e26 10faf3c6faa0547f a4227ca0516d3324 f9577fcb60b6afd5
speech steps-of-multiples 1 8b5a17c51cd82258 1061695f66ba7fb7 b8461f0cff983e95 bcdcd1cfe50f02c5
long-tailed random 0 ca31763811d71bcf 83149322ab263a11 fb3e9f7e5a06b687 a97f15420c263fd7
long-tailed random 1 61e140a69f45160b 820b89a07fa3ed68 bfbf5b0136923452 77a6fd39244d003c
long-tailed sorted 0 7a2111cc8cb36986 ec49a40e0253a8a7 b5cd8ecda5b4c821 e68e9e23feeac5f7
long-tailed sorted 1 9c345a8fc276f847 ec89f6fc7052c6cf a9bcfc3b6d5d7e5f a6592eeb27afedab
long-tailed semi-sorted:0.1 0 1d82a56bb7cba4b8 7cee7df853791194 3d3cae0c93f05b0e 6c74c71e3eb6e070
long-tailed semi-sorted:0.1 1 a6a3839338810db2 f7bf634b221793da 725e80f78efe7013 5f3aac2a2c776e61
long-tailed alternated:58 0 af1034c7b3c815a2 70f7659a9ed447cc 7034d4a1692bfec5 faacd36e5a58606d
long-tailed alternated:58 1 6a7427e18cd0113b 155107355aa19933 f67a245a2d68856d 110df719414fdfa8
long-tailed windowed:256 0 57bfa1c1549c7e90 f2f19468fa03741a a7cad0d789b3dada 9b6ad2905bc354f5
long-tailed windowed:256 1 09fd7aab09db91d1 54f71dd77d3273ed 9c548ebd1bc1e9af 7029c7171fb41ece
long-tailed bucketed:256 0 0e76bd0330433768 9d0c0754b0853944 94be6d902f156a1d 6a15e2752b3c723f
long-tailed bucketed:256 1 9e585899bbc5a3d8 d80c8af525f3d9b4 0f336c5b453197b6 9d685d3c4028ff57
long-tailed optimal:6 0 9b36c1d060fecb8c 3cd637dfd372ee05 c3afced7a8d84222 7c6afc8eede4d1f6
long-tailed optimal:6 1 4dcf4678d00e19fc 80689708ddca1d56 11075d2693882f91 4ebad4ae5a00fd2b
long-tailed uniform:6 0 b434f1dfffe94a34 c4d4437be010a92f 261f8b20f0459037 c6a0b67a1870e35c
long-tailed uniform:6 1 a603386ea0fed635 2cbcdc4702073a45 795e215b7d22073c 91a0ad77c456e041
long-tailed quantile:6 0 c3f407be4303d0c8 dc59a66607235ba6 77f9d61e41e86f08 297bb57ec82b932c
long-tailed quantile:6 1 6fde064e949fbeb0 b75eaa01720b261b 6954dcc2f2d4f816 4e5a0fd6de299d84
long-tailed exponential:6 0 dddb74802ed6a464 f2f57f12543744a2 6a9c390e50a1a49e 0f5c195740590459
long-tailed exponential:6 1 ef53d6cd4d116d19 34509081c820cbde c0a4abf2c8069ca8 11dc2e29fee38040
long-tailed mxnet:6 0 43d744e7f5993613 69ff58111ffd7d53 2ae98fedb0b1c0ac a383b2c677b736ce
long-tailed mxnet:6 1 f71f0771787a0cc3 c3c799b0f9a829db 0987477a39a26311 05151c7399354bcb
long-tailed max-entropy:0.05 0 133236a5bcec5e73 db54af4d420fc944 2ea394b32e0a06f7 f2814e76a62cf3f1
long-tailed max-entropy:0.05 1 08854376c6a2b7a2 790e854c67b4d0fc 64f93e51a851af89 5736549cfaec7ef4
long-tailed budget 0 78cd541b941f53b2 9d6f030cb7429767 b749dc27fe79ab8c 5bda0b964e2c09cf
long-tailed budget 1 8aa9dc6ebf0e6d58 c3060f833c269baf a65368c4af3e1648 fadc735825c3aaa9
long-tailed dynamic 0 d14d52ef3860e967 6a8f4c6bc1cedd37 2c583b818b5cd098 ccd9f83a7c063f72
long-tailed dynamic 1 5cb0a7c3b47f3573 c2bcb8e44d7137a3 8e5ddce8f3cf98ac 8d2a1ac70d5bf2d7
long-tailed portions 0 78b2e2c48ed50fff 8cfb0fab83017722 9478aa017de55ce6 4ed66f519fb3827b
long-tailed portions 1 4a2ccd5a35982761 176e7f3166854936 52942a9ae5538f88 fc4081b6c4dc257f
long-tailed chunks 0 297b5aaac16d865d 076ca1efa14021de 7e14a487a9f6db68 fdffa4607022ddbd
long-tailed chunks 1 c30f55c50c309164 748aed1bd5764e02 8975e2172ede914c 5603270dbad922b3
long-tailed default 0 ec91ba1a52c13163 3f31aa55f5ef2d3e 31ecd35b8b6138bb 5cbfcb923f12bda7
long-tailed default 1 de6f039d12ea6771 bade93de33ff94c2 fd7a4e84fc4b0269 605f3d2975d71be9
long-tailed random-steps 0 a3e7d50e8da0c71d 7409d817eff573da 11bf5f079fccb928 c61d0382c6945f79
long-tailed random-steps 1 29188e134c65caa7 a6d9907d3d1af345 4be0a15a8ef565d4 1bee0548dfe94a8f
long-tailed steps-of-eight 0 d15a8a8b954f8069 63ecb69994b4afb3 d442c02ccb972ad1 3448898cfa50636c
long-tailed steps-of-eight 1 b8fb723a88b13112 cd4c7850fe89fd2f fdae88da7736a064 8b4994399bd02981
long-tailed stratified 0 b94709095a22f95f 9293cb7d05d4a776 74ab3c504bc04681 ae52babb0b5223b5
long-tailed stratified 1 144fb5ebb22ecfb7 831a4952c961f1d1 625aa7dd83323ce4 4c4fc5a7ff2be9b3
long-tailed rows 0 d79cdc2059291f90 98b75d5494ba5ef9 fd52bb5d563df924 b712a8fcc5de184a
long-tailed rows 1 575177c7740500f5 9ba0648fedd04687 c7e4fc2aa177209d ce8ebd025973d578
long-tailed rows-best-fit 0 c5afa95cd3697a0e 29ff65a37b1d87fc b76bf7557395fcaa a8a73d875160b62e
long-tailed rows-best-fit 1 c32cc15d59e5eca9 19ef5898f5d497ed fee2fc806c6e13b4 c9232ceb1882c41c
long-tailed steps-of-rows 0 0a41ec7938189748 6e7b9253cedcb04f 86ab4be43cb20dac 92d6f5f9409016f3
long-tailed steps-of-rows 1 8079a5a9e1b869ec ca168f9536a9dc68 5f5dd81884e2a265 dbcea77fecc8e02a
long-tailed optimal-cut 0 c46fd48822154b6b 2577d83a71df61c6 676489c7e61d9dec 6a3adff86c32cd91
long-tailed optimal-cut 1 f95fc9fd1a8d4919 f86f69c487e23f97 4d7be9b9ef70b9d3 7c5ba874472e268c
long-tailed multiples 0 d22caec56076497d 15afdb000ad129d5 bd8fce5becd3cd92 ee83e5b7c82f3a0e
long-tailed multiples 1 98e82f4ee0054d2d 7dfde451c12a0c75 573ce793e964431a 29addb37e5c577f9
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
default e357bce66a4c7846 666064527d26267a cf7d107e166c16b8
budget 1f041334f1825224 e7916ba14e5868f7 8ae275c66d1660e4
stratified d73a5fbb5f8054bb a0fc4644b0a63952 e4b3ec3c109816a0
portions 2770d428c02df1e2 bf6b5fb92820b83b b7e5d81bcb9c99a8
random-steps 709868c03c273191 138423b22b1f8c4f 33c874c1c25c2427
dynamic 5cca6419fab09ef4 a6d18d13e4174256 702ea6005bc9ef95
optimal:6 c242ab7d5c9e2a39 ec311b3bcff4bb63 4bb30a96a891a8b9
rows b8b31194a2eecacf ef55494b87570949 75e649a38136ba16
multiples 94198dc2f274f585 8a3594eb7a997340 8d81bafecda12b81
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
default f21382822626f2b7 fda15a4b5196ab4a 19f5156fcaf0fc76
budget a9cb5b7f85a14d06 d24e3a971f587538 182392b1dbcb7b1e
stratified aec6c8485bb9ef32 0ddd41ab4d2f2c34 c45f7f5326a8d53c
portions dbb685d463552a4d befa57ff971f92db 56442ac5c8276de2
random-steps 2a74588dbb692a8a 85ebff9b28c33332 f3f7853bebba685b
optimal:6 f2865dce919025ac 1d357310d728f2d0 ea3dc606ed3db505
rows 583c7aedc3f1d4f7 3d57ee3d205174fe b051c17559f4000d
chunks 23d23f287e9cd1be 874981706853caa1 d733548ef32d81e7
multiples 2e54df6c812f38f6 9679435188f31094 9f3ededc1a8842ab
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
