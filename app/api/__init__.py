"""The REST door: parse, call, answer."""
