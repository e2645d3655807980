"""Expand annotations into validation code, and keep both in step.

Rooms, each using only those named after it: `driver` (a call, a project, a file), `judging` (what stands against what
should), `writing`, `planning` (the blocks that should stand), `meaning` (what an annotation checks), `reading` (a
file taken apart), and `model`, which all pass around.

Text in, report out: `driver.expansion.expand_bytes` and `strip_bytes` for one text, `driver.request.execute` for many
files, `judging.unmanaged.find_unmanaged` for hand-written checks. Nothing is imported here, so that a warm check
stays cheap.
"""
