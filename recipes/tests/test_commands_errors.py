"""What is wrong with the words of `study` and `reproduce` is one sentence on standard error, and exit status 2."""

import pytest

# The words of a command, and what its complaint must hold.
WRONG = {
    "reproduce": "the following arguments are required: PAPER.",
    "reproduce foo": "`PAPER` must be one of khomenko2016, doetsch2017, ge2021, ge2021-table1, but is 'foo'.",
    "reproduce ge2021-table1 ok.npy": "lengthwise reproduce ge2021-table1: a file must follow its option, as "
    "--lengths ok.npy. `lengthwise reproduce ge2021-table1 --help` lists",
    "reproduce khomenko2016 ok.npz": "a file must follow its option, as --data ok.npz.",
    "study handwriting ok.npz": "lengthwise study handwriting: a file must follow its option, as --data ok.npz.",
    "reproduce ge2021-table1 --length ok.npy": "reproduce ge2021-table1: there is no --length ok.npy here.",
    "reproduce ge2021-table1 --seeds 0": "`seeds` must be at least 1, but is 0.",
    "reproduce ge2021-table1 --seed -5": "`seed` must be at least 0, but is -5.",
    "reproduce ge2021-table1 --lengths {pairs}": "`lengths` must be of shape [n], but is (40, 2).",
    "study quality --task acoustic --scripts Latin": "`scripts` must be left out with --task acoustic",
    "reproduce ge2021 --data d --max-words 5": "`max-words` must be left out with --data or --sentences, but is 5.",
    "reproduce ge2021 --sentences s --max-words 5": "`max-words` must be left out with --data or --sentences",
    "reproduce ge2021 --frame-shift 0.1": "`frame-shift` must be left out without --lengths, but is 0.1.",
    "reproduce ge2021 --lengths {four} --frame-shift 60": "`frame_shift` must be given for durations only, but is 60",
    "reproduce ge2021 --batch-size 0": "`batch_size` must be at least 1, but is 0.",
    "reproduce ge2021 --lengths nofile": "`source` must be a file or folder that exists, but is 'nofile'.",
}


@pytest.mark.parametrize("words", WRONG)
def test_one_sentence_and_exit_status_2_of_the_recipes(run, four, pairs, monkeypatch, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    done = run(*words.format(four=four, pairs=pairs).split(" "))
    assert WRONG[words] in done.err
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("lengthwise")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert sorted(tmp_path.iterdir()) == before
