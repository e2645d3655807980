"""Design documents that drive the code: lint, plan, expand, check, commit."""
