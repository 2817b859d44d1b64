"""Build the reference into DIR, and check every link of it and of all pages: `python .ci/build_reference.py DIR`.

The reference is what pdoc makes of the docstrings of all public names. A link that leads nowhere is exit code 1.
"""

from __future__ import annotations

import re
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pdoc

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("cues", "stream", "stream.services", "stream.session", "stream.errors")
SKIPPED = {".venv", ".git", "node_modules", "site-packages"}


class _Page(HTMLParser):
    """Targets and anchors of one HTML file."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where a tag leads to, and what leads to it."""
        values = dict(attrs)
        if anchor := values.get("id") or values.get("name"):
            self.anchors.add(anchor)
        if tag == "a" and (link := values.get("href")):
            self.links.add(link)


def slug(heading: str) -> str:
    """Anchor that code hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower().replace("`", "")).replace(" ", "-")


def markdown(text: str) -> tuple[set[str], set[str]]:
    """Links and anchors of a page in Markdown; code blocks have none."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    links = set(re.findall(r"\]\(([^()\s]+)\)", text))
    anchors = {slug(heading) for heading in re.findall(r"^#+ +(.+)$", text, re.MULTILINE)}
    return links, anchors | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def parts(path: Path) -> tuple[set[str], set[str]]:
    """Links and anchors of a file; a file of another kind has none."""
    if path.suffix == ".md":
        return markdown(path.read_text(encoding="utf-8"))
    if path.suffix == ".html":
        page = _Page(path.read_text(encoding="utf-8"))
        return page.links, page.anchors
    return set(), set()


def broken(pages: list[Path]) -> list[str]:
    """One line a link that leads nowhere."""
    found = []
    for page in pages:
        for link in sorted(parts(page)[0]):
            where = urlsplit(link)
            if where.scheme or where.netloc:
                continue
            target = (page.parent / unquote(where.path)).resolve() if where.path else page
            if not target.exists() or (where.fragment and unquote(where.fragment) not in parts(target)[1]):
                found.append(f"{page}: {link}")
    return found


def main(folder: Path) -> None:
    """Build, then check."""
    # Types of `if TYPE_CHECKING:` blocks are shown as they are written, where pdoc cannot import them.
    warnings.filterwarnings("ignore", module=r"pdoc\.doc_types")
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    pdoc.render.configure(docformat="numpy", show_source=False)
    pdoc.pdoc(*MODULES, output_directory=folder)
    pages = [page for page in ROOT.rglob("*.md") if not SKIPPED & set(page.relative_to(ROOT).parts)]
    pages += folder.rglob("*.html")
    wrong = broken(pages)
    print("\n".join([*wrong, f"{len(pages)} pages, {len(wrong)} broken links"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
