"""Take a file apart: bytes, comments, trees, annotations, places, and the blocks that stand in it.

Nothing here knows what a check means; a pattern is an id.
"""
