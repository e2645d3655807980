"""One call of `codegen expand`: settings, library and cache, then file by file."""
