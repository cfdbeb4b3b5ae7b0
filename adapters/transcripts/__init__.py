"""Transcripts in a neutral form, and each vendor's form of them, both ways."""
