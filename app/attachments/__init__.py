"""Originals of attachments (U14): where their bytes lie, who stores and reads them, and how they go."""
