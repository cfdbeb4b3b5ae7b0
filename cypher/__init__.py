"""Every statement the system runs, one per file. Loaded by ``graph.statements``."""
