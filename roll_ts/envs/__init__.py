"""Text environments behind one small protocol. Nothing here knows Ray, models or the scheduler."""
