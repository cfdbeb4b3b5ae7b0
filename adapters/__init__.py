"""How it is said to a model: one adapter per model family, and importers of native transcripts."""
