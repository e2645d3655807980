"""Files of other frameworks, read into our own terms."""
