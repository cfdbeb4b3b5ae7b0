"""What a text speaks of, found without a model (S8)."""

from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.model.entities import LONGEST, MOST, entities_of, names_in


def test_a_heading_is_what_a_text_is_about() -> None:
    assert entities_of("Ed Wood (film)\nA film by Tim Burton.").about == ("ed wood (film)", "ed wood")
    assert entities_of("# The Export Job\nIt runs at night.").about == ("export job",)
    assert entities_of("It failed again.\nNobody knows why.").about == ()
    assert entities_of("Just one line about Ed Wood").about == ()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("The alert superset.alert.delivery fired.", "superset.alert.delivery"),
        ("See ADR-0012 for more.", "adr-0012"),
        ("It answered E11000 twice.", "e11000"),
        ("Look into `worker pool` first.", "worker pool"),
        ("She read “Plan Nine from Space” again.", "plan nine from space"),
        ("It was made by Tim Burton.", "tim burton"),
        ("They live in São Paulo now.", "sao paulo"),
        ("It hangs in the Museum of Modern Art today.", "museum of modern art"),
        ("Mail goes to ops@example.org first.", "ops@example.org"),
        ("It is in /etc/nginx/nginx.conf since then.", "etc/nginx/nginx.conf"),
    ],
)
def test_names_are_found(text: str, named: str) -> None:
    assert named in entities_of(text).mentions


def test_a_capital_at_the_start_of_a_sentence_is_no_name() -> None:
    assert entities_of("Everything works. Nothing is slow. Good.").mentions == ()
    assert "burton" in entities_of("Burton made it. It was Burton who left.").mentions


def test_joined_names_are_kept_apart_too() -> None:
    assert {"scott derrickson", "ed wood"} <= set(names_in("Were Scott Derrickson and Ed Wood of the same nationality?"))


def test_a_unit_does_not_mention_what_it_is_about() -> None:
    found = entities_of("Tim Burton\nTim Burton was born in Burbank.")
    assert found.about == ("tim burton",)
    assert "tim burton" not in found.mentions


@given(st.text(max_size=300))
def test_keys_are_plain_and_bounded(text: str) -> None:
    found = entities_of(text)
    assert len(found.mentions) <= MOST
    for key in (*found.about, *found.mentions):
        assert 0 < len(key) <= LONGEST
        assert key == key.strip()
        assert "  " not in key
        assert "\n" not in key


@pytest.mark.parametrize(
    "text", ["A " * 100_000, "a." * 100_000, "A-" * 100_000, '"' * 200_000, "Aa Of " * 50_000, "`" * 200_000, "(" * 200_000]
)
def test_odd_text_costs_no_more_than_its_length(text: str) -> None:
    began = perf_counter()
    entities_of(text)
    entities_of(text[:80] + "\n" + text)
    assert perf_counter() - began < 3
