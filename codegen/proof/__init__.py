"""Whether tests prove code: what ran and how it ended, and whether anybody misses a function that is taken away.

`judge` is the entrance. `inside/` holds the files that the project's own interpreter loads while it runs the tests:
they import nothing but the standard library and pytest, and nothing here imports them.
"""
