"""Tenants and keys: who is asking, and what they may see."""
