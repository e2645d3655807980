"""The blocks that a fresh expansion of a base text has, and the imports that go with them."""
