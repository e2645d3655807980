"""Environments in processes of their own, which can be ended: a hung or dying environment takes nothing else along."""
