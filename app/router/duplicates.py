"""Texts that say the same again: worth their tokens only once.

Two texts are near-duplicates when the words that carry meaning are the same in the same order: case, accents, punctuation, layout and articles
may differ. One other number, name or denying word makes another fact of it ("host alpha" and "host beta", "restart it" and "do not restart
it"), so measures of likeness that let a word in twenty differ were left aside: what they drop by mistake nobody can ask for.
"""

from __future__ import annotations

import hashlib
import re

from graph.model.search_text import STOP_WORDS, folded

WORD = re.compile(r"[-+]?\d[\d.,:]*\w*|\w+|[$€£%°<>=]")
"""A value keeps its sign, and units that are written as signs are words too."""
DENIES = frozenset(("no", "not", "never", "none", "without", "cannot", "t", "nao", "nunca", "sem", "nenhum", "nenhuma", "nem", "jamais"))
"""``t`` is what is left of ``don't``."""
SILENT = (
    STOP_WORDS - DENIES - {"can", "could", "should", "will", "would", "if", "than", "from", "to", "in", "on", "by", "with", "para", "de"}
)
"""Stop words that change nothing of what is said when they are left out."""


def said(text: str) -> bytes:
    """What a text says: equal for near-duplicates."""
    words = (word.rstrip(".,:") for word in WORD.findall(folded(text)))
    return hashlib.blake2b(" ".join(word for word in words if word not in SILENT).encode(), digest_size=16).digest()
