"""Search for inputs that break the claims of annotations. This runs the code that is searched; expansion never does."""
