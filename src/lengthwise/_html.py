"""Tables of plain HTML, which notebooks show."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def write_table(
    rows: Iterable[Sequence[str]], *, heads: Sequence[str] = (), numbers: Sequence[int] = (), text: str = ""
) -> str:
    """Returns a table, below a paragraph for each line of a text. All of it is escaped.

    Args:
        rows: The cells of each row.
        heads: The heads of the columns.
        numbers: The columns that hold numbers, from 0; all others hold words.
        text: The text above the table.

    >>> write_table([("a<b",)], text="c")
    '<p>c</p><table><tr><td style="text-align: left">a&lt;b</td></tr></table>'
    """

    def write_row(tag: str, cells: Sequence[str]) -> str:
        texts = []
        for place, cell in enumerate(cells):
            side = "right" if place in numbers else "left"  # a notebook sets cells to the right if nothing is said
            texts.append(f'<{tag} style="text-align: {side}">{html.escape(cell)}</{tag}>')
        return f"<tr>{''.join(texts)}</tr>"

    lines = [f"<p>{html.escape(line)}</p>" for line in text.splitlines() if line]
    table = [write_row("th", heads)] if heads else []
    table += [write_row("td", cells) for cells in rows]
    return f"{''.join(lines)}<table>{''.join(table)}</table>"
