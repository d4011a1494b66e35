"""Lists whose count is a guess: turns of a chat, sentences, points. Their texts are counted, or they are refused."""

import json
import re

import pytest

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'lengthwise[io]'")
import pyarrow.parquet as parquet  # noqa: E402

import lengthwise as lw  # noqa: E402
from lengthwise.cli import main  # noqa: E402

CHAT = [
    [{"role": "user", "content": "how are you"}, {"role": "assistant", "content": "well"}],
    [{"role": "user", "content": "so it begins"}, {"role": "assistant", "content": "a b c d"}],
    [{"role": "user", "content": "one more"}],
]
WORDS = [4, 7, 2]
SHARE = [[{"from": turn["role"], "value": turn["content"]} for turn in turns] for turns in CHAT]
CONTENTS = [[turn["content"] for turn in turns] for turns in CHAT]


def jsonl(path, cells):
    path.write_text("".join(json.dumps({"id": 7, "x": cell}) + "\n" for cell in cells))


def array(path, cells):
    path.write_text(json.dumps([{"id": 7, "x": cell} for cell in cells]))


def table(path, cells):
    parquet.write_table(pa.table({"id": [7] * len(cells), "x": cells}), path, row_group_size=2)


def arrow(path, cells):
    rows = pa.table({"id": [7] * len(cells), "x": cells})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=2)


def saved(path, cells):
    path.mkdir()
    arrow(path / "data.arrow", cells)
    (path / "dataset_info.json").write_text("{}")
    (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))


WRITERS = {"a.jsonl": jsonl, "a.json": array, "a.parquet": table, "a.arrow": arrow, "saved": saved}


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    def write(cells):
        WRITERS[request.param](tmp_path / request.param, cells)
        return tmp_path / request.param

    return write


@pytest.mark.parametrize("column", ["x", "x.*.content"])
def test_all_turns_are_counted(write, column):
    assert lw.read_lengths(write(CHAT), column=column, count="words").tolist() == WORDS


def test_chats_as_sharegpt_writes_them(write):
    path = write(SHARE)
    assert lw.read_lengths(path, column="x", count="words").tolist() == WORDS
    assert lw.read_lengths(path, column="x.*.value,id", count="words").tolist() == [[words, 7] for words in WORDS]


def test_without_a_count_the_remedy_is_the_column_and_the_count(write):
    remedy = 'Count the texts in it: column="x.*.content", count="words" (on the command line: "FILE:x.*.content" --cou'
    with pytest.raises(ValueError, match=rf"^`x` must be a list of numbers.* at .*{re.escape(remedy)}nt words\)"):
        lw.read_lengths(write(CHAT), column="x")


@pytest.mark.parametrize("texts", [["hi", "well"], ["你好吗朋友", "很好"], ["", ""]])
def test_turns_are_not_counted_whatever_their_texts_look_like(write, texts):
    path = write([[{"role": "user", "content": text} for text in texts], [{"role": "user", "content": texts[0]}]])
    for column in ("x", "x.*.content"):
        with pytest.raises(
            ValueError, match=rf"^`{re.escape(column)}` must be a list of numbers.*give|count=\"words\""
        ):
            lw.read_lengths(path, column=column)


def test_fields_of_turns_are_no_tokens(write):
    path = write([{"from": ["human", "gpt"], "value": ["hi", "well"]}, {"from": ["human"], "value": ["ok"]}])
    assert lw.read_lengths(path, column="x.value", count="words").tolist() == [2, 1]
    with pytest.raises(ValueError, match=r"^`x\.value` must be a list of numbers.* These are texts: give `count`"):
        lw.read_lengths(path, column="x.value")


def test_numbers_in_items_are_counted_whatever_their_field_is_called(write):
    path = write([[{"t": 0, "value": 1.5}, {"t": 1, "value": 2.5}], [{"t": 0, "value": None}, {"t": 1, "value": 1.0}]])
    assert lw.read_lengths(path, column="x.*.value").tolist() == [2, 2]


@pytest.mark.parametrize(
    ("turn", "remedy"),
    [
        ({"role": "assistant", "content": None}, 'Count the texts in it: column="x.*.content", count='),
        ({"role": "user", "content": [{"type": "text", "text": "a"}]}, 'Count the texts in it: column="x.*.content", '),
        ({"role": "user", "text": "how are you"}, 'Count the texts in it: column="x.*.text", count='),
        ({"role": "user", "says": "how are you"}, "Write a column with the length that you mean"),
    ],
)
def test_the_remedy_never_counts_roles(write, turn, remedy):
    with pytest.raises(ValueError, match=rf"^`x` must be a list of numbers, .*{re.escape(remedy)}"):
        lw.read_lengths(write([[turn]]), column="x")


def test_turns_of_parts_are_refused(write):
    path = write([[{"role": "user", "content": [{"type": "text", "text": "how are you"}]}]])
    with pytest.raises(ValueError, match=r"^`x\.\*\.content` must be a text in every item, but is \[{'"):
        lw.read_lengths(path, column="x", count="words")


def test_texts_in_lists_are_counted_or_refused(write):
    path = write(CONTENTS)
    assert lw.read_lengths(path, column="x", count="words").tolist() == WORDS
    with pytest.raises(ValueError, match=r"^`x` must be a list of numbers.* These are texts: give `count` as "):
        lw.read_lengths(path, column="x")


@pytest.mark.parametrize(
    "cells",
    [
        [[[1, 2], [3, 4]], [[5, 6]]],  # points, or sentences of tokens
        [[{"x": 1, "y": 2}], [{"x": 3, "y": 4}]],  # points
        [[[[1]]], [[[2]]]],
    ],
)
def test_lists_whose_count_is_a_guess_are_refused(write, cells):
    with pytest.raises(ValueError, match=r"^`x` must be a list of numbers, .* Write a column with the length"):
        lw.read_lengths(write(cells), column="x")


@pytest.mark.parametrize("cells", [[[5, 6, 7], [1]], [[0.5, None, 1.0], [2.0]]])
def test_lists_of_numbers_are_counted(write, cells):
    assert lw.read_lengths(write(cells), column="x").tolist() == [3, 1]


@pytest.mark.parametrize("cell", [[1, [2]], [1, {"content": "b"}], [1, "a"]])
def test_mixed_lists_are_refused(tmp_path, cell):
    jsonl(tmp_path / "a.jsonl", [[cell[0]], cell])
    with pytest.raises(ValueError, match=r"^`x` must be a list of numbers, .* at line 2 of "):
        lw.read_lengths(tmp_path / "a.jsonl", column="x")


def test_a_turn_without_a_text_is_refused(write):
    path = write([CHAT[0], [{"role": "assistant", "content": None}]])
    with pytest.raises(ValueError, match=r"^`x\.\*\.content` must be a text in every item, but is None at "):
        lw.read_lengths(path, column="x", count="words")


def test_a_misspelt_field_of_turns_is_refused(write):
    with pytest.raises(ValueError, match=r"^`column` must be "):
        lw.read_lengths(write(CHAT), column="x.*.text", count="words")


def test_a_list_that_is_null_is_refused(write):
    with pytest.raises(ValueError, match=r"^`x.*` must be .*, but is None at "):
        lw.read_lengths(write([CHAT[0], None, CHAT[1]]), column="x.*.content", count="words")


def test_the_command_line_counts_turns_by_a_tokenizer(write, tmp_path, capsys):
    tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers: pip install tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    words = [f"{write(CHAT)}:x", "--count", "tokens", "--tokenizer", str(tmp_path / "tokenizer.json"), "--json", "-"]
    assert main(["inspect", *words, "--batch-size", "2"]) == 0
    facts = json.loads(capsys.readouterr().out)["lengths"]
    assert (facts["total"], facts["max"]) == ([sum(WORDS)], [max(WORDS)])
