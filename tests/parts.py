"""The whole suite in processes of its own for each engine, side by side, since each mostly waits for its database. Arguments go to pytest.

An engine is started once, and tests of one module share what it holds, so they stay in one process. (pytest-xdist 3.8 groups tests by names
that pytest 9.2 keeps elsewhere: with it every process started every engine.)
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT

from tests.conftest import engine_names

AT_ONCE = 2


async def part(name: str, told: list[str], room: asyncio.Semaphore) -> int:
    """One process; its output comes line by line under its name. 5 (nothing was selected) is no failure of a part."""
    async with room:
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "pytest", *told, stdout=PIPE, stderr=STDOUT)
        assert process.stdout is not None
        while line := await process.stdout.readline():
            sys.stdout.write(f"{name:>12} | {line.decode('utf-8', 'replace')}")
            sys.stdout.flush()
        status = await process.wait()
    return 0 if status == 5 else status


async def main(more: list[str]) -> int:
    room = asyncio.Semaphore(AT_ONCE)
    engines = [part(name, ["--part", "engines", "--engine", name, *more], room) for name in reversed(engine_names())]
    others = part("others", ["--part", "others", *more], room)
    return max(await asyncio.gather(*engines, others))


if __name__ == "__main__":
    # A shell makes what it runs in the background ignore Ctrl-C, and all that comes of it would; some tests press it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(asyncio.run(main(sys.argv[1:])))
