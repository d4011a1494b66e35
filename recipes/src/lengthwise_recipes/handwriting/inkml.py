"""Reads InkML: the traces of a file and their labels.

The outermost label is read: that of the file, or else that of each traceGroup or traceView (a line or a word). So every
label has exactly its own ink. Labels have these shapes in data sets:

    <annotation type="truth">to be</annotation>                    CROHME; also transcription, label, groundTruth
    <annotationXML type="Ground truth"><type>Word</type><label>to</label></annotationXML>          ImadocSen-OnDB
    <annotationXML><Tg_Truth>to be</Tg_Truth></annotationXML>      VNOnDB

By hand, since we know no package that reads all these shapes; the standard library reads the XML.

References:
    W3C Recommendation "Ink Markup Language (InkML)", 20 September 2011: traces (3.2), trace formats (3.1),
    annotations (3.5), traceViews (3.2.3). Deviation: traceViews of a part of a trace raise an error.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from pathlib import Path

from lengthwise_recipes.handwriting.ink_files import Segments, bad_file, read_ink, read_points
from lengthwise_recipes.handwriting.pen import Sample, Stroke

TRUTH = ("truth", "groundtruth", "tgtruth", "transcription", "transcript", "label")
XML_ID = "{http://www.w3.org/XML/1998/namespace}id"


def read_inkml(
    folder: str | Path, *, count: int | None = None, seed: int = 0, strict: bool = False
) -> tuple[list[Sample], list[str], list[str]]:
    """Reads the InkML files in and below a folder, sorted by path; see `ink_files.read_ink` for results and errors.

    Args:
        folder: Has files that end in .inkml.
        count, seed, strict: See `ink_files.read_ink`.
    """
    files = sorted(Path(folder).rglob("*.inkml"))
    return read_ink(files, parse_inkml, source=folder, kind=".inkml", count=count, seed=seed, strict=strict)


def parse_inkml(path: str | Path) -> Segments:
    """Reads the labelled traces of a file, each float64 [K, 2], with their truths.

    The truth is the first of:
    - An annotation with a type in `TRUTH`. Capitals and spaces do not count, as in "Ground truth".
    - The text of an element named in `TRUTH`, in an annotationXML with such a type or without a type.
    - The whole text of an annotationXML with such a type.

    Points are the channels X and Y of the traceFormat, or else the first two numbers. Traces of type penUp, from a
    hovering pen, are left out.

    Raises:
        ValueError: The file is missing or not XML, has no trace or no truth, or a trace has no points or points that
            are not numbers.
    """
    root = _root(path)
    columns = _columns(root)
    ids = {element.get(XML_ID) or element.get("id", ""): element for element in root.iter()}
    if not _traces(root, ids, path):
        raise bad_file(path, "ink with at least one trace", "empty")
    labelled = list(_find_labels(root, ids, path)) or list(_label_from_afar(root, ids, path))
    if not labelled:
        raise bad_file(path, "annotated with its truth", "without annotation")
    return [([_points(trace.text or "", columns, path) for trace in traces], text) for traces, text in labelled]


def _root(path: str | Path) -> ElementTree.Element:
    if Path(path).exists() and not Path(path).is_file():  # a pipe would keep its reader waiting
        raise bad_file(path, "an XML file", "a folder" if Path(path).is_dir() else "no plain file")
    try:
        return ElementTree.parse(path).getroot()
    except OSError as error:  # a link to nowhere
        raise bad_file(path, "an XML file", error.strerror or str(error)) from error
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # the latter two for an unknown encoding
        raise bad_file(path, "an XML file", str(error)) from error


def _is_ink(element: ElementTree.Element) -> bool:
    pen_down = _tag(element) == "trace" and element.get("type", "penDown").lower() != "penup"
    return pen_down and bool((element.text or "").strip())


def _points(text: str, columns: tuple[int, int], path: str | Path) -> Stroke:
    rows, shown = [point.split() for point in text.split(",") if point.strip()], text.strip()[:40]
    if not rows:
        raise bad_file(path, "of traces 'x y, x y, ...', each with a point", shown)
    return read_points(rows, columns, rule="of traces 'x y, x y, ...' in plain numbers", shown=shown, place=path)


def _columns(root: ElementTree.Element) -> tuple[int, int]:
    """Returns the places of X and Y in a point, by the traceFormat, or (0, 1) without one."""
    for element in root.iter():
        if _tag(element) == "traceFormat":
            names = [channel.get("name", "").upper() for channel in element if _tag(channel) == "channel"]
            if "X" in names and "Y" in names:
                return names.index("X"), names.index("Y")
    return 0, 1


def _find_labels(
    element: ElementTree.Element, ids: Mapping[str, ElementTree.Element], path: str | Path
) -> Iterator[tuple[list[ElementTree.Element], str]]:
    """Yields traces and truth of an element that has both, or else of the elements in it."""
    stack = [element]  # no recursion: elements may be nested deeper than Python calls
    while stack:
        child = stack.pop()
        text = _truth(child)
        traces = _traces(child, ids, path) if text else []
        if traces:
            yield traces, text
        else:
            stack += reversed(child)


def _label_from_afar(
    root: ElementTree.Element, ids: Mapping[str, ElementTree.Element], path: str | Path
) -> Iterator[tuple[list[ElementTree.Element], str]]:
    """Yields all traces and the truth if the file has only one truth, for example in its head."""
    texts = [text for element in root.iter() if (text := _truth(element))]
    if len(texts) == 1:
        yield _traces(root, ids, path), texts[0]


def _traces(
    element: ElementTree.Element, ids: Mapping[str, ElementTree.Element], path: str | Path
) -> list[ElementTree.Element]:
    """Returns the traces in an element and those that its traceViews refer to, each once."""
    traces: dict[int, ElementTree.Element] = {}
    queue, seen = [element], set()
    while queue:
        for child in queue.pop(0).iter():
            if _is_ink(child):
                traces.setdefault(id(child), child)
            if _tag(child) == "traceView" and (name := child.get("traceDataRef", "").lstrip("#")) and name not in seen:
                seen.add(name)
                if name not in ids or child.get("from") or child.get("to"):
                    raise bad_file(path, "of traceViews of whole traces of the file", name)
                queue.append(ids[name])
    return list(traces.values())


def _truth(element: ElementTree.Element) -> str:
    """Returns the text in the annotations directly below an element, or ""."""
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
    """Returns True if the letters of a name, in lower case, are in `TRUTH`.

    >>> _is_truth("Ground truth"), _is_truth("normalizedLabel")
    (True, False)
    """
    return re.sub(r"[^a-z]", "", name.lower()) in TRUTH


def _text(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rsplit("}", 1)[-1] if isinstance(element.tag, str) else ""
