"""From the dependencies of Section 5 to the steps of Section 6, and how far they are."""
