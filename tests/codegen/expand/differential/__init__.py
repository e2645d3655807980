"""Generated checks against oracles written by hand: the same verdict, and nothing else changes."""
