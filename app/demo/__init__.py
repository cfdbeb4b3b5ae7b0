"""The run that ``lastro demo`` shows: ``incident.json``, written for it; names and figures are made up."""
