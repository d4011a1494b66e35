"""Columns of texts, and of lists whose count is a guess: counted as asked, or refused with what to type."""

import re

import pyarrow as pa
import pytest

from lengthwise.lengths import read_lengths
from table_files import write_table

TEXTS = ["so it begins", "größer", "a  b\tc\nd"]
CHARACTERS, WORDS, TOKENS = [12, 6, 8], [3, 1, 4], [4, 2, 5]
CODED = pa.array(TEXTS).dictionary_encode()


@pytest.fixture(params=["a.jsonl", "a.csv", "a.parquet", "a.arrow"])
def source(request, tmp_path):
    texts = CODED if request.param == "a.arrow" else TEXTS
    return write_table(tmp_path / request.param, text=texts, n=[5] * 3)


def test_texts_are_counted_as_asked_and_numbers_beside_them_stay(source, tokenizer):
    for count, lengths in (("characters", CHARACTERS), ("words", WORDS)):
        assert read_lengths(source, column="text", count=count).tolist() == lengths
    assert read_lengths(source, column="text", count="tokens", tokenizer=tokenizer).tolist() == TOKENS
    assert read_lengths(source, column="n,text", count="words").tolist() == [[5, words] for words in WORDS]


def test_texts_without_a_count_are_refused_with_what_to_type(source):
    told = 'give `count` as "characters", "words" or "tokens" (on the command line: --count characters, or words)'
    rule = rf"^`text` must be a number, but is 'so it begins' at .*; if these are texts, {re.escape(told)}\.$"
    with pytest.raises(ValueError, match=rule):
        read_lengths(source, column="text")


def test_each_line_of_a_text_file_is_a_text(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("so it begins\nand ends\r\n\u2028 #not a comment")
    assert read_lengths(path, count="words").tolist() == [3, 2, 3]
    path.write_text("MKV\nGG\n")  # proteins
    with pytest.warns(match="^Each text is one word, so all lengths are 1"):
        assert read_lengths(path, count="words").tolist() == [1, 1]
    for lines, told in (("one two\nthree\n", "on the command line: --count words"), ("a\n\nb\n", "")):
        path.write_text(lines)
        with pytest.raises(ValueError, match=rf"at line [12] of {re.escape(str(path))}\. .*{told}"):
            read_lengths(path, count=None if told else "words")
    with pytest.raises(ValueError, match="`column` must be left out here"):
        read_lengths(path, count="words", column="0")


def test_a_count_of_numbers_is_refused(source):
    if source.suffix == ".csv":  # where all cells are texts
        assert read_lengths(source, column="n", count="characters").tolist() == [1, 1, 1]
        return
    message = "`count` must be given for texts only, but is 'words'. Leave it out, or name a column of texts."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read_lengths(source, column="n", count="words")


def save_tokenizer(path, words, *, first="", unknown="[UNK]"):
    """Saves a tokenizer of words. `first` is a special token before them."""
    tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers: pip install tokenizers")
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: place for place, word in enumerate(words)}, unk_token=unknown)
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    if first:
        template = tokenizers.processors.TemplateProcessing(single=f"{first} $A", special_tokens=[(first, 1)])
        tokenizer.post_processor = template
    tokenizer.enable_padding()
    tokenizer.enable_truncation(3)  # files may have both on; texts are counted whole
    tokenizer.save(str(path))
    return path


@pytest.fixture
def tokenizer(tmp_path):
    return save_tokenizer(tmp_path / "tokenizer.json", ["[UNK]", "[CLS]", "so"], first="[CLS]")


def test_a_tokenizer_that_was_written_anew_is_read_anew(tmp_path, tokenizer):
    texts = write_table(tmp_path / "a.csv", t=["so it"])
    assert read_lengths(texts, column="t", count="tokens", tokenizer=tokenizer).tolist() == [3]
    save_tokenizer(tokenizer, ["[UNK]"])
    assert read_lengths(texts, column="t", count="tokens", tokenizer=tmp_path).tolist() == [2]  # its folder


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"count": "letters"}, "`count` must be one of characters, words, tokens, but is 'letters'."),
        ({"count": "tokens"}, "`tokenizer` must be given, because tokens are counted, but is None. Give the path"),
        ({"tokenizer": "t"}, "`tokenizer` must be left out unless tokens are counted, but is 't'. Give count="),
        ({"count": "tokens", "tokenizer": 5}, "`tokenizer` must be a path, but is <class 'int'>."),
        ({"count": "tokens", "tokenizer": "no.json"}, "`tokenizer` must be a file that exists, but is 'no.json'."),
        ({"count": "tokens", "tokenizer": "bad.json"}, "`tokenizer` must be a tokenizer.json, but is '/"),
        ({"count": "tokens", "tokenizer": "few.json"}, "`tokenizer` must be a tokenizer that takes these texts, but "),
        ({"column": "empty", "count": "words"}, "`empty` must be at least 1, but is 0 at line 2 of a.jsonl"),
        ({"column": "null", "count": "words"}, "`null` must be a text, as at the first sequence, but is None at line"),
    ],
)
def test_texts_and_options_that_do_not_fit_are_refused(tmp_path, monkeypatch, options, told):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "a.jsonl", text=["a", "b"], empty=["a", ""], null=["a", None])
    (tmp_path / "bad.json").write_text("{}")
    save_tokenizer(tmp_path / "few.json", ["known"])  # it has no token for unknown words
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=f"^{re.escape(told)}"):
        read_lengths("a.jsonl", **{"column": "text", **options})


# Turns of a chat, sentences, points.

CHAT = [
    [{"role": "user", "content": "how are you"}, {"role": "assistant", "content": "well"}],
    [{"role": "user", "content": "so it begins"}, {"role": "assistant", "content": "a b c d"}],
    [{"role": "user", "content": "one more"}],
]
CHAT_WORDS = [4, 7, 2]
SHAREGPT = [[{"from": turn["role"], "value": turn["content"]} for turn in turns] for turns in CHAT]
TURNS = [[turn["content"] for turn in turns] for turns in CHAT]
FIELDS = [{"from": ["human", "gpt"], "value": ["hi", "well"]}, {"from": ["human"], "value": ["ok"]}]
PARTS = [[{"role": "user", "content": [{"type": "text", "text": "how are you"}]}]]
NO_TEXT = [[{"role": "assistant", "content": None}]]

COUNTED = [
    (CHAT, "x", "words", CHAT_WORDS),
    (CHAT, "x.*.content", "words", CHAT_WORDS),
    (SHAREGPT, "x", "words", CHAT_WORDS),
    (SHAREGPT, "x.*.value,id", "words", [[words, 7] for words in CHAT_WORDS]),
    (FIELDS, "x.value", "words", [2, 1]),
    (TURNS, "x", "words", CHAT_WORDS),
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
    (TURNS, "x", None, [NUMBERS, COUNT_TEXTS]),
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
        assert read_lengths(write(cells), column=column, count=count).tolist() == lengths, (cells, column)


def test_lists_whose_count_is_a_guess_are_refused_with_a_remedy(write):
    for cells, column, count, parts in REFUSED:
        with pytest.raises(ValueError, match=r"^`") as refused:
            read_lengths(write(cells), column=column, count=count)
        for part in parts:
            assert part.replace("{}", column) in str(refused.value), (cells, column)


@pytest.mark.parametrize("cell", [[1, [2]], [1, {"content": "b"}], [1, "a"]])
def test_mixed_lists_are_refused(tmp_path, cell):
    path = write_table(tmp_path / "a.jsonl", x=[[1], cell])
    with pytest.raises(ValueError, match=rf"^`x` must be a list of numbers, .* at line 2 of {re.escape(str(path))}"):
        read_lengths(path, column="x")
