"""What MkDocs does to the pages beside rendering them. They are written for GitHub and for pytest; this is the rest.

- README.md is the home page; CHANGELOG.md and CONTRIBUTING.md are pages too. Their links are to files from the root.
- Files outside of docs/ that a page links to come along as plain text.
- Examples are sessions (`pycon`), without the remarks that are meant for doctest.
- api.md names the public names; each of its sections gets a page with their docstrings.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
HOME = {"README.md": "index.md", "CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md"}
LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")
OPTIONS = {  # of mkdocstrings, for single names
    "Status": "\n    options:\n      show_if_no_docstring: true",  # its members are advice, and have no docstrings
    "kernels": "\n    options:\n      inherited_members: false\n      filters: ['!^(_|recipe$|definite$|kernel_of$)']",
}
ROW = re.compile(r"^\| `(\w+)` \|", re.M)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and files that are not in docs/."""
    for name, page in HOME.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    for page, title, names in sections((ROOT / "docs" / "api.md").read_text(encoding="utf-8")):
        blocks = [f"# {title}", *(f"::: rowcol.{name}{OPTIONS.get(name, '')}" for name in names)]
        files.append(File.generated(config, page, content="\n\n".join(blocks) + "\n"))
    for source in sorted(outside(files)):
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, f"source/{source}.txt", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links to where things are in the site; show examples as sessions."""
    name = page.file.src_uri
    if name == "api.md":
        for target, _, names in sections(markdown):
            for one in names:
                markdown = markdown.replace(f"| `{one}` |", f"| [`{one}`]({target}#rowcol.{one}) |")
    markdown = LINK.sub(lambda found: f"]({moved(name, found[1])}{found[2] or ''})", markdown)
    markdown = re.sub(r"^```python\n(?=>>>)", "```pycon\n", markdown, flags=re.M)
    markdown = re.sub(r" *# doctest: .*$", "", markdown, flags=re.M)
    return re.sub(r"\n\n```$", "\n```", markdown, flags=re.M)


def moved(page: str, target: str) -> str:
    """Where a link leads from this page of the site."""
    path = from_root(page, target)
    if path in HOME:
        return posixpath.relpath(HOME[path], posixpath.dirname(page) or ".")
    if path.startswith("docs/"):
        return posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(page) or ".")
    return f"source/{path}.txt" if (ROOT / path).is_file() else target


def from_root(page: str, target: str) -> str:
    """The file a link of a page means, as a path from the root."""
    folder = "" if page in HOME.values() else posixpath.join("docs", posixpath.dirname(page))
    return posixpath.normpath(posixpath.join(folder, target))


def outside(files: Files) -> set[str]:
    """Files that pages link to and that are not in docs/."""
    found = set()
    for file in files.documentation_pages():
        for target, _ in LINK.findall(file.content_string):
            path = from_root(file.src_uri, target)
            if path not in HOME and not path.startswith("docs/") and (ROOT / path).is_file():
                found.add(path)
    return found


def sections(text: str) -> list[tuple[str, str, list[str]]]:
    """Of api.md: the page of each section, its title, and the names in its table."""
    found = []
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        title = part.splitlines()[0].strip()
        found.append((f"api/{title.lower().replace(' ', '-')}.md", title, ROW.findall(part)))
    return found
