"""What is wrong with the input is one sentence on standard error, nothing on standard output, and exit status 2."""

import os

import pytest

import lengthwise as lw
from lengthwise.cli.show import PICTURES

# The words of a command, and what its complaint must hold.
WRONG = {
    "compare nofile.csv": "`source` must be a file or folder that is there, but is 'nofile.csv'.",
    "compare nofil.csv": "`source` must be a file or folder that is there, but is 'nofil.csv'. Check the path;",
    "compare {folder}/fuor.csv": "four.csv'?",
    "compare {four_file}": "four.csv:frames), several as",
    "compare {four_file}:nope": "but is 'nope' at line 1",
    "compare {four_file}:": "`source` must be FILE or FILE:COLUMN",
    "compare {four_file}:name": "`name` must be a number, but is 'a' at line 2",
    "compare {empty}:x": "It has none: is this the right file?",
    "compare {header}:a": "It has none: is this the right file?",
    "compare --strategies banana": "`strategy` must be one of random, random-steps, sorted, semi-sorted,",
    "compare --strategies random,": "`strategy` must be of the form name[:value][,key=value...], but is ''.",
    "compare --strategies random,random": "`strategies` must be different from each other, but is 'random'.",
    "compare --strategies random:3": "`strategy` must be written random, but is 'random:3'.",
    "compare --strategies semi-sorted": "`strategy` must be written semi-sorted:LRF, but is 'semi-sorted'.",
    "compare --strategies semi-sorted:much": "`randomization_factor` must be a number, but is 'much'.",
    "compare --strategies bucketed:0": "`size` must be at least 1, but is 0.",
    "compare --strategies bucketed:4,by=quantile,longer=drop": "`by` must be left out with size or edges, but is",
    "compare --strategies alternated:1.5": "`bins` must be a whole number, but is 1.5.",
    "compare --strategies max-entropy:2": "`padding` must be at least 0 and at most 0.99, but is 2.",
    "compare --strategies sorted,arrange=up": "`arrange` must be one of shuffled, in-order",
    "compare --strategies sorted,foo=1": "`key` must be one of descending, arrange, deal, tail, but is 'foo'",
    "compare --cut banana": "`cut` must be fixed:SIZE, budget:COST, dynamic:SIZE or rows:CAPACITY, but is 'banana'.",
    "compare --cut dynamic": "`cut` must be fixed:SIZE, budget:COST, dynamic:SIZE or rows:CAPACITY, but is 'dynamic'.",
    "compare --cut dynamic:0": "`batch_size` must be at least 1, but is 0.",
    "compare --cut dynamic:4,rule=x": "`rule` must be one of hard, paper, but is 'x'.",
    "compare --cut fixed:99999,drop-incomplete=true": "`steps` must be at least 1, but is 0. No batch is left.",
    "compare --budget 10": "the longest sequence, 6,163, but is 10.0. Try --budget 9205, or --cut budget:10,oversize=",
    "compare --budget -1": "`budget` must be finite and above 0, but is -1.0.",
    "compare --budget nan": "`budget` must be finite and above 0, but is nan.",
    "compare --batch-size 0": "`batch_size` must be at least 1, but is 0.",
    "compare --batch-size x": "`--batch-size` must be a whole number, but is 'x'.",
    "compare --budget x": "`--budget` must be a number, but is 'x'. Give the most padded frames of a batch: ",
    "compare --budget": "16 times their mean length. `lengthwise inspect FILE` counts them.",
    "compare --budget 0": "Give the most padded frames of a batch: 16 sequences have about 16 times their mean length.",
    "compare --cut budget": "but is 'budget'. Give the most padded frames of a batch: 16 sequences have about",
    "compare --cut budget:": "but is 'budget:'. Give the most padded frames of a batch: 16 sequences have about",
    "compare --cut budget:20,000": "but is 'budget:20,000'. Give the most padded frames of a batch: 16 sequences have",
    "buckets --cut budget:10": "mean length is over it too: it costs 518, and 16 of them cost about 8288.",
    "compare --batch-size 4 --budget 5": "`--budget` must be left out beside --batch-size.",
    "compare --subset 10481": "`subset` must be at most 10480, but is 10481.",
    "compare --subset 0": "`subset` must be at least 1, but is 0.",
    "compare --seed -1": "`seed` must be at least 0, but is -1.",
    "compare --subset 9 --seed -1": "`seed` must be at least 0, but is -1.",
    "compare --json {unwritable}": "`json` must be in a folder that is there",
    "compare --json {folder}": "`json` must be a file to write",
    "compare --plot {unwritable}": "`plot` must be in a folder that is there",
    "compare --plot plot.gif": "`plot` must be a file of one of the kinds .png, .svg, .pdf, but is 'plot.gif'.",
    "compare --plot -": "`plot` must be a file to write, but is '-'.",
    "compare --html {unwritable}": "`html` must be in a folder that is there",
    "compare --html {folder}": "`html` must be a file to write",
    "compare --html -": "`html` must be a file to write, but is '-'.",
    "buckets --buckets 2 --html a.html": "lengthwise buckets: there is no --html",
    "compare --json - --plot plot.gif": "`plot` must be a file of one of the kinds",
    "compare --example banana": "`--example` must be one of long-tailed, speech, but is 'banana'.",
    "compare --example speech {four}": "`example` must be left out where a file is given, but is 'speech'.",
    "compare --frame-shift 0.1": "`frame-shift` must be given with a file, but is 0.1.",
    "compare --count words": "`count` must be given with a file, but is 'words'.",
    "compare {four} --tokenizer a.json": "`tokenizer` must be left out unless tokens are counted, but is 'a.json'.",
    "compare {four} --frame-shift 0": "`frame_shift` must be finite and above 0, but is 0.0.",
    "compare --strat random": "lengthwise compare: there is no --strat",
    "compare --json": "`--json` must be followed by a value.",
    "--hepl": "lengthwise: there is no --hepl here. Did you mean '--help'?",
    "advize": "but is 'advize'. Did you mean 'advise'?",
    "plan --wordl-size 2": "lengthwise plan: there is no --wordl-size here. Did you mean '--world-size'?",
    "plan --example speach": "`--example` must be one of long-tailed, speech, but is 'speach'. Did you mean 'speech'?",
    "compare --strategies semisorted:0.1": "but is 'semisorted'. Did you mean 'semi-sorted'?",
    "compare --strategies sorted,arrange=inorder": "but is 'inorder'. Did you mean 'in-order'?",
    "compare --strategies sorted,dael=mixed": "but is 'dael' at sorted,dael=mixed. Did you mean 'deal'?",
    "compare --cut bugdet:5": "but is 'bugdet:5'. Did you mean 'budget'?",
    "--": "lengthwise: there is no -- here.",
    "buckets --buckets 0": "`shapes` must be at least 1, but is 0.",
    "buckets --buckets x": "`--buckets` must be a whole number, but is 'x'.",
    "plan {giant} --strategy uniform:99999999999999": "plan: There is not enough memory for this.",
    "buckets {huge}": "`lengths` must be few and short enough to be padded to less than 2**53 frames, but is ",
    "plan --strategy random,sorted": "`strategy` must be one strategy, but is 'random,sorted'.",
    "plan --world-size 0": "`world_size` must be at least 1, but is 0.",
    "plan --micro-batches 0": "`micro_batches` must be at least 1, but is 0.",
    "plan --chunk 0": "`size` must be at least 1, but is 0.",
    "plan --chunk 100 {longest}": "`lengths` must be few and short enough to be padded",
    "plan --strategy max-entropy:0.1,tail=drop": "`tail` must be given with a deal here, but is 'drop' at max-entropy",
    "plan --strategy random,tail=cut": "`tail` must be one of split, repeat, drop, but is 'cut'.",
    "plan --chunk 10 {pairs}": "`lengths` must be of shape [n], but is (40, 2).",
    "plan --strategy random,deal=portions,tail=drop": "`tail` must be left out with deal=portions, but is 'drop' at",
    "plan --strategy random,tail=drop --world-size 8000": "is 0. A step takes 8000 batches, but ",
    "plan --output {unwritable}": "`output` must be in a folder that is there",
    "plan --output -": "`output` must be a file to write, but is '-'.",
    "plan --epoch -1": "`epoch` must be at least 0, but is -1.",
    "inspect --plot a.png": "lengthwise inspect: there is no --plot",
    "inspect --cut budget:1" + 400 * "0": "`budget` must be finite and above 0, but is 10000",
    "inspect --subset 10.5": "`--subset` must be a whole number, but is '10.5'.",
    "inspect {four} ok.npy": "lengthwise inspect: there is no ok.npy here.",
    "foo": "`COMMAND` must be one of advise, inspect, compare, plan, buckets, ",
}


@pytest.fixture
def places(tmp_path, four, pairs, unwritable):
    empty, header = tmp_path / "empty.csv", tmp_path / "header.csv"
    empty.write_text("")
    header.write_text("a,b\n")
    giant, huge = tmp_path / "giant.txt", tmp_path / "huge.txt"
    giant.write_text(f"9\n{10**14}\n")
    huge.write_text(f"{2**62}\n" * 3)
    longest = tmp_path / "longest.txt"
    longest.write_text(f"{2**63 - 1}\n" * 2)
    return {
        "four": four,
        "four_file": four.removesuffix(":frames"),
        "pairs": pairs,
        "unwritable": unwritable,
        "folder": tmp_path,
        "empty": empty,
        "header": header,
        "giant": giant,
        "huge": huge,
        "longest": longest,
    }


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


def test_the_system_says_no(run):
    done = run("compare", "--subset", 9, "--strategies", "random", "--json", "/proc/lengthwise.json")
    assert done.status == 2
    assert "`path` must be a file that can be written, but is '/proc/lengthwise.json'." in done.err
    assert "The system says: " in done.err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("option", ["--json", "--output"])
def test_a_device_is_not_written(run, option):
    done = run("plan", "--subset", 9, option, "/dev/full")
    assert (done.status, done.out) == (2, "")
    rule = "`path` must be a file that can be written, but is '/dev/full'. The system says: a pipe or a device."
    assert done.err == f"lengthwise plan: {rule} Fix that, or name another file.\n"


@pytest.mark.parametrize("suffix", PICTURES)
def test_the_pictures_that_are_promised_can_be_drawn(tmp_path, suffix):
    pytest.importorskip("altair")
    path = tmp_path / f"lengths{suffix.upper()}"
    lw.report.save_chart(lw.report.histogram([1, 2]), path)
    assert path.stat().st_size > 0
