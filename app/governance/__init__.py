"""What may enter an answer. Pure rules, each returns Allowed or Refused."""
