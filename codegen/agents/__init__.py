"""An AI agent implements one step under supervision: in a tree of its own, held to its files, judged by the tools.

Nothing an agent does reaches the project unless the step verifies: the agent works in a repository that is thrown
away. Statuses are written by the tool alone. What comes out is a working tree to review, or one commit.
"""
