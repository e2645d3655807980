"""The documents of a project, known to each other: whose name is whose, and what the code of folded names uses."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from codegen.document.locate import document_paths, project_root
from codegen.document.model import Document, Entry
from codegen.document.parse import read_document
from codegen.document.uses import CodeUses

Named = tuple[Document, Entry]


class Project:
    """All documents of a project. `root` is where the code of folded names is read; None: it is not read."""

    def __init__(self, documents: Sequence[Document], root: Path | None = None) -> None:
        self.documents = tuple(documents)
        self.uses = CodeUses(root) if root is not None else None

    def others(self, document: Document) -> Iterator[Document]:
        """The documents but for this one."""
        own = document.path.resolve()
        return (each for each in self.documents if each.path.resolve() != own)

    @cached_property
    def packages(self) -> set[str]:
        """The top-level names that documents describe: a name below them is ours, or mistyped."""
        roots = {root.strip("/").split("/")[0] for document in self.documents for root in document.front.roots}
        return roots | {module.name.split(".")[0] for document in self.documents for module in document.modules}

    @cached_property
    def _by_tail(self) -> dict[str, dict[str, Named]]:
        found: dict[str, dict[str, Named]] = defaultdict(dict)
        for document in self.documents:
            for name, entry in document.entry_by_name.items():
                parts = name.split(".")
                for at in range(len(parts)):
                    found[".".join(parts[at:])].setdefault(name, (document, entry))
        return found

    def find(self, name: str, document: Document) -> dict[str, Named]:
        """What a name means in the other documents, by full name: that name, or all it is the tail of; a module's
        entries for a module."""
        own = document.path.resolve()
        tails = {full: named for full, named in self._by_tail.get(name, {}).items() if named[0].path.resolve() != own}
        if name in tails:
            return {name: tails[name]}
        if tails:
            return tails
        return {
            entry.id: (other, entry)
            for other in self.others(document)
            for entry in other.entries
            if entry.module == name
        }

    def nearest(self, name: str) -> str | None:
        """The known name most like this one."""
        found = difflib.get_close_matches(name, self._by_tail, n=1, cutoff=0.75)
        return found[0] if found else None


def project_of(document: Document, others: Sequence[Document] = ()) -> Project:
    """The project that a document is in: the other documents of its `design/`, read again unless given."""
    root = project_root(document.path.parent)
    known = {each.path.resolve(): each for each in (*others, document)}
    paths = document_paths(root) if document.path.exists() else []
    documents = [known.pop(path.resolve()) if path.resolve() in known else read_document(path) for path in paths]
    return Project([*documents, *known.values()], root if document.path.exists() else None)
