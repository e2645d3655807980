"""Trainers behind one small protocol: samples in, new weights out. Nothing here knows Ray or the
scheduler."""
