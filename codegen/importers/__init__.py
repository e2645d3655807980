"""Documents and task lists of other tools, made into design documents of six sections."""
