"""Readers of native transcripts and of the neutral format. Each yields units; none writes them."""
