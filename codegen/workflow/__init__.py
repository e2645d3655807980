"""One step at a time, from its brief to its commit: the ledger is the document, the record is git.

A step is started, written, verified, reviewed and committed. Statuses live in Section 6 alone and change in the same
commit as the code. A commit cannot hold its own id, so git's trailers say which commit belongs to which step
(`trail`); the Commit column of the table of steps repeats them and is filled by the next write of the ledger.
"""

FAILURE_KINDS = ("code-bug", "design-gap", "doc-error")
