"""Reading InkML: the traces of a file and the text that was written.

References:
    W3C Recommendation "Ink Markup Language (InkML)", 20 September 2011: traces (3.2), trace formats (3.1),
    annotations (3.5).
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np

from lengthwise._checks import sentence
from lengthwise.recipes.handwriting.ink_files import read_ink
from lengthwise.recipes.handwriting.pen import FARTHEST, Sample, Stroke, within_reach

TRUTH = ("truth", "transcription", "label", "groundtruth")


def read_inkml(
    folder: str | Path, *, count: int | None = None, strict: bool = False
) -> tuple[list[Sample], list[str], list[str]]:
    """Reads the InkML files of a folder and those below it, sorted by path.

    Args:
        folder: Holds files that end in .inkml, each of one sample.
        count, strict: As `ink_files.read_ink` takes them, which says what is returned and raised.
    """
    files = sorted(Path(folder).rglob("*.inkml"))
    return read_ink(files, lambda path: [parse_inkml(path)], source=folder, kind=".inkml", count=count, strict=strict)


def parse_inkml(path: str | Path) -> tuple[list[Stroke], str]:
    """Reads the traces, each float64 [K, 2], and the truth of one file.

    The truth is the nearest to the top of the annotations of type truth, transcription, label or groundtruth, or else
    the text of an annotationXML of such a type. Points hold the channels X and Y of the traceFormat, or else their
    first two numbers. Traces of type penUp, of a pen that hovers, are left out.

    Raises:
        ValueError: Where the file is not there or not XML, has no trace or no truth, or a trace has no points or one
            that is not of plain numbers; the sentence names the file.
    """
    root = _root(path)
    columns = _columns(root)
    traces = [trace for trace in root.iter() if _is_ink(trace)]
    if not traces:
        raise _bad(path, "ink with at least one trace", "empty")
    text = _truth(root)
    if not text:
        raise _bad(path, "annotated with its truth", "without")
    return [_points(trace.text or "", columns, path) for trace in traces], text


def _root(path: str | Path) -> ElementTree.Element:
    try:
        return ElementTree.parse(path).getroot()
    except OSError as error:  # a folder, or a link to nowhere
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


def _truth(root: ElementTree.Element) -> str:
    level = [root]
    while level:  # breadth first: the line's own truth stands above those of its words
        for tag in ("annotation", "annotationXML"):
            for element in level:
                if _tag(element) == tag and element.get("type", "").lower() in TRUTH:
                    text = " ".join("".join(element.itertext()).split())
                    if text:
                        return text
        level = [child for element in level for child in element]
    return ""


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rsplit("}", 1)[-1] if isinstance(element.tag, str) else ""


def _bad(path: str | Path, rule: str, value: str) -> ValueError:
    return ValueError(sentence("data", rule, value, "Mend the file or leave it out.", at=str(path)))
