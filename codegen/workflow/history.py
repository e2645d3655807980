"""Many commits read at once, by a few git processes: what each touches, and files as each had them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from codegen.document.model import Document
from codegen.document.modern import modern
from codegen.document.parse import parse_document
from codegen.workflow.git import Git


class History:
    """Files and touched paths of commits. Ask for what will be needed with `load` first: it is read in one go."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._prefix = git.prefix() if git.head() else ""
        self._touched: dict[str, list[str]] = {}
        self._blobs: dict[tuple[str, str], str | None] = {}
        self._texts: dict[str, str] = {}
        self._documents: dict[tuple[str, str], Document] = {}

    def load(self, files: Iterable[tuple[str, str]]) -> None:
        """Read these (commit, path) pairs; equal contents once."""
        asked = [each for each in dict.fromkeys(files) if each not in self._blobs]
        if not asked:
            return
        names = "".join(f"{commit}:{self._prefix}{path}\n" for commit, path in asked)
        lines = self._git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", text=names).split("\n")
        for each, line in zip(asked, lines, strict=False):
            ident, _, kind = line.partition(" ")
            self._blobs[each] = ident if kind == "blob" else None
        self._read([i for i in dict.fromkeys(self._blobs.values()) if i is not None and i not in self._texts])

    def text(self, commit: str, path: str) -> str | None:
        """A file's text in a commit, None where the commit has no such file."""
        self.load([(commit, path)])
        ident = self._blobs[commit, path]
        return None if ident is None else self._texts[ident]

    def document(self, commit: str, path: str) -> Document | None:
        """A document in a commit, in the present form; one text is read once."""
        self.load([(commit, path)])
        ident = self._blobs[commit, path]
        if ident is None:
            return None
        if (ident, path) not in self._documents:
            self._documents[ident, path] = modern(parse_document(self._texts[ident], Path(path)))
        return self._documents[ident, path]

    def load_touched(self, commits: Iterable[str]) -> None:
        """Read what these commits, which are no merges, change against their parents."""
        asked = [each for each in dict.fromkeys(commits) if each not in self._touched]
        if not asked:
            return
        text = self._git.run(
            *(
                "log",
                "--no-walk=unsorted",
                "--stdin",
                "--no-renames",
                "--root",
                "--name-only",
                "-z",
                "--format=%x01%H%x00",
            ),
            text="\n".join(asked) + "\n",
        )
        for part in text.split("\x01")[1:]:
            commit, _, rest = part.partition("\0")
            paths = [path.lstrip("\n") for path in rest.split("\0") if path.strip("\n")]
            self._touched[commit] = [self._shown(path) for path in paths]

    def touched(self, commit: str) -> list[str]:
        """Paths a commit changes, relative to the project; those outside of it begin with a slash."""
        self.load_touched([commit])
        return self._touched.get(commit, [])

    def _shown(self, path: str) -> str:
        return path.removeprefix(self._prefix) if path.startswith(self._prefix) else f"/{path}"

    def _read(self, idents: list[str]) -> None:
        if not idents:
            return
        text = self._git.run("cat-file", "--batch", "--buffer", text="".join(f"{ident}\n" for ident in idents))
        data = text.encode("utf-8", "surrogateescape")
        at = 0
        for ident in idents:
            end = data.index(b"\n", at)
            size = int(data[at:end].rpartition(b" ")[2])
            self._texts[ident] = data[end + 1 : end + 1 + size].decode("utf-8", "surrogateescape")
            at = end + 1 + size + 1
