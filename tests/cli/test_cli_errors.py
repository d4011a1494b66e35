"""What is wrong with the input is one sentence on standard error, nothing on standard output, and exit status 2."""

import pytest

# The words of a command, and what its complaint must hold.
WRONG = {
    "compare nofile.csv": "`source` must be a file or folder that exists, but is 'nofile.csv'.",
    "compare {folder}/fuor.csv": "four.csv'?",
    "compare {four_file}": "four.csv:frames), several as",
    "compare {four_file}:nope": "but is 'nope' at line 1",
    "compare {four_file}:name": "`name` must be a number, but is 'a' at line 2",
    "compare {empty}": "It has none: is this the right file?",
    "compare --strategies bucketed:0": "`size` must be at least 1, but is 0.",
    "compare --strategies bucketed:4,by=quantile,longer=drop": "`by` must be left out with size or edges, but is",
    "compare --strategies max-entropy:2": "`padding` must be at least 0 and at most 0.99, but is 2.",
    "compare --cut banana": "`cut` must be fixed:SIZE, budget:COST, dynamic:SIZE or rows:CAPACITY, but is 'banana'.",
    "compare --cut dynamic:4,rule=x": "`rule` must be one of hard, paper, but is 'x'.",
    "compare --cut fixed:99999,drop-incomplete=true": "`steps` must be at least 1, but is 0. No batch is left.",
    "advise --balance -0.5": "`balance` must be finite and at least 0, but is -0.5. Give the Q of L (1 + Q L).",
    "compare --budget 10": "the longest sequence, 6,163, but is 10.0. Try --budget 8720, or --cut budget:10,oversize=",
    "compare --budget -1": "`budget` must be finite and above 0, but is -1.0.",
    "compare --batch-size x": "`--batch-size` must be a whole number, but is 'x'.",
    "compare --budget x": "`--budget` must be a number, but is 'x'. Give the largest batch in padded frames: ",
    "compare --budget": "16 times their mean length. `lengthwise inspect FILE` names a first budget.",
    "compare --cut budget:20,000": "but is 'budget:20,000'. Give the largest batch in padded frames: 16 sequences have",
    "buckets --cut budget:10": "mean length is over the budget too: it costs 518, and 16 of them cost about 8288.",
    "compare --batch-size 4 --budget 5": "`--budget` must be left out if --batch-size is given.",
    "compare --strategies best-fit": "but is 'best-fit'. It packs rows: on the command line, give --cut rows:CAP",
    "compare --cut rows:8192 --strategies max-entropy:0.1": "`padding` must be left out for a cut that packs ",
    "compare --cut rows:8192 --strategies pool": "`strategy` must be written pool:SIZE, but is 'pool'.",
    "compare --seed -1": "`seed` must be at least 0, but is -1.",
    "compare --json {unwritable}": "`json` must be in a folder that exists",
    "compare --plot plot.gif": "`plot` must be a file of one of the kinds .png, .svg, .pdf, but is 'plot.gif'.",
    "compare --html -": "`html` must be a file to write, but is '-'.",
    "buckets --buckets 2 --html a.html": "lengthwise buckets: there is no --html",
    "compare --example speech {four}": "`example` must be left out where a file is given, but is 'speech'.",
    "compare --frame-shift 0.1": "`frame-shift` must be given with a file, but is 0.1.",
    "compare --count words": "`count` must be given with a file, but is 'words'.",
    "compare {four} --tokenizer a.json": "`tokenizer` must be left out unless tokens are counted, but is 'a.json'.",
    "compare {four} --frame-shift 0": "`frame_shift` must be finite and above 0, but is 0.0.",
    "compare --strat random": "lengthwise compare: there is no --strat",
    "--hepl": "lengthwise: there is no --hepl here. Did you mean '--help'?",
    "advize": "but is 'advize'. Did you mean 'advise'?",
    "compare --strategies semisorted:0.1": "but is 'semisorted'. Did you mean 'semi-sorted'?",
    "compare --strategies sorted,dael=mixed": "but is 'dael' at sorted,dael=mixed. Did you mean 'deal'?",
    "compare --cut bugdet:5": "but is 'bugdet:5'. Did you mean 'budget'?",
    "--": "lengthwise: there is no -- here.",
    "buckets --buckets 0": "`shapes` must be at least 1, but is 0.",
    "buckets --cut rows:90": "`cut` must be one that pads",
    "buckets {pairs}": "`lengths` must be of shape [n], but is (40, 2). Take one column, such as lengths[:, 0]",
    "buckets --buckets x": "`--buckets` must be a whole number, but is 'x'.",
    "plan {giant} --strategy uniform:99999999999999": "plan: There is not enough memory for this.",
    "buckets {huge}": "`lengths` must be few and short enough to be padded to less than 2**53 frames, but is ",
    "plan --chunk 100 {longest}": "`chunks` must be at most 1073741824 in all, but is 184467440737095520.",
    "plan --strategy max-entropy:0.1,tail=drop": "`tail` must be given with a deal here, but is 'drop' at max-entropy",
    "plan --strategy random,tail=cut": "`tail` must be one of split, repeat, drop, but is 'cut'.",
    "plan --chunk 10 {pairs}": "`lengths` must be of shape [n], but is (40, 2).",
    "plan --strategy random,deal=portions,tail=drop": "`tail` must be left out with deal=portions, but is 'drop' at",
    "plan --strategy random,tail=drop --world-size 8000": "is 0. A step takes 8000 batches, but ",
    "plan --output {unwritable}": "`output` must be in a folder that exists",
    "plan {four} --output {four_file}": "`output` must be a file that the command neither reads nor writes",
    "inspect {four} --json {folder}/./four.csv": "`json` must be a file that the command neither reads nor writes al",
    "advise {four} --html a.html --json a.html": "`html` must be a file that the command neither reads nor writes al",
    "advise --subset 50 --padding 5%": "`--padding` must be a number, but is '5%'.",
    "advise --subset 50 --cut rows:900": "`capacity` must be at least the longest sequence, 1125, but is 900 at",
    "inspect {four} --max-length 0": "`max-length` must be at least 1, but is 0. Give the length that your ",
    "advise --subset 50 --budget 100": "the longest sequence, 1,125, but is 100.0. Try --budget 7869, ",
    "advise --subset 50 --cost missing.json": "`path` must be a file that can be read, but is 'missing.json'.",
    "inspect --plot a.png": "lengthwise inspect: there is no --plot",
    "inspect --cut budget:1" + 400 * "0": "`budget` must be finite and above 0, but is 10000",
    "inspect {four} ok.npy": "lengthwise inspect: there is no ok.npy here.",
    "foo": "`COMMAND` must be one of advise, inspect, compare, plan, buckets, ",
}


@pytest.fixture
def places(tmp_path, four, pairs, unwritable):
    rows = {"empty": (), "giant": (9, 10**14), "huge": (2**62,) * 3, "longest": (2**63 - 1,) * 2}
    for name, lengths in rows.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"{length}\n" for length in lengths))
    files = {name: tmp_path / f"{name}.txt" for name in rows} | {"four_file": four.removesuffix(":frames")}
    return files | {"four": four, "pairs": pairs, "unwritable": unwritable, "folder": tmp_path}


@pytest.mark.parametrize("words", WRONG)
def test_one_sentence_and_exit_status_2(run, places, monkeypatch, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    done = run(*words.format(**places).split(" ")) if words else run()
    assert WRONG[words] in done.err
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("lengthwise")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert sorted(tmp_path.iterdir()) == before
