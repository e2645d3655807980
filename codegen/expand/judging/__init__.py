"""Compare what stands in a file with the plan, find checks written by hand, and prove a text before it is written."""
