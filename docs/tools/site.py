"""Hook of mkdocs: adds to the site the files outside of docs/ that its pages need, and rewrites their links.

A link of a page is the path from one file of the repository to another. With a slash in front it begins at the top of
the repository. The site has the same files at other addresses:

    docs/guide.md                  guide.md
    recipes/docs/papers/a.md       papers/a.md             as if it lay in docs/
    README.md                      index.md                the front page
    CHANGELOG.md                   changelog.md
    benchmarks/results/a.json      benchmarks/results/a.json    where a page links to it
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

FOLDERS = ("docs", "recipes/docs")  # their contents are at the top of the site
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "recipes/README.md": "recipes.md",
}
LAST = (  # a search shows these pages last
    *("papers/", "reference/", "results", "changelog", "quality", "theory", "length-share", "recipes"),
    *("architecture", "contributing"),
)
THEMES = ((r"\2", "light"), (r"\2-dark", "dark"))  # the name of a picture, for each theme of the page

_CODE = re.compile(r"(^ *(```+|~~~+).*?^ *\2[`~]* *$|(?<!`)(`+)(?!`).*?(?<!`)\3(?!`))", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(#[^)\s]*)?(?=[)\s])")
_WORDS = re.compile(r"\[([^\]]+)\]\(lost:[^)]*\)")
_UNIT = re.compile(r"(?<=\d) (?=[%±]|(?:s|ms|kB|MB|GB|GiB)\b)|(?<=±) (?=\d)")
_RANGE = re.compile(r"\([-+]?\d[\d.,]*(?: %)? to [-+]?\d[\d.,]*(?: %)?\)")
_PICTURE = re.compile(r"^(!\[[^\]]*\])\(([^)\s]+)\.svg\)$", re.MULTILINE)
_BY_THEME = re.compile(r'<picture>.*?<img src="([^"]+)"\s+alt="([^"]+)">.*?</picture>', re.DOTALL)


def on_config(config: Any) -> Any:
    """Names the version in the header of each page, beside the tab of the changelog."""
    config.site_name = f"{config.site_name} {version('lengthwise')}"
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Adds the pages outside of docs/, their pictures, and every file that a page links to."""
    root = Path(config.config_file_path).parent
    for path in (*PAGES, *_below(root, FOLDERS[1:])):
        if (root / path).exists():
            _add(files, root, path, config)
    for page in files.documentation_pages():
        for path in sorted(targets(page.content_string, repository_path(page, root))):
            if (root / path).is_file() and not files.get_file_from_path(site_path(path)):
                _add(files, root, path, config)
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Turns links between files of the repository into links of the site, and pictures into links to themselves."""
    root = Path(config.config_file_path).parent
    if page.file.src_uri.startswith(LAST):
        page.meta["search"] = {"boost": 0.3}
    linked = with_links(
        _BY_THEME.sub(r"![\2](\1)", markdown), page.file.src_uri, repository_path(page.file, root), files
    )
    return "".join(_on_the_page(part) if prose else part for prose, part in _parts(linked))


def with_links(markdown: str, place: str, path: str, files: Files) -> str:
    """Returns the page at `place` of the site and `path` of the repository; a folder's link becomes plain words."""

    def link(match: re.Match[str]) -> str:
        target = site_path(resolve(match[1], path))
        if not files.get_file_from_path(target):
            return match[0] if Path(match[1]).suffix else f"lost:{match[1]}"
        return posixpath.relpath(target, posixpath.dirname(place) or ".") + (match[2] or "")

    return "".join(_WORDS.sub(r"\1", _LINK.sub(link, part)) if prose else part for prose, part in _parts(markdown))


def _on_the_page(prose: str) -> str:
    """Links each picture to itself, for a phone on which it is small; the page shows the light or the dark one.

    >>> _on_the_page("![Two](two.svg)")
    '[![Two](two.svg#only-light)](two.svg#only-light)[![Two](two-dark.svg#only-dark)](two-dark.svg#only-dark)'
    """
    light, dark = (rf"[\1({name}.svg#only-{page})]({name}.svg#only-{page})" for name, page in THEMES)
    return keep_together(_PICTURE.sub(light + dark, prose))


def keep_together(prose: str) -> str:
    """Keeps a number on the line of its unit, and a spread on one line.

    >>> keep_together("5 % in 3.3 s, 1.4 ± 0.1, 1.1 (1.0 to 1.3)").replace("\\xa0", "_")
    '5_% in 3.3_s, 1.4_±_0.1, 1.1 (1.0_to_1.3)'
    """
    return _RANGE.sub(lambda match: match[0].replace(" ", "\xa0"), _UNIT.sub("\xa0", prose))


def targets(markdown: str, path: str) -> set[str]:
    """Returns the targets of the links of the page at `path`, as paths of the repository."""
    return {resolve(match[1], path) for prose, part in _parts(markdown) if prose for match in _LINK.finditer(part)}


def resolve(target: str, path: str) -> str:
    """Returns the target of a link of the page at `path`, as a path of the repository.

    >>> resolve("../results.md", "docs/papers/a.md"), resolve("/LICENSE", "docs/papers/a.md")
    ('docs/results.md', 'LICENSE')
    """
    base = "" if target.startswith("/") else posixpath.dirname(path)
    return posixpath.normpath(posixpath.join(base, target.lstrip("/")))


def site_path(path: str) -> str:
    """Returns the place of a file of the repository on the site.

    >>> site_path("recipes/docs/quality.md"), site_path("README.md"), site_path("a/b.json")
    ('quality.md', 'index.md', 'a/b.json')
    """
    for folder in FOLDERS:
        if path.startswith(f"{folder}/"):
            return path.removeprefix(f"{folder}/")
    return PAGES.get(path, path)


def repository_path(file: File, root: Path) -> str:
    """Returns the path of a file of the site in the repository."""
    return Path(file.abs_src_path or root / "docs" / file.src_uri).relative_to(root).as_posix()


def _below(root: Path, folders: tuple[str, ...]) -> Iterator[str]:
    for folder in folders:
        paths = (path for path in sorted((root / folder).rglob("*")) if path.suffix in (".md", ".svg"))
        yield from (path.relative_to(root).as_posix() for path in paths)


def _add(files: Files, root: Path, path: str, config: Any) -> None:
    place = site_path(path)
    if files.get_file_from_path(place):
        raise ValueError(f"`{path}` must be the only file at {place} of the site, but is not. Rename one of them.")
    files.append(File.generated(config, place, abs_src_path=str(root / path)))


def _parts(markdown: str) -> Iterator[tuple[bool, str]]:
    """Yields the pieces of a page: True for prose or False for code, and the text."""
    end = 0
    for code in _CODE.finditer(markdown):
        yield True, markdown[end : code.start()]
        yield False, code[0]
        end = code.end()
    yield True, markdown[end:]
