"""The scheduler judged from outside: events go in, commands come out, and nothing of the core is looked at.

`scenario` says what a world is like, `world` plays it, `parties` are its engines, trainer and environments, `books` and
`devices` keep the oracle's own accounts of every rule that can be seen from outside, `shrink` makes a failing history
small, `python -m tests.roll_ts.outside FILE` plays one again.
"""
