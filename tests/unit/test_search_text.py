"""Words as search knows them: one form for both sides, whatever the accents, the number and the engine (S3, S7)."""

from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.model.search_text import (
    LONGEST_TERM,
    MOST_ASKED,
    MOST_TERMS,
    STOP_WORDS,
    escaped,
    folded,
    index_clause,
    query_terms,
    search_text,
    terms_of,
)


@pytest.mark.parametrize(
    "words",
    [
        ("avaliação", "avaliações", "avaliacao", "avaliacoes", "AVALIAÇÕES"),
        ("decisão", "decisões", "decisao", "decisoes"),
        ("comitê", "comitês", "comite"),
        ("nacional", "nacionais", "Nacionais"),
        ("referência", "referências", "referencia"),
        ("running", "runs", "run"),
        ("deploy", "deploys", "deployed"),
        ("alemães", "alemão", "alemao"),
        ("Straße", "strasse"),
    ],
)
def test_forms_of_one_word_meet(words: tuple[str, ...]) -> None:
    for one in words:
        for other in words:
            assert set(terms_of(one)) & set(terms_of(other)), (one, other)


def test_identifiers_are_kept_whole_and_in_parts() -> None:
    assert {"superset.alert.delivery", "superset", "alert"} <= set(terms_of("superset.alert.delivery"))
    assert {"not_in_channel", "channel"} <= set(terms_of("not_in_channel"))
    assert terms_of("s3 db qa") == ["s3", "db", "qa"]
    assert {"getusername", "user"} <= set(terms_of("getUserName"))
    assert "c++" in terms_of("C++")
    assert "v1.2.3" in terms_of("v1.2.3")


def test_stop_words_are_no_terms() -> None:
    assert terms_of("What is the state of the system, e como foi a decisão?") != []
    assert not set(terms_of("the of and para com que")) & STOP_WORDS
    assert query_terms("the of and").words == ()


def test_a_question_with_too_many_words_keeps_identifiers_then_numbers_then_names() -> None:
    plain = " ".join(f"plain{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(MOST_ASKED + 20))
    asked = query_terms(f"{plain} 404 superset.alert.delivery Zebediah")
    assert len(asked.words) == MOST_ASKED
    assert ("superset.alert.delivery",) in asked.words
    assert ("404",) in asked.words
    assert any("zebediah" in word for word in asked.words)
    assert len(asked.dropped) > 20
    assert all(word.startswith("plain") or word.islower() for word in asked.dropped)


@given(st.text(max_size=400))
def test_any_text_gives_terms_that_an_index_takes(text: str) -> None:
    for term in terms_of(text):
        assert 0 < len(term) <= LONGEST_TERM
        assert not any(character.isspace() for character in term)
    # What is written down is read back as the same terms, since the index splits at spaces alone.
    assert search_text(text).split(" ") == terms_of(text) or not terms_of(text)


@given(st.text(max_size=200))
def test_a_text_is_found_by_its_own_words(text: str) -> None:
    assert set(query_terms(text, most=10_000).terms) == set(terms_of(text))


@given(st.text(max_size=200))
def test_accents_and_case_make_no_difference(text: str) -> None:
    assert set(terms_of(folded(text))) <= set(terms_of(text)) | set(terms_of(folded(text)))
    assert folded(folded(text)) == folded(text)


@given(st.text(alphabet='+-&|!(){}[]^"~*?:\\/<>=ab', min_size=1, max_size=40))
def test_nothing_of_a_term_is_syntax(term: str) -> None:
    taken = escaped(term)
    bare = taken
    for sign in '+-&|!(){}[]^"~*?:/<>=':
        bare = bare.replace("\\" + sign, "")
    bare = bare.replace("\\\\", "")
    assert set(bare) <= set("ab")
    assert index_clause("field", [term]) == f"+field:({taken})"


@pytest.mark.parametrize("text", ["a" * 1_000_000, "a." * 300_000, "aB" * 300_000, "- " * 300_000, "漢" * 300_000, "é" * 500_000])
def test_odd_text_costs_no_more_than_its_length(text: str) -> None:
    began = perf_counter()
    assert len(terms_of(text)) <= MOST_TERMS
    assert perf_counter() - began < 5
