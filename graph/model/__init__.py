"""Pure data and rules of the neutral format. Imports nothing else of this project."""
