"""What scoring promises: the same evidence gives the same order, each part works alone, and each does what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.settings import load_settings
from app.strategies.scoring import DEFAULT, Crossing, Evidence, Weights, cross, ranked, score
from graph.model.errors import SettingsInvalid
from graph.model.search_text import query_terms, terms_of

NO_NEIGHBOURS: Mapping[str, Mapping[str, int]] = {}


def said(
    unit_id: str,
    text: str,
    *,
    session_id: str | None = None,
    place: int | None = None,
    speaker: str | None = None,
    similarity: float | None = None,
) -> Evidence:
    return Evidence(unit_id, tuple(terms_of(text)), session_id, place, speaker, similarity, asks=text.rstrip().endswith("?"))


def best_first(question: str, *found: Evidence, neighbours: Mapping[str, Mapping[str, int]] = NO_NEIGHBOURS) -> list[str]:
    return ranked(score(query_terms(question), found, neighbours))


def test_nothing_found_scores_nothing() -> None:
    assert score(query_terms("lighthouse"), (), NO_NEIGHBOURS) == {}


def test_without_words_or_vectors_all_are_alike_and_ties_go_by_id() -> None:
    assert best_first("what is it", said("b", "Granite."), said("a", "Basalt."), said("c", "Marble.")) == ["a", "b", "c"]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    common = [said(f"u{number}", f"The ferry left pier {number}.") for number in range(1, 9)]
    assert best_first("ferry quarantine", *common, said("z", "A quarantine was declared."))[0] == "z"


def test_a_long_text_needs_more_than_a_short_one() -> None:
    filler = " ".join(f"word{number}" for number in range(200))
    assert best_first("quarantine", said("a", f"quarantine {filler}"), said("b", "quarantine today it was declared in Ilhabela"))[0] == "b"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("decisão do comitê", "As decisões dos comitês saíram."),
        ("decisao do comite", "As decisões dos comitês saíram."),
        ("who runs", "It is running."),
    ],
)
def test_forms_of_a_word_and_missing_accents_match(question: str, answer: str) -> None:
    assert best_first(question, said("a", "Nada a ver com aquilo."), said("b", answer))[0] == "b"


def test_a_word_that_only_begins_alike_counts_less_than_the_word_but_more_than_none() -> None:
    found = [said("a", "The museum closed."), said("b", "Auxílio aos alunos."), said("c", "Quem auxilia os alunos.")]
    assert best_first("quem auxilia", *found) == ["c", "b", "a"]


def test_words_in_the_order_of_the_question_win_over_the_same_words_apart() -> None:
    apart = said("a", "Information for visitors: bring a lamp and boots to the cave; there are many cave systems.")
    together = said("b", "Visitors bring a lamp and boots to the cave; information systems for many are there: cave.")
    assert best_first("information systems", apart, together)[0] == "b"


def test_meaning_decides_where_words_do_not() -> None:
    assert best_first("vessel", said("a", "The old wall.", similarity=0.1), said("b", "The old boat.", similarity=0.6))[0] == "b"


def test_a_unit_without_a_vector_yet_is_found_by_its_words() -> None:
    found = [said("a", "The old boat.", similarity=0.3), said("b", "The vessel sank."), said("c", "The old wall.", similarity=0.1)]
    assert best_first("vessel", *found)[0] == "b"


def test_what_stands_beside_an_answer_comes_before_what_stands_far() -> None:
    found = [said(f"u{number}", text) for number, text in enumerate(["Hm.", "Hm.", "Is the vault open?", "Since noon.", "Hm."])]
    near = {"u2": {"u0": 2, "u1": 1, "u3": 1, "u4": 2}}
    scores = score(query_terms("vault"), found, near)
    assert scores["u3"] > scores["u4"] > 0
    assert score(query_terms("vault"), found, {"u3": {"u2": 1}, "u2": {"u3": 1}})["u3"] == pytest.approx(scores["u3"])
    assert score(query_terms("vault"), found, {"u2": {"u3": 9, "gone": 1, "u2": 1}})["u3"] < scores["u4"]


def test_a_session_that_is_about_the_question_lifts_its_units() -> None:
    of_vault = [said("a1", "The vault door.", session_id="s1"), said("a2", "The vault key.", session_id="s1")]
    other = [said("b1", "A garden.", session_id="s2"), said("b2", "A pond.", session_id="s2")]
    scores = score(query_terms("vault key"), [*of_vault, said("a3", "Yes.", session_id="s1"), *other], NO_NEIGHBOURS)
    assert scores["a3"] > scores["b1"] == scores["b2"]


def test_whom_the_question_names_is_who_says_it() -> None:
    found = [said("a", "Marisol, I painted a boat.", speaker="Otávio"), said("b", "I painted a boat.", speaker="Marisol")]
    assert best_first("What did Marisol paint?", *found)[0] == "b"
    assert best_first("What did Otavio paint?", *found)[0] == "a"


def test_one_speaker_alone_is_nobody_to_tell_apart() -> None:
    found = [said("a", "A boat.", speaker="deploy"), said("b", "The deploy failed.", speaker="deploy")]
    assert best_first("deploy", *found)[0] == "b"


def test_answers_come_before_questions_and_events_before_remarks() -> None:
    assert best_first("vault", said("a", "The vault?"), said("b", "The vault."))[0] == "b"
    assert (
        best_first("vault", said("a", "The vault held firm.", session_id="s"), said("b", "The vault held yesterday.", session_id="s"))[0]
        == "b"
    )
    assert (
        best_first("cofre", said("a", "O cofre abriu devagar.", session_id="s"), said("b", "O cofre abriu ontem.", session_id="s"))[0]
        == "b"
    )


def test_the_opening_of_a_session_comes_before_its_like() -> None:
    assert best_first("vault", said("a", "The vault.", place=7), said("b", "The vault.", place=0))[0] == "b"


def test_a_name_leads_to_what_is_about_it_and_less_to_what_shares_it() -> None:
    scores = {"seed": 1.0, "other": 0.2}
    after = cross(scores, [Crossing("seed", "about", 1), Crossing("seed", "shares", 1, about=False), Crossing("seed", "hub", 500)])
    assert after["about"] > after["shares"] > 0
    assert after["about"] > after["hub"] > 0
    assert {unit_id: after[unit_id] for unit_id in scores} == scores


def test_many_ways_to_a_unit_count_as_the_best_of_them() -> None:
    scores = {"one": 1.0, "two": 0.5}
    ways = [Crossing("one", "z", 2), Crossing("two", "z", 2), Crossing("two", "z", 1)]
    assert cross(scores, ways)["z"] == cross(scores, ways[:1])["z"]
    assert cross(scores, [Crossing("one", "one", 1), Crossing("unknown", "two", 1)]) == scores


def test_what_the_question_names_gains_once_however_little_else_says() -> None:
    assert ranked(cross({"a": 0.9, "b": 0.8}, (), {"b"})) == ["b", "a"]
    assert cross({}, (), {"b"}) == {"b": DEFAULT.named}


words = st.text(st.sampled_from("abcde áç .?-_7"), max_size=40)
evidence = st.builds(
    said,
    st.sampled_from([f"u{number}" for number in range(12)]),
    words,
    session_id=st.sampled_from([None, "s1", "s2"]),
    place=st.none() | st.integers(0, 5),
    speaker=st.sampled_from([None, "ab", "ac", "b-c"]),
    similarity=st.none() | st.floats(-1, 1),
)
near = st.dictionaries(
    st.sampled_from([f"u{number}" for number in range(12)]),
    st.dictionaries(st.sampled_from([f"u{number}" for number in range(12)]), st.integers(-1, 4), max_size=3),
    max_size=4,
)


@settings(max_examples=60)
@given(words, st.lists(evidence, max_size=12, unique_by=lambda unit: unit.id), near)
def test_any_evidence_gives_each_unit_a_finite_score_whatever_the_order(
    question: str, found: list[Evidence], neighbours: dict[str, dict[str, int]]
) -> None:
    scores = score(query_terms(question), found, neighbours)
    assert scores.keys() == {unit.id for unit in found}
    assert all(isfinite(value) for value in scores.values())
    again = score(query_terms(question), found[::-1], neighbours)
    assert again == pytest.approx(scores)


@settings(max_examples=60)
@given(words, st.lists(evidence, min_size=1, max_size=8, unique_by=lambda unit: unit.id))
def test_more_likeness_never_lowers_a_unit_among_the_same_others(question: str, found: list[Evidence]) -> None:
    asked = query_terms(question)
    given_all = [unit._replace(similarity=0.5) for unit in found]
    nearer = [given_all[0]._replace(similarity=0.9), *given_all[1:]]
    before, after = score(asked, given_all, NO_NEIGHBOURS), score(asked, nearer, NO_NEIGHBOURS)
    for unit in found[1:]:
        assert after[found[0].id] - after[unit.id] >= before[found[0].id] - before[unit.id] - 1e-9


def test_six_hundred_candidates_cost_little() -> None:
    texts = [" ".join(f"word{(number * 7 + place * place) % 900}" for place in range(40)) for number in range(600)]
    found = [said(f"u{number}", text, session_id=f"s{number // 20}", similarity=0.1) for number, text in enumerate(texts)]
    neighbours = {f"u{number}": {f"u{number + 1}": 1, f"u{number + 2}": 2} for number in range(0, 450, 3)}
    asked = query_terms("word1 word2 word30 word400 word5 word60 word7 word80")
    began = process_time()
    for _ in range(5):
        score(asked, found, neighbours)
    # 20 ms each on a quiet machine; ten times that is a loop over loops, not a busy neighbour.
    assert (process_time() - began) / 5 < 0.2


def test_single_weights_can_be_changed_by_name_and_nothing_else() -> None:
    assert Weights.with_changes({"meaning": 0.2, "seeds": 3.0}) == replace(Weights(), meaning=0.2, seeds=3)
    for wrong in ({"neighbours": 1.0}, {"nobody": 1.0}, {"meaning": -0.1}, {"meaning": float("nan")}):
        with pytest.raises(ValueError, match="weights"):
            Weights.with_changes(wrong)
    with pytest.raises(SettingsInvalid, match="LASTRO_SEARCH_WEIGHTS"):
        load_settings(search_weights={"nobody": 1.0})
    assert load_settings(search_weights={"meaning": 0.2}).search_weights == {"meaning": 0.2}
