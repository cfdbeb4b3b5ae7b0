"""What a whole native request costs: its texts, what the vendor puts around them, its tools. ``count_request`` is the way in.

The numbers are data (``*.toml`` beside this file), each with its source and confidence; the code knows how each vendor puts a request together.
"""

from __future__ import annotations

from adapters.counting.request import CountedRequest, count_request, count_text
from adapters.counting.rules import Service

__all__ = ["CountedRequest", "Service", "count_request", "count_text"]
