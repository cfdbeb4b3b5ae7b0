"""From a query to an answer: identity, permission, strategy, governance, selection, rendering, receipt."""
