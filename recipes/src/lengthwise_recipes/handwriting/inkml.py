"""Reading InkML: the traces of a file and the text that was written.

What is labelled is read, the outermost first: the file as a whole, or else each traceGroup or traceView with a truth of
its own, a line or a word of it. So a label never names more ink than it was given to. The shapes that data sets have:

    <annotation type="truth">to be</annotation>                    CROHME; also transcription, label, groundTruth
    <annotationXML type="Ground truth"><type>Word</type><label>to</label></annotationXML>          ImadocSen-OnDB
    <annotationXML><Tg_Truth>to be</Tg_Truth></annotationXML>      VNOnDB

By hand, since we know of no package that reads the labels of all these shapes; the standard library reads the XML.

References:
    W3C Recommendation "Ink Markup Language (InkML)", 20 September 2011: traces (3.2), trace formats (3.1),
    annotations (3.5), traceViews (3.2.3). Deviation: traceViews of a part of a trace are refused.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from lengthwise.checks import sentence
from lengthwise_recipes.handwriting.ink_files import Segments, read_ink
from lengthwise_recipes.handwriting.pen import FARTHEST, Sample, Stroke, within_reach

TRUTH = ("truth", "groundtruth", "tgtruth", "transcription", "transcript", "label")
XML_ID = "{http://www.w3.org/XML/1998/namespace}id"


def read_inkml(
    folder: str | Path, *, count: int | None = None, strict: bool = False
) -> tuple[list[Sample], list[str], list[str]]:
    """Reads the InkML files of a folder and those below it, sorted by path.

    Args:
        folder: Holds files that end in .inkml.
        count, strict: As `ink_files.read_ink` takes them, which says what is returned and raised.
    """
    files = sorted(Path(folder).rglob("*.inkml"))
    return read_ink(files, parse_inkml, source=folder, kind=".inkml", count=count, strict=strict)


def parse_inkml(path: str | Path) -> Segments:
    """Reads the traces, each float64 [K, 2], and the truth of all that is labelled in a file.

    The truth is an annotation of a type in `TRUTH`, in whatever letters ("Ground truth" is one), or else an
    annotationXML of such a type or of none: what it says below such a name, or, where it has the type, its whole text.
    Points hold the channels X and Y of the traceFormat, or else their first two numbers. Traces of type penUp, of a pen
    that hovers, are left out.

    Raises:
        ValueError: Where the file is not there or not XML, has no trace or no truth, or a trace has no points or one
            that is not of plain numbers; the sentence names the file.
    """
    root = _root(path)
    columns = _columns(root)
    ids = {element.get(XML_ID) or element.get("id", ""): element for element in root.iter()}
    if not _traces(root, ids, path):
        raise _bad(path, "ink with at least one trace", "empty")
    labelled = list(_find_labels(root, ids, path)) or list(_label_from_afar(root, ids, path))
    if not labelled:
        raise _bad(path, "annotated with its truth", "without")
    return [([_points(trace.text or "", columns, path) for trace in traces], text) for traces, text in labelled]


def _root(path: str | Path) -> ElementTree.Element:
    if Path(path).exists() and not Path(path).is_file():  # a pipe would keep its reader waiting
        raise _bad(path, "an XML file", "a folder" if Path(path).is_dir() else "no plain file")
    try:
        return ElementTree.parse(path).getroot()
    except OSError as error:  # a link to nowhere
        raise _bad(path, "an XML file", error.strerror or str(error)) from error
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # the latter two where an encoding is not known
        raise _bad(path, "an XML file", str(error)) from error


def _is_ink(element: ElementTree.Element) -> bool:
    drawn = _tag(element) == "trace" and element.get("type", "penDown").lower() != "penup"
    return drawn and bool((element.text or "").strip())


def _points(text: str, columns: tuple[int, int], path: str | Path) -> Stroke:
    rows = [point.split() for point in text.split(",") if point.strip()]
    if not rows:
        raise _bad(path, "of traces 'x y, x y, ...', each with a point", text.strip()[:40])
    try:
        points = np.array([[float(row[column]) for column in columns] for row in rows])
    except (ValueError, IndexError) as error:
        raise _bad(path, "of traces 'x y, x y, ...' in plain numbers", text.strip()[:40]) from error
    if not within_reach(points).all():
        raise _bad(path, f"of finite points below {FARTHEST:g} in size", text.strip()[:40])
    return points


def _columns(root: ElementTree.Element) -> tuple[int, int]:
    """Where X and Y stand in a point: (0, 1) but where a traceFormat says otherwise."""
    for element in root.iter():
        if _tag(element) == "traceFormat":
            names = [channel.get("name", "").upper() for channel in element if _tag(channel) == "channel"]
            if "X" in names and "Y" in names:
                return names.index("X"), names.index("Y")
    return 0, 1


def _find_labels(
    element: ElementTree.Element, ids: Mapping[str, ElementTree.Element], path: str | Path
) -> Iterator[tuple[list[ElementTree.Element], str]]:
    """The traces and the truth of an element that has both, or else of those in it."""
    waiting = [element]  # no recursion: elements may be nested deeper than Python calls may
    while waiting:
        each = waiting.pop()
        text = _truth(each)
        traces = _traces(each, ids, path) if text else []
        if traces:
            yield traces, text
        else:
            waiting += reversed(each)


def _label_from_afar(
    root: ElementTree.Element, ids: Mapping[str, ElementTree.Element], path: str | Path
) -> Iterator[tuple[list[ElementTree.Element], str]]:
    """All traces, where the file has one truth that stands beside them, as in its head."""
    texts = [text for element in root.iter() if (text := _truth(element))]
    if len(texts) == 1:
        yield _traces(root, ids, path), texts[0]


def _traces(
    element: ElementTree.Element, ids: Mapping[str, ElementTree.Element], path: str | Path
) -> list[ElementTree.Element]:
    """The traces in an element and those that the traceViews in it refer to, each once."""
    found: dict[int, ElementTree.Element] = {}
    waiting, seen = [element], set()
    while waiting:
        for each in waiting.pop(0).iter():
            if _is_ink(each):
                found.setdefault(id(each), each)
            if _tag(each) == "traceView" and (name := each.get("traceDataRef", "").lstrip("#")) and name not in seen:
                seen.add(name)
                if name not in ids or each.get("from") or each.get("to"):
                    raise _bad(path, "of traceViews of whole traces that are there", name)
                waiting.append(ids[name])
    return list(found.values())


def _truth(element: ElementTree.Element) -> str:
    """What the annotations right below an element say was written; "" where they say nothing."""
    texts = [_text(child) for child in element if _tag(child) == "annotation" and _is_truth(child.get("type", ""))]
    texts += [_xml_truth(child) for child in element if _tag(child) == "annotationXML"]
    return next(filter(None, texts), "")


def _xml_truth(annotation: ElementTree.Element) -> str:
    kind = annotation.get("type")
    if kind is not None and not _is_truth(kind):
        return ""
    named = [_text(below) for below in annotation.iter() if _is_truth(_tag(below))]
    return next(filter(None, named), "" if kind is None else _text(annotation))


def _is_truth(name: str) -> bool:
    """Whether a name is one of `TRUTH`, but for capitals and what stands between letters.

    >>> _is_truth("Ground truth"), _is_truth("normalizedLabel")
    (True, False)
    """
    return re.sub(r"[^a-z]", "", name.lower()) in TRUTH


def _text(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rsplit("}", 1)[-1] if isinstance(element.tag, str) else ""


def _bad(path: str | Path, rule: str, value: str) -> ValueError:
    return ValueError(sentence("data", rule, value, "Mend the file or leave it out.", at=str(path)))
