"""How candidates are found: each strategy is a function of (authorised scope, plan) -> candidates."""
