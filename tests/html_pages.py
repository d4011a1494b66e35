"""A page of HTML as the tests read it: its elements, its tables, and whether every tag is closed."""

from html.parser import HTMLParser

SHAPES = {"line", "rect", "circle", "path"}
VOID = SHAPES | {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Elements as (tag, attributes), text by tag, and tables as rows of cells."""

    def __init__(self, text):
        super().__init__()
        self.text, self.elements, self.words, self.tables = text, [], [], []
        self._open = []
        self.feed(text)
        self.close()
        assert self._open == [], "a tag is not closed"

    @classmethod
    def of_file(cls, path):
        return cls(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID or (tag in SHAPES and not self.get_starttag_text().endswith("/>")):
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open[-1:] == [tag], f"</{tag}> closes nothing"
        self._open.pop()

    def handle_data(self, data):
        # A name within the headline is of the headline.
        self.words.append(("h1" if "h1" in self._open else self._open[-1] if self._open else "", data))
        if self._open and self._open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    def of(self, tag):
        """The attributes of all elements of a tag."""
        return [attributes for name, attributes in self.elements if name == tag]

    def said(self, tag):
        """The text within all elements of a tag, in one string."""
        return "".join(words for name, words in self.words if name == tag)

    def table(self, head):
        """The rows of the table whose heads begin with `head`, as {first cell: {head: cell}}."""
        (found,) = (table for table in self.tables if table[0][0] == head and len(table[0]) > 3)
        return {row[0]: dict(zip(found[0], row, strict=True)) for row in found[1:]}
