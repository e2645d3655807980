"""Section 5 against the code, and Section 5 from the code.

`drift` compares a design document with a project, `drift_any` the fenced signatures of any Markdown file with a
package, `Adoption` writes Section 5 of code that exists, `propose` brings Section 5 up to code that moved first.
"""
