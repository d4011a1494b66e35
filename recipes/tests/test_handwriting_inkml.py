"""Where data sets keep what was written in InkML, and whose ink it is."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("HersheyFonts")

from lengthwise_recipes.handwriting.inkml import parse_inkml

A, B, C = (f"<trace xml:id='{name}' id='{name}'>{x} 0, {x} 1</trace>" for x, name in enumerate("abc"))
WORD = "<annotationXML type='Ground truth'><type>Word</type><label>{}</label></annotationXML>"
NAMESPACES = [" xmlns='http://www.w3.org/2003/InkML'", ""]


def read(tmp_path, body, namespace=""):
    """Which traces, told by their x, and what text each sample has."""
    path = tmp_path / "page.inkml"
    path.write_text(f"<ink{namespace}>{body}</ink>")
    return [([int(stroke[0, 0]) for stroke in strokes], text) for strokes, text in parse_inkml(path)]


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize("kind", ["truth", "Transcription", "groundTruth", "Ground truth", "GROUND_TRUTH", "label"])
@pytest.mark.parametrize(
    "shape",
    [
        "<annotation type='{}'> to\n be </annotation>",
        "<annotationXML type='{}'>to be</annotationXML>",
        "<annotationXML type='{}'><line>to <b>be</b></line></annotationXML>",
        "<annotationXML type='{}'><type>Sentence</type><label>to be</label></annotationXML>",
        "<annotationXML type='{}'><line><type>Line</type><text><Label>to be</Label></text></line></annotationXML>",
    ],
)
def test_the_truth_is_read_however_it_is_written(tmp_path, shape, kind, namespace):
    expected = [([0, 1], "to be")]
    note = shape.format(kind)
    other = "<annotation type='writer'>me</annotation><annotationXML type='Input zone'><page>1</page></annotationXML>"
    assert read(tmp_path, other + note + A + B, namespace) == expected
    assert read(tmp_path, f"{other}<traceGroup>{other}{note}{A}{B}</traceGroup>", namespace) == expected
    assert read(tmp_path, f"<head>{other}{note}</head>{A}{B}", namespace) == expected


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_sentence_is_read_before_the_words_in_it(tmp_path, namespace):
    words = "".join(f"<traceGroup>{WORD.format(text)}{ink}</traceGroup>" for text, ink in (("to", A), ("be", B + C)))
    sentence = WORD.replace("Word", "Sentence").format("to be")
    assert read(tmp_path, f"<traceGroup>{sentence}{words}</traceGroup>", namespace) == [([0, 1, 2], "to be")]
    # Without it each word has its own ink: the first word is not what all traces say.
    assert read(tmp_path, f"<traceGroup>{words}</traceGroup>", namespace) == [([0], "to"), ([1, 2], "be")]


def test_an_annotation_without_a_type_says_what_was_written_by_the_name_below_it(tmp_path):
    line = "<traceGroup><annotationXML><Tg_Truth>{}</Tg_Truth><n>1</n></annotationXML>{}</traceGroup>"
    assert read(tmp_path, line.format("mot", A) + line.format("hai", B)) == [([0], "mot"), ([1], "hai")]
    with pytest.raises(ValueError, match="annotated with its truth"):
        read(tmp_path, f"<annotationXML><n>1</n></annotationXML>{A}")
    with pytest.raises(ValueError, match="annotated with its truth"):
        read(tmp_path, f"<annotationXML type='device'><label>T3010</label></annotationXML>{A}")


def test_views_have_the_ink_that_they_refer_to(tmp_path):
    view = "<traceView><annotation type='transcription'>{}</annotation>{}</traceView>"
    to, be = (f"<traceView traceDataRef='{ref}'/>" for ref in ("#a", "#group"))
    ink = f"{A}<traceGroup xml:id='group'>{B}{C}</traceGroup>"
    assert read(tmp_path, ink + view.format("to", to) + view.format("be", be)) == [([0], "to"), ([1, 2], "be")]
    # CROHME: the views of symbols show traces of the file once more.
    symbols = f"<traceGroup>{view.format('x', be)}{view.format('y', to)}</traceGroup>"
    assert read(tmp_path, f"<annotation type='truth'>$xy$</annotation>{ink}{symbols}") == [([0, 1, 2], "$xy$")]


@pytest.mark.parametrize("view", ["traceDataRef='#gone'", "traceDataRef='#a' from='1' to='2'"])
def test_views_of_other_than_whole_traces_are_refused(tmp_path, view):
    with pytest.raises(ValueError, match="of traceViews of whole traces of the file, but is "):
        read(tmp_path, f"{A}<traceView><annotation type='truth'>x</annotation><traceView {view}/></traceView>")


def test_views_in_a_circle_end(tmp_path):
    views = "<traceView id='v' traceDataRef='#w'/><traceView id='w' traceDataRef='#v'/>"
    assert read(tmp_path, f"<annotation type='truth'>x</annotation>{A}{views}") == [([0], "x")]


def test_truths_that_stand_apart_from_the_ink_are_refused_where_there_are_several(tmp_path):
    notes = "<head><annotation type='truth'>to</annotation></head><head><annotation type='truth'>be</annotation></head>"
    with pytest.raises(ValueError, match="annotated with its truth"):
        read(tmp_path, notes + A)


def test_groups_may_be_nested_deeper_than_calls(tmp_path):
    note = "<annotation type='truth'>be</annotation>"
    assert read(tmp_path, "<traceGroup>" * 3_000 + note + A + "</traceGroup>" * 3_000 + B) == [([0], "be")]
