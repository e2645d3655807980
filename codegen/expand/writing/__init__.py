"""Put planned blocks into a text, and a text into its file. Only whole lines, only whole files."""
