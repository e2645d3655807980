"""The method's own figures: whether working step by step from a document pays."""
