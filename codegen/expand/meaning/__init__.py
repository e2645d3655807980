"""What an annotation means where it stands: its pattern, target, names, and the values it speaks of."""
