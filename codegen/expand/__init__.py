"""Expand annotations into validation code, and keep both in step.

Text in, report out: `expander.expand_bytes` and `expander.strip_bytes` for one file, `command.execute` for many,
`unmanaged.find_unmanaged` for hand-written checks. Nothing is imported here, so that a warm check stays cheap.
"""
