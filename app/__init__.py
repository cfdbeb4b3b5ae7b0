"""Who may know what, when, and at which price: the service around the graph."""
