"""What writing and counting an answer of some 200 units costs, for a model of each family, beside the traversal that selects them."""

from __future__ import annotations

from pathlib import Path

from app.cli.context import COLD_DEADLINE_MS
from app.importing import BATCH_UNITS
from app.operations import LocalOperations
from benchmarks.engines import BenchEngine, lastro_on, started
from benchmarks.made_up import runs, unit_id
from benchmarks.measuring import Figure, OnProgress, Samples, at_most, load_average, median, plain, rotated
from graph.model.query import ContextQuery

NAME = "rendering"
UNITS = 10_000
RUN_UNITS = 1_000
BUDGET = 17_000
"""Tokens; some 200 units of 60 words with their headers."""
QUERIES = 25
WARM_UP = 5
MODELS = ("gpt-5.2", "responses/gpt-5.2", "claude-opus-4-8", "gemini-3-flash", "deepseek-v4", "openai-compatible/some-model")
MOST_SHARE = 0.1
SELECTING = ("candidates", "load", "select")
"""Steps of a query that are not writing."""


async def measure(engine: BenchEngine, folder: Path, on_progress: OnProgress) -> list[Figure]:
    """Ask around units of a graph of 10,000, each question for each model in turn; the times are those of the receipts."""
    samples, told = Samples(), dict[str, list[int]]()
    async with started(engine, folder) as address, lastro_on(address, folder, warm_up=True) as lastro:
        scope = lastro.registry.local(NAME, "bench")
        await lastro.registry.ensure_tenant(scope)
        for made in runs(UNITS, RUN_UNITS):
            for start in range(0, RUN_UNITS, BATCH_UNITS):
                await lastro.ingest.write(scope, made.units[start : start + BATCH_UNITS])
        door = LocalOperations(lastro, scope)
        for number in range(WARM_UP + QUERIES):
            around = unit_id(UNITS // 2 + number * 97)
            for model in rotated(MODELS, number):
                query = ContextQuery(unit_id=around, budget_tokens=BUDGET, model=model, deadline_ms=COLD_DEADLINE_MS)
                answer = await door.context(query)
                if number >= WARM_UP:
                    timings = answer.receipt.timings_ms
                    samples.add(f"{model}: writing and counting", timings["render"] / 1000)
                    samples.add(f"{model}: selecting", sum(timings[step] for step in SELECTING) / 1000)
                    told.setdefault(model, []).append(len(answer.units))
            on_progress("questions", number + 1, WARM_UP + QUERIES)
    figures: list[Figure] = []
    for model in MODELS:
        writing, selecting = samples.ms(f"{model}: writing and counting"), samples.ms(f"{model}: selecting")
        figures += [
            plain(NAME, str(engine), f"{model}: units told, median", median(told[model]), ""),
            plain(NAME, str(engine), f"{model}: writing and counting, p50", writing, "ms"),
            plain(NAME, str(engine), f"{model}: traversal, texts and selection, p50", selecting, "ms"),
            at_most(plain(NAME, str(engine), f"{model}: writing beside selecting", writing / selecting, "of it"), MOST_SHARE),
        ]
    return [*figures, plain(NAME, str(engine), "load average", load_average(), "")]
