"""A time-sharing scheduler for agentic RL: one sans-IO core, a live driver and a simulator."""
