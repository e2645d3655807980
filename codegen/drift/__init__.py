"""Section 5 against the code, and Section 5 from the code.

`drift` compares a design document with a project, `drift_any` the fenced signatures of any Markdown file with a
package, `adopted_document` writes a whole document of code that is there, `propose` brings Section 5 up to code that
moved first.
"""
