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
speech max-entropy:0.05 0 f949f6313370a0b9 54dd9d342a1a7acf 070b966c72eab936 b47d0880776f247c
speech max-entropy:0.05 1 5659530773c1d3ee 53a7ec506b9f9bf5 d372b60c9c60688f 9f4f6b51dd050aee
speech budget 0 89113683cf0e7a80 d2643ffab1a8de6f ce9b45fcd6538660 8bd2eb6ca3846647
speech budget 1 93bffac32493452b 6170920956714840 4f85c98f5ce0672e aba55d9240aa991f
speech dynamic 0 4a9e290b4b07c96a c4c2cf105bf01e33 9fe6aead8de59372 9844a866cd941552
speech dynamic 1 6b0b4c90a149dc13 c33e461ca04d4be8 610b2cc398384960 c3fe00b3848108a4
speech portions 0 2b9a8429d42b4113 d74854b65719daad a3c198b987c02eac 5618a81505ca2004
speech portions 1 7d647cc31d3292c8 2f1e3b6b37066f25 c5abe6df6bc22a6b 875ba9696ae3c383
speech chunks 0 f7489d9703760bf4 72e68b70a76baf06 8f99b8eda22c1b5d 12c92a40f40d163e
speech chunks 1 c5c7505cd6442e23 d196d0d9dbaa45cb de661a9eed5963ee 0d6ce267a3d069ad
speech default 0 434848162e5ea816 da93ff4108981804 03235a89005cfdc0 7908b51b1c128aa8
speech default 1 c2d1203a0284926f fa3202be9e01deb6 30d9e092044f36e8 3a7f7e75e5cd611c
speech random-steps 0 c5aeccb15b89b097 df301a47f09a2fbe 7f1ab2d7747337ea 0124ec826040a923
speech random-steps 1 9aec60155668be04 cfe872642640e261 5dec380baf23f289 f6b8b538b44b8160
speech steps-of-eight 0 7cb4835dd534829d 1853e83552ac49d1 78e010f6577c107d 0208848bd1b0581b
speech steps-of-eight 1 50efe2343e4a6e87 32e81b276273d25b 425bdffa121fb506 a41205a77309d5e6
speech stratified 0 8f5300bab90c0e07 576bb7d745ded574 8fc55c654f5727b9 e985fdbaca4f5e2a
speech stratified 1 7796832b11bac4fb 88621b0789efc58f 13f10039ec7a1975 fa1707b9f12efc92
speech rows 0 c9530e8450799c92 02c99a95cd54679f 41b353843082caf1 fbe3146f72c8d85a
speech rows 1 fde973ff2c544f03 1bc22f06591b6e06 5a703bd485aa4ac3 3cbd2e33bf968f45
speech rows-best-fit 0 27854ade240b9f7a 2df003b5218d8ade c1abc9aab314a8d6 17e577ee7207608f
speech rows-best-fit 1 c69169d3fba19bb3 b1211a8903332620 fb4605144acc5ff4 437176df8523ab57
speech steps-of-rows 0 df769ac0011770a0 ee9fb57c236b656d aec47150e16784e8 7050f1b433a38665
speech steps-of-rows 1 bd6b89ea0ec4290f cfbdb19a9152dfb4 4479ff214b71f04f 3337923db315ce29
speech optimal-cut 0 eec032730741cf65 091363c2bf967549 07ec06f21084d4d0 79e43621eea773c5
speech optimal-cut 1 f449dad7f5fb9783 228eebe172594f1d 153e4c655c922b37 fb54a16d0597954b
speech multiples 0 164ae188a050646b 958d002c076d2dbc e72305d7dde8981d c48718bded59cf67
speech multiples 1 1afc2cf8e71a6f2b c0652063b454fa25 4619219b940ef2dd 3e6a40d42351ef09
speech steps-of-multiples 0 72292f82a58461c1 238e1edda5e65602 273ae0b375d5c5a5 ca581ffc3d740218
speech steps-of-multiples 1 f80638b5dd10cca7 a1345d4189a37148 3c868b286df86ff1 0fab85bf7af69ea5
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
long-tailed max-entropy:0.05 0 642be613069e7296 455ba54acff7fa72 9788bf3c5a02e852 da81b088df3e40d1
long-tailed max-entropy:0.05 1 7055280d400015f2 da78ecf263f03bbe c3350f97209c6943 801e8edf16ae1c8c
long-tailed budget 0 9859b380b85090dd 5abcfe92c8fae5ee baecaef1c41eeab8 c630df95c611adea
long-tailed budget 1 ec92e80face28160 1e1bb9b3fcd5a13e 747d52c6e112f216 c2421c2c62db3c74
long-tailed dynamic 0 b0217726833c48b2 cf7869c64cf2bb67 075d4570322c8cc2 419e20922e3c16cc
long-tailed dynamic 1 6017c1e09062d30f ec05b63695003f7c 6a780a5630030308 b0bf8cf64cefe08d
long-tailed portions 0 effac8e676220c62 37de334db5808758 79da3be19e2e5b54 2e8e4fef92eab3fa
long-tailed portions 1 15322c94f48acb7e 67d323fedf06c09a b9b2a4a9c9469ad3 010a4353a60ee04b
long-tailed chunks 0 6eccb3efbe42c322 5933c5d5fd84f2a6 3893bd3f7a05d119 5e1d27db31e40d92
long-tailed chunks 1 b9c33e81d2825867 ef375fa02d0c1d81 a1b3460ddce14138 45b6204e8cace8fa
long-tailed default 0 fbbae9ff4fb15a75 009d221ed53ebdab ba38bf732dc28453 2e1601a7052749cd
long-tailed default 1 62f62daf861a8c5a 48c749fdbade1c55 173dd399c248c4ff d135162f0c5ebaf6
long-tailed random-steps 0 e4538bd9c4b3aa81 e7d14dae34bf5516 283fda75bc61283b f05613a90bb66e4c
long-tailed random-steps 1 31b45c7b0187b6f7 d2bd90b606013811 14ea23331d2543b6 125e9e6b2624af7c
long-tailed steps-of-eight 0 c68b00a5c9a541af 5780fc77fdbdc932 e6bc79fc34a08445 e46e17d4a1acd57c
long-tailed steps-of-eight 1 40b53947a78eeca2 082435865339a30c 055aebc4e461afa7 0220aa9a7ba1d209
long-tailed stratified 0 4a10030212752e32 7404fffb1d7c3a73 a8990cecc5bfbd3a d745621b36a29573
long-tailed stratified 1 c56370234286bf9b 839f18cc4f1b40cf 0576513aa3b84fe8 81d192193a49011b
long-tailed rows 0 ed6170c2390f6b48 7db53002191211b8 9d8917f10b1720ab 1b371c863315d553
long-tailed rows 1 d54b3893456a6184 e99db426152ebe7c b846bda61a8cbc56 47b8497f4280d9da
long-tailed rows-best-fit 0 61f2241797ad0ef4 fb89a48c2abeb8f5 038665ded0bde449 12576c181721a899
long-tailed rows-best-fit 1 bc28a0620a6a7fab 84f0fdd7c914632e f92bd32c72797ab5 965495bdd939a15e
long-tailed steps-of-rows 0 54770a4ef6fd137b 19a411cacd4d8e43 e3753ba73bc3bc97 5baffc134f5884ca
long-tailed steps-of-rows 1 b5ebdc0ff0856247 fd76e73e3171fb0d a880270d653cf3fb 6322ddf472003df4
long-tailed optimal-cut 0 822f3293acbedf19 2ef6b3183c8dbb0d 392fa2bd73c32706 88e0cafb8941eea0
long-tailed optimal-cut 1 1d6f7f16db209fb4 ce5388298f8d4049 70f0973ec7397327 e795c6f4f9ddecb2
long-tailed multiples 0 b09c617ce53242d3 5f0acb4f7fd1a648 4678889ec54fd7ef 400c434785cbbd69
long-tailed multiples 1 08408760fc6c1fac c1938f2969fcaae0 b806e24dfcdd5849 b8e8d14fcdcbea7f
long-tailed steps-of-multiples 0 0845c34ac792cebd 569990c4047e112f f8ae3c48e839a100 e737c2b55720cbb4
long-tailed steps-of-multiples 1 14ad3df07557e305 c3f785f7f5dfc28e ce3f7f0867f41dce db4f1c18e534cfff
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
