"""Columns of texts: counted as asked, and refused with what to type."""

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
    told = 'give `count` as "characters", "words" or "tokens" (on the command line: --count words)'
    rule = rf"^`text` must be a number, but is 'so it begins' at .*; if these are texts, {re.escape(told)}\.$"
    with pytest.raises(ValueError, match=rule):
        read_lengths(source, column="text")


def test_each_line_of_a_text_file_is_a_text(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("so it begins\nand ends\r\n\u2028 #not a comment")
    assert read_lengths(path, count="words").tolist() == [3, 2, 3]
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
