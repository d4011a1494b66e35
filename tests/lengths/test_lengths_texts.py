"""Columns of texts: counted as asked, and refused with what to type."""

import json
import re

import pytest

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'lengthwise[io]'")
import pyarrow.parquet as parquet  # noqa: E402

from lengthwise.lengths import read_lengths  # noqa: E402

TEXTS = ["so it begins", "größer", "a  b\tc\nd"]
CHARACTERS, WORDS = [12, 6, 8], [3, 1, 4]


def jsonl(path):
    path.write_text("".join(json.dumps({"text": text, "n": 5}) + "\n" for text in TEXTS), encoding="utf-8")


def csv(path):
    path.write_text("text,n\n" + "".join(f'"{text}",5\n' for text in TEXTS), encoding="utf-8", newline="")


def table(path):
    parquet.write_table(pa.table({"text": TEXTS, "n": [5] * 3}), path)


def arrow(path):
    rows = pa.table({"text": pa.array(TEXTS).dictionary_encode(), "n": [5] * 3})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)


WRITERS = {"a.jsonl": jsonl, "a.csv": csv, "a.parquet": table, "a.arrow": arrow}


@pytest.fixture(params=WRITERS)
def source(request, tmp_path):
    WRITERS[request.param](tmp_path / request.param)
    return tmp_path / request.param


def test_characters_and_words(source):
    assert read_lengths(source, column="text", count="characters").tolist() == CHARACTERS
    assert read_lengths(source, column="text", count="words").tolist() == WORDS


def test_beside_texts_numbers_stay_numbers(source):
    assert read_lengths(source, column="n,text", count="words").tolist() == [[5, 3], [5, 1], [5, 4]]


def test_texts_without_a_count_are_told_what_to_type(source):
    told = re.escape('give `count` as "characters", "words" or "tokens" (on the command line: --count words)')
    with pytest.raises(
        ValueError, match=rf"^`text` must be a number, but is 'so it begins' at .*; if these are texts, {told}\.$"
    ):
        read_lengths(source, column="text")


def test_a_count_of_numbers_is_refused(source):
    if source.suffix == ".csv":  # where all cells are texts
        assert read_lengths(source, column="n", count="characters").tolist() == [1, 1, 1]
        return
    message = "`count` must be given for texts only, but is 'words'. Leave it out, or name a column of texts."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read_lengths(source, column="n", count="words")


@pytest.fixture
def tokenizer(tmp_path):
    """Words split at white space, one special token before them; padding and truncation are on in the file."""
    tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers: pip install tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "[CLS]": 1, "so": 2}, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.post_processor = tokenizers.processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    made.enable_padding()
    made.enable_truncation(3)
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def test_tokens(source, tokenizer):
    assert read_lengths(source, column="text", count="tokens", tokenizer=tokenizer).tolist() == [4, 2, 5]


def test_an_empty_text_has_no_length(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": ""}\n')
    with pytest.raises(ValueError, match=r"^`text` must be at least 1, but is 0 at line 2 of "):
        read_lengths(tmp_path / "a.jsonl", column="text", count="words")
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": null}\n')
    with pytest.raises(
        ValueError, match=r"^`text` must be a text, as at the first sequence, but is None at line 2 of "
    ):
        read_lengths(tmp_path / "a.jsonl", column="text", count="words")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"count": "letters"}, "`count` must be one of characters, words, tokens, but is 'letters'."),
        (
            {"count": "tokens"},
            "`tokenizer` must be given, because tokens are counted, but is None. Give the path",
        ),
        (
            {"tokenizer": "t.json"},
            "`tokenizer` must be left out unless tokens are counted, but is 't.json'. Give count=",
        ),
        ({"count": "tokens", "tokenizer": 5}, "`tokenizer` must be a path, but is <class 'int'>."),
        ({"count": "tokens", "tokenizer": "no.json"}, "`tokenizer` must be a file that is there, but is 'no.json'."),
    ],
)
def test_options_that_do_not_fit(tmp_path, monkeypatch, options, told):
    monkeypatch.chdir(tmp_path)
    jsonl(tmp_path / "a.jsonl")
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=f"^{re.escape(told)}"):
        read_lengths("a.jsonl", column="text", **options)


def test_what_is_no_tokenizer_is_named(tmp_path):
    pytest.importorskip("tokenizers", reason="needs tokenizers: pip install tokenizers")
    (tmp_path / "t.json").write_text("{}")
    jsonl(tmp_path / "a.jsonl")
    with pytest.raises(ValueError, match=r"^`tokenizer` must be a tokenizer\.json, but is .*Save it by"):
        read_lengths(tmp_path / "a.jsonl", column="text", count="tokens", tokenizer=tmp_path / "t.json")


@pytest.mark.parametrize(
    ("name", "text", "options", "lengths"),
    [
        ("a.json", '{"utt1": 312, "utt2": 87}', {}, [312, 87]),
        ("a.json", '{\n "utt2": 87,\n "utt1": 312\n}\n', {}, [87, 312]),
        ("a.json", '{"utt1": 3.0, "utt2": 1.5}', {"frame_shift": 0.5}, [6, 3]),
        ("a.json", '{"duration": 1.5, "n": 3}', {"frame_shift": 0.5}, [3]),  # one record of a known manifest
        ("a.json", '{"utt1": 312, "utt2": 87}', {"column": "utt2"}, [87]),
        ("a.csv", "id;frames\na;3\nb;1\n", {"column": "frames"}, [3, 1]),
        ("a.csv", "id\tframes\na\t3\nb\t1\n", {"column": "frames"}, [3, 1]),
    ],
)
def test_lengths_by_name_and_other_separators(tmp_path, name, text, options, lengths):
    (tmp_path / name).write_text(text)
    assert read_lengths(tmp_path / name, **options).tolist() == lengths


def test_a_tokenizer_that_was_written_anew_is_read_anew(tmp_path):
    tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers")
    texts, path = tmp_path / "a.csv", tmp_path / "tokenizer.json"
    texts.write_text("t\nso it\n")
    found = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0, "[CLS]": 1}, "?"))
    found.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    found.save(str(path))
    assert read_lengths(texts, count="tokens", tokenizer=path).tolist() == [2]
    found.post_processor = tokenizers.processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    found.save(str(path))
    assert read_lengths(texts, count="tokens", tokenizer=path).tolist() == [3]


def test_a_tokenizer_that_fails_at_a_text_is_named(tmp_path):
    tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers")
    texts, path = tmp_path / "a.csv", tmp_path / "tokenizer.json"
    texts.write_text("t\nunknown\n")
    # It has neither this word nor a token for unknown ones.
    tokenizers.Tokenizer(tokenizers.models.WordLevel({"known": 0}, "?")).save(str(path))
    with pytest.raises(ValueError, match=r"^`tokenizer` must be one that takes these texts, but is .*Give the one of"):
        read_lengths(texts, count="tokens", tokenizer=path)
