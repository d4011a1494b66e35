"""Plans by their fingerprints: the same on every platform and in every version, unless a change means to change them.

Where it is, `python tests/test_golden.py` prints the table anew.
"""

import itertools

import pytest

import lengthwise as lw

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
}

# Example, strategy, seed; then epoch 0 on 1 and on 4 ranks, epoch 1 on 1 and on 4 ranks.
GOLDEN = """
speech random 0 62a7c5b8128f0d11 089fa63b20d9f51e 640b3f3f0148458a b57aa59e9204d34d
speech random 1 f0c263cacc550516 d0ed108723722966 3e53310ac9fccef9 86bd99a116b6e3f0
speech sorted 0 2e8c98cb7a2f0348 29fa1d1759a08fcd 416349969082a40e efa22bd3e855fa19
speech sorted 1 8fd4aa6ce605e851 868b2e5b5c3d01aa 6468ba61cc24c586 28ec7c4a094a9a68
speech semi-sorted:0.1 0 c50a12fabcabd549 eb86574ddba75698 bb5e4d610b553c1f 4843ba6bd8a898a2
speech semi-sorted:0.1 1 7d9d2881b63b43e2 bd73cc8229d46990 80f1776d0ba49535 3851c9f049282044
speech alternated:58 0 37f8a00531609d61 19bd92cb949b5f7f 74fb8e5d5ec68fcb 3bc2ce1a6633e4c2
speech alternated:58 1 f3260c7832ee9416 4d29da6e14383359 4cfc3dc434e62b2f e6f85b7fb23c8399
speech windowed:256 0 c0d128be17282d1f ccf69f8284c030d0 7f572772eed5801f c4c313c367130db6
speech windowed:256 1 8b060d516001a78d 30993845f607fa6c db507b7f43d2f694 1e49b2a32b88aad6
speech bucketed:256 0 05060c256b5bf962 249152fee59ad0f0 1b26ae6aa9ec5908 42dfd4c7cb25535c
speech bucketed:256 1 c9e3058825034d27 f79fb75c37a284c4 516271c8dceb2c17 f293349affcca0e8
speech optimal:6 0 4e00efa35d5f6cca 44a0990a920542bc 776e637ee992f6ff 5be03d3b44c2c6de
speech optimal:6 1 c658e801e91377c1 036486e1af512e3c 9116de6adb91ebe0 1ad5dd91c4b96735
speech uniform:6 0 d055916a73ef9cd7 6f426090cd5cb713 0fa0db92cf3254d4 ba0f4859681dffe4
speech uniform:6 1 f8753ca89f03ff23 2b1ca17f839ee7c3 c66f3ece45eaa981 f0e65d9d64cd27ff
speech quantile:6 0 3a7b3e57e531411a 88dac93ada349d8d 611a926f1bb5dec5 289b432395e8b74b
speech quantile:6 1 269a30e04830f36d 46ba95398e4935a8 cfc87f00cceaeb43 c1bcf9a847e32458
speech exponential:6 0 a07cd24c7b92da2e 737dbb98531ff49b 56d3c1374b50abd0 7d481171dc962d33
speech exponential:6 1 f170e2252bb7b6d9 1048f3168310a608 99b96f2716d5ea7d 407a75d26d74507e
speech mxnet:6 0 e5b61859b33f0bca 14f837087a9f1b74 09968c08a3814582 380bf1a8e43c681b
speech mxnet:6 1 4d23007ee8b285f3 36b6032f345bbd04 7cf36f76a4a44a80 3d429e430f85a9dc
speech max-entropy:0.05 0 5ef8ccd17aafa7bb 009c4e610dab69ed 2f095c7d91ad0e42 015589abf54bb094
speech max-entropy:0.05 1 d1d803443ade59bf 0d2e14b71c7cadc8 f7b090bf17443f30 64d74f84aa51f732
speech budget 0 a1531b19b674128c 887901fa7600c65d 2e3eaa8269f039c4 d44a76537e2d875c
speech budget 1 4cf2868f64adbb7c 6ca28736dd997b6b dab558fe70a9181b 1dc3b7aff68844d3
speech dynamic 0 4a9e290b4b07c96a c4c2cf105bf01e33 9fe6aead8de59372 9844a866cd941552
speech dynamic 1 6b0b4c90a149dc13 c33e461ca04d4be8 610b2cc398384960 c3fe00b3848108a4
speech portions 0 2b9a8429d42b4113 d74854b65719daad a3c198b987c02eac 5618a81505ca2004
speech portions 1 7d647cc31d3292c8 2f1e3b6b37066f25 c5abe6df6bc22a6b 875ba9696ae3c383
speech chunks 0 f7489d9703760bf4 72e68b70a76baf06 8f99b8eda22c1b5d 12c92a40f40d163e
speech chunks 1 c5c7505cd6442e23 d196d0d9dbaa45cb de661a9eed5963ee 0d6ce267a3d069ad
speech default 0 55a791b80df76328 bf551bf2642cb9a6 d972eb575d004a07 bd436e7cdfe76f9d
speech default 1 20a17fa377ebf826 33131f32cc99150a e905e4653193ec92 e82f14b50dea50f2
long-tailed random 0 2b2f42760c311ede 5d6089a81065ff86 3cde4a7ff3bc0f37 b436ada4cf1196d0
long-tailed random 1 ccbf276cc7d93236 2beea9e787a616e2 9dabae0e8c27b05f 6f4ab9cdd9331b22
long-tailed sorted 0 07204e8b63d9c1b1 47bc63b97cde99a7 bdad2482579e54f4 e1ef2a47f57fbbe3
long-tailed sorted 1 4667b70447722197 f5c7f7469daefbdb 26d2017ab45a50f1 5dfc53f06510a9b8
long-tailed semi-sorted:0.1 0 6185e704741935cf f7161f1d736ff413 608226b0523a615a 1a8269eeb261b108
long-tailed semi-sorted:0.1 1 61acb7ef9c6a8526 ce8bcc99a80e9b4d 2af977f7704b35eb e1a51947b91a9d56
long-tailed alternated:58 0 d5fcd0ac5f20bcda bc004327599d7447 4ee964d5db46447d 9ffe91dbf39b072e
long-tailed alternated:58 1 96d9132440de19b5 c9be127917eee9da 5b43217237e2e82b 88473b0630ef5477
long-tailed windowed:256 0 af291254278ba518 20fb3b23af057f9a 2092ca214064eec3 1beefd5a3478030e
long-tailed windowed:256 1 4071a6583a9647cb 7dfccae1bb5a34f5 03f96053904860f8 5fad6a7fa61f0850
long-tailed bucketed:256 0 e65b11b8289d5d34 7bf76ee9863e4987 150d09a0ba80d24b 3f1933f932d3f984
long-tailed bucketed:256 1 b2eff2c50f086b8e 0b20826a400499f3 854deb88766a4ecd 2bed56261facdb7e
long-tailed optimal:6 0 bcf3e604d0836aff 0419e30cd35b3970 38bf950adfd22ed1 22d94d9238c3964c
long-tailed optimal:6 1 72c32aa7e8a9a9e6 c00ff6e74a066d27 30f804e2bb62810a 3ee5a734413a1b6a
long-tailed uniform:6 0 bf5694331fad1a5d 7247e3f8f9924f5e 1bd34f1cbd4493bb 683ef68257da5590
long-tailed uniform:6 1 7e1c23a436777752 c27762648b567730 4cb78e607ed976ff 368df2db82504fef
long-tailed quantile:6 0 36d32654837cea74 1c3eb6d0889c9c15 690e7368662ab3ff 6225a85117c56f25
long-tailed quantile:6 1 e55a98b612f6287c 779c216325a0b4be 6d77d03a0a09d033 ffce0b62df50c9a4
long-tailed exponential:6 0 980aad60dffbe878 0d5d4ee4c5ca5618 ea0d98d6946bab6c 1cb18144f0624b18
long-tailed exponential:6 1 d1e09eb7d30115d3 d975903578ac28cc 02edf13f20ebd314 18a6f4d2ac3e9a1e
long-tailed mxnet:6 0 9711ba6055393642 90250ca56d7b94af 01840706341ecfca 0d248bd0911bd25c
long-tailed mxnet:6 1 1aeb909de70e55ba db2e848619b3e97d 4df8ed621b523680 2d88700040dc8c65
long-tailed max-entropy:0.05 0 e1ac488f20ef217e b5077c7ca1866e0a db6d355b7f9ee16f c54786923fcfec13
long-tailed max-entropy:0.05 1 11dea3b9825d2e97 5bbbeb495947f828 b320e9bba7f52991 f1cdbf6506f84e9e
long-tailed budget 0 949cdad79765c817 615bdc8ac1c9cb79 e1d72a180811ce3b faa9f25edccfa6ed
long-tailed budget 1 4aa24812093b16dc 1c7fc5ce2d8e5085 68c8e9d2477f1add 90acfafd3a6a15db
long-tailed dynamic 0 b0217726833c48b2 e950342fa588dbcc 075d4570322c8cc2 de5a5cbcaaaad0ed
long-tailed dynamic 1 6017c1e09062d30f 611712fb495c892f 6a780a5630030308 1e04ace4df8fefe8
long-tailed portions 0 effac8e676220c62 37de334db5808758 79da3be19e2e5b54 2e8e4fef92eab3fa
long-tailed portions 1 15322c94f48acb7e 67d323fedf06c09a b9b2a4a9c9469ad3 010a4353a60ee04b
long-tailed chunks 0 6eccb3efbe42c322 5933c5d5fd84f2a6 3893bd3f7a05d119 5e1d27db31e40d92
long-tailed chunks 1 b9c33e81d2825867 ef375fa02d0c1d81 a1b3460ddce14138 45b6204e8cace8fa
long-tailed default 0 3f4e58096da3efde 1753d97a2810c900 f7de891ea697c8f9 fb888887b68fc14c
long-tailed default 1 cc2a58abbd1e356a cd04ca5007e35342 ab1c6ad4fdeaed6d 9a9d4026015ea040
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


if __name__ == "__main__":
    for each in itertools.product(("speech", "long-tailed"), STRATEGIES, "01"):
        print(*each, *fingerprints(*each[:2], int(each[2])))
