"""What is known: the neutral model and the database that holds it."""
