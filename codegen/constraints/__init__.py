"""Constraints of design documents: read them, and find those that cannot hold together.

`check` is what `codegen lint` asks. Constraints are `- constraint:` lines of decisions and goals, the bounds of
annotations and the defaults of Section 5. Nothing here asks a language model; the solver (z3) is an extra.
"""
