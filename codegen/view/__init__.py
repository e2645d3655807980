"""One self-contained page of a design document, for reviewers who would rather look than read."""
