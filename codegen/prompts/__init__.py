"""Prompts for recurring situations of a review, and how each AI command line wants them.

A prompt says what to ask `codegen` for and what to hand back; it repeats nothing that a command prints. The agents
differ in folder, file format, and in how the user's words get in; what is written is recorded, so that a file that a
person edited is never overwritten or removed.
"""
