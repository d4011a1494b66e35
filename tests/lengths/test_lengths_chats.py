"""Lists whose count is a guess: turns of a chat, sentences, points. Their texts are counted, or they are refused."""

import re

import pytest

import lengthwise as lw
from table_files import write_table

CHAT = [
    [{"role": "user", "content": "how are you"}, {"role": "assistant", "content": "well"}],
    [{"role": "user", "content": "so it begins"}, {"role": "assistant", "content": "a b c d"}],
    [{"role": "user", "content": "one more"}],
]
WORDS = [4, 7, 2]
SHAREGPT = [[{"from": turn["role"], "value": turn["content"]} for turn in turns] for turns in CHAT]
TEXTS = [[turn["content"] for turn in turns] for turns in CHAT]
FIELDS = [{"from": ["human", "gpt"], "value": ["hi", "well"]}, {"from": ["human"], "value": ["ok"]}]
PARTS = [[{"role": "user", "content": [{"type": "text", "text": "how are you"}]}]]
NO_TEXT = [[{"role": "assistant", "content": None}]]

COUNTED = [
    (CHAT, "x", "words", WORDS),
    (CHAT, "x.*.content", "words", WORDS),
    (SHAREGPT, "x", "words", WORDS),
    (SHAREGPT, "x.*.value,id", "words", [[words, 7] for words in WORDS]),
    (FIELDS, "x.value", "words", [2, 1]),
    (TEXTS, "x", "words", WORDS),
    ([[{"t": 0, "value": 1.5}, {"t": 1, "value": None}], [{"t": 0, "value": 2.5}]], "x.*.value", None, [2, 1]),
    ([[5, 6, 7], [1]], "x", None, [3, 1]),
    ([[0.5, None, 1.0], [2.0]], "x", None, [3, 1]),
]

NUMBERS = "`{}` must be a list of numbers, "
COUNT_TURNS = (
    'Count the texts in the list: column="x.*.content", count="words" (on the command line: "FILE:x.*.content" '
    "--count words)"
)
COUNT_TEXTS = "These are texts: give `count` as "
OWN_COLUMN = "Add a column with the lengths"
REFUSED = [
    (CHAT, "x", None, [NUMBERS, COUNT_TURNS]),
    (CHAT, "x.*.content", None, [NUMBERS, COUNT_TEXTS]),
    ([[{"role": "user", "content": "你好吗朋友"}, {"role": "user", "content": ""}]], "x", None, [NUMBERS, COUNT_TURNS]),
    (NO_TEXT, "x", None, [NUMBERS, COUNT_TURNS]),
    (PARTS, "x", None, [NUMBERS, COUNT_TURNS]),
    ([[{"role": "user", "text": "hello you"}]], "x", None, [NUMBERS, 'Count the texts in the list: column="x.*.text"']),
    ([[{"role": "user", "says": "how are you"}]], "x", None, [NUMBERS, OWN_COLUMN]),
    (FIELDS, "x.value", None, [NUMBERS, COUNT_TEXTS]),
    (TEXTS, "x", None, [NUMBERS, COUNT_TEXTS]),
    ([[[1, 2], [3, 4]], [[5, 6]]], "x", None, [NUMBERS, OWN_COLUMN]),
    ([[{"x": 1, "y": 2}], [{"x": 3, "y": 4}]], "x", None, [NUMBERS, OWN_COLUMN]),
    (PARTS, "x", "words", ["`x.*.content` must be a text in every item, but is [{'"]),
    ([CHAT[0], *NO_TEXT], "x", "words", ["`x.*.content` must be a text in every item, but is None at "]),
    (CHAT, "x.*.text", "words", ["`column` must be "]),
    ([CHAT[0], None, CHAT[1]], "x.*.content", "words", [" must be ", ", but is None at "]),
]


@pytest.fixture(params=["a.jsonl", "a.json", "a.parquet", "a.arrow", "a.saved"])
def write(request, tmp_path):
    return lambda cells: write_table(tmp_path / request.param, id=[7] * len(cells), x=cells)


def test_texts_and_numbers_in_lists_are_counted(write):
    for cells, column, count, lengths in COUNTED:
        assert lw.read_lengths(write(cells), column=column, count=count).tolist() == lengths, (cells, column)


def test_lists_whose_count_is_a_guess_are_refused_with_a_remedy(write):
    for cells, column, count, parts in REFUSED:
        with pytest.raises(ValueError, match=r"^`") as refused:
            lw.read_lengths(write(cells), column=column, count=count)
        for part in parts:
            assert part.replace("{}", column) in str(refused.value), (cells, column)


@pytest.mark.parametrize("cell", [[1, [2]], [1, {"content": "b"}], [1, "a"]])
def test_mixed_lists_are_refused(tmp_path, cell):
    path = write_table(tmp_path / "a.jsonl", x=[[1], cell])
    with pytest.raises(ValueError, match=rf"^`x` must be a list of numbers, .* at line 2 of {re.escape(str(path))}"):
        lw.read_lengths(path, column="x")
