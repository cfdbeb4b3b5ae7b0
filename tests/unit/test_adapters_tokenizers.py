"""Token counts: exact offline, from verified ranks, repaired when damaged, honest when there is nothing."""

from __future__ import annotations

import hashlib
import importlib.util
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import ranks
from adapters.tokenizers import O200K, ByteCounter, QuickCounter, RankedCounter, Tokenizers
from graph.model.answer import CountMethod

ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
O200K_FILE = ranks.RankFile(ADDRESS, SHA256)
FAMILY = "Olá, acentuação e família 👨‍👩‍👧 — hello world"


@dataclass
class Given:
    """A source that gives what it is told to and remembers being asked."""

    contents: bytes | None
    label: str = "given"
    asked: list[str] = field(default_factory=list[str])

    def read(self, wanted: ranks.RankFile) -> bytes | None:
        self.asked.append(wanted.address)
        return self.contents


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture(scope="module")
def by_tiktoken(cache: Path) -> Tokenizers:
    return Tokenizers(cache_dir=cache, environment={}, quicktok=False)


@pytest.fixture(scope="module")
def tokenizers(cache: Path) -> Tokenizers:
    return Tokenizers(cache_dir=cache, environment={})


@pytest.fixture(scope="module")
def contents() -> bytes:
    made = ranks.QuicktokSource().read(O200K_FILE)
    assert made is not None
    return made


def test_counts_are_those_of_the_encodings(tokenizers: Tokenizers) -> None:
    assert tokenizers.count_o200k(FAMILY) == 18
    assert tokenizers.count_o200k("") == 0
    assert tokenizers.count_o200k("<|endoftext|>") > 1
    assert tokenizers.for_name("cl100k_base").count("hello world") == 2
    assert {status.name: (status.source, status.method) for status in tokenizers.status(O200K, "cl100k_base")} == {
        O200K: ("quicktok package", CountMethod.EXACT),
        "cl100k_base": ("quicktok package", CountMethod.EXACT),
    }


@given(
    st.one_of(
        st.text(max_size=120),
        st.lists(st.sampled_from(["\n", " ", "/", "]", "'s", "'LL", "12", "Ab", "çã", "你", "\u0301", "\u200d", "\t\r", ".", "{"])).map(
            "".join
        ),
    )
)
@settings(max_examples=250, deadline=None, database=None)
def test_the_quick_engine_agrees_with_tiktoken(tokenizers: Tokenizers, by_tiktoken: Tokenizers, text: str) -> None:
    quick, exact = tokenizers.for_name(O200K), by_tiktoken.for_name(O200K)
    assert isinstance(quick, QuickCounter)
    assert isinstance(exact, RankedCounter)
    assert quick.count(text) == exact.count(text)
    size = len(text.encode())
    for spans in ([(0, size)], [(size // 3, size // 2), (size // 2, size)], []):
        assert quick.tally(text, spans) == exact.tally(text, spans)


def test_spans_count_the_tokens_that_begin_in_them(by_tiktoken: Tokenizers) -> None:
    tally = by_tiktoken.for_name(O200K).tally("hello world again", [(5, 11)])
    assert (tally.total, tally.within) == (3, 1)


def test_a_million_blanks_are_counted_and_not_a_panic(tokenizers: Tokenizers, by_tiktoken: Tokenizers) -> None:
    assert tokenizers.count_o200k(" " * 1_000_000) == pytest.approx(by_tiktoken.count_o200k(" " * 1_000_000), rel=0.01)


def test_nothing_goes_over_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    nothing = Tokenizers(sources=[])
    names = [O200K, "cl100k_base", "o200k_harmony", "gpt2", "p50k_base", "no_such_encoding"]
    assert {status.source for status in nothing.status(*names)} == {"estimate"}
    assert Tokenizers(cache_dir=tmp_path, environment={}, quicktok=False).count_o200k(FAMILY) == 18


def test_the_harmony_encoding_uses_the_same_ranks(by_tiktoken: Tokenizers) -> None:
    assert by_tiktoken.for_name("o200k_harmony").count(FAMILY) == 18
    assert by_tiktoken.status("o200k_harmony")[0].method is CountMethod.EXACT


def test_a_damaged_cache_file_is_repaired(tmp_path: Path, contents: bytes) -> None:
    behind = Given(contents)
    source = ranks.CachedSource(tmp_path / "deep", behind)
    kept = tmp_path / "deep" / hashlib.sha1(ADDRESS.encode(), usedforsecurity=False).hexdigest()
    assert source.read(O200K_FILE) == contents
    assert kept.read_bytes() == contents
    kept.write_bytes(contents[:-7])
    assert source.read(O200K_FILE) == contents
    assert kept.read_bytes() == contents
    assert source.read(O200K_FILE) == contents
    assert behind.asked == [ADDRESS, ADDRESS]
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "file").write_text("in the way")
    source = ranks.CachedSource(tmp_path / "file", Given(contents))
    assert source.read(O200K_FILE) == contents


def test_the_users_own_cache_wins_and_is_never_changed(tmp_path: Path, contents: bytes) -> None:
    users = tmp_path / "users"
    users.mkdir()
    (users / O200K_FILE.cache_name).write_bytes(contents)
    environment = {"TIKTOKEN_CACHE_DIR": str(users), "LASTRO_CACHE": str(tmp_path / "ours")}
    tokenizers = Tokenizers(environment=environment)
    assert tokenizers.count_o200k(FAMILY) == 18
    assert tokenizers.status(O200K)[0].source == "TIKTOKEN_CACHE_DIR"
    assert not (tmp_path / "ours").exists()
    (users / O200K_FILE.cache_name).write_bytes(b"damaged")
    assert ranks.find(O200K_FILE, ranks.default_sources(environment)) == (contents, "quicktok package")
    assert (users / O200K_FILE.cache_name).read_bytes() == b"damaged"
    assert (tmp_path / "ours" / "tiktoken" / O200K_FILE.cache_name).read_bytes() == contents


def test_contents_with_another_digest_are_refused() -> None:
    assert ranks.QuicktokSource().read(ranks.RankFile(ADDRESS, "0" * 64)) is None
    assert ranks.QuicktokSource().read(ranks.RankFile("https://example.test/other.tiktoken", SHA256)) is None


@pytest.mark.parametrize("text", ["", "a", FAMILY, "plain English prose, a few words of it " * 20, '{"k": [1, 2, {"x": null}]}' * 20])
def test_without_ranks_tokens_are_estimated_within_wide_bounds(tokenizers: Tokenizers, text: str) -> None:
    nothing = Tokenizers(sources=[])
    counter = nothing.for_name(O200K)
    assert isinstance(counter, ByteCounter)
    assert counter.method is CountMethod.ESTIMATE
    tally = counter.tally(text, [(0, len(text.encode()))])
    assert tally.low <= tokenizers.count_o200k(text) <= tally.high
    assert tally.low <= tally.total <= tally.high or not text
    assert tally.total == nothing.count_o200k(text) == tally.within


def test_threads_share_one_loading() -> None:
    nothing = Given(None)
    tokenizers = Tokenizers(sources=[nothing])
    threads = [threading.Thread(target=tokenizers.count_o200k, args=("text",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert nothing.asked == [ADDRESS]


def test_ctok_is_asked_only_when_wanted_and_there() -> None:
    assert Tokenizers(ctok=False).claude() is None
    assert (Tokenizers().claude() is None) == (importlib.util.find_spec("ctok") is None)
