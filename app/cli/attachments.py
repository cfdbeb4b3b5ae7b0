"""`lastro attachments`: store and read the originals that units reference."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
import secrets
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import aclosing, contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Annotated, cast

import typer

from app.cli import options, output
from app.cli.access import Target, operations
from graph.model.attachments import DIGEST, UNKNOWN_MEDIA_TYPE, StoredAttachment, check_media_type
from graph.model.errors import CommandRefused, InvalidField

PIECE = 1024 * 1024
"""Bytes read at once."""

app = typer.Typer(
    no_args_is_help=True,
    help="Store and read originals: pictures, HTML, JSON, whole documents. Units name them by their SHA-256, and describe them in words.",
    epilog="Examples:  lastro attachments put plan.pdf   |   lastro attachments get 9f86d0… --out plan.pdf",
)

Organization = Annotated[str | None, typer.Option(help="Organisation that it is in.", show_default=False)]
Assessment = Annotated[str | None, typer.Option(help="Assessment that it is in.", show_default=False)]


@app.command(epilog="Examples:  lastro attachments put plan.pdf --media-type application/pdf --json")
def put(
    file: Annotated[Path, typer.Argument(help="File to store.", exists=True, dir_okay=False, readable=True)],
    media_type: Annotated[str | None, typer.Option(help="What it is; guessed from the name when left out.", show_default=False)] = None,
    organization: Organization = None,
    assessment: Assessment = None,
    session: Annotated[str | None, typer.Option(help="Session that it counts for.", show_default=False)] = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    tenant: options.Tenant = "local",
    agent: options.Agent = "cli",
    as_json: options.Json = False,
) -> None:
    """Store an original. Name its SHA-256 in a unit's attachments within a day, or it is removed again."""
    kind = check_media_type(media_type or mimetypes.guess_type(file.name)[0] or UNKNOWN_MEDIA_TYPE)
    target = Target(url, key, engine, data, tenant, agent, session, organization, assessment)

    async def work() -> StoredAttachment:
        with file.open("rb") as original:
            sha256 = hashlib.file_digest(original, "sha256").hexdigest()
        async with operations(target) as door:
            return await door.put_attachment(sha256, kind, _pieces(file))

    stored = asyncio.run(work())
    if as_json:
        output.print_json(stored)
    else:
        output.out.print(f"{stored.sha256}  {stored.bytes} bytes, {stored.media_type}", markup=False, soft_wrap=True)


@app.command(epilog="Examples:  lastro attachments get 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 --out plan.pdf")
def get(
    sha256: Annotated[str, typer.Argument(help="SHA-256 of the original, as a unit names it.")],
    out: Annotated[
        Path | None, typer.Option(help="File to write; standard output when left out.", dir_okay=False, show_default=False)
    ] = None,
    organization: Organization = None,
    assessment: Assessment = None,
    session: Annotated[str | None, typer.Option(help="Session to ask from.", show_default=False)] = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    tenant: options.Tenant = "local",
    agent: options.Agent = "cli",
    as_json: options.Json = False,
) -> None:
    """Read an original that some unit which you see names. A file is written whole or not at all."""
    if DIGEST.fullmatch(sha256) is None:
        raise InvalidField(
            "A SHA-256 has 64 hex digits, in lower case; this is none, or a part of one.",
            hint="`lastro units show UNIT --json` has the whole of it under attachments.",
        ).at(field="SHA256")
    if out is None and as_json:
        raise CommandRefused("--json tells what was written, so --out is needed.", hint="Add --out FILE.")
    if out is None and sys.stdout.isatty():
        raise CommandRefused("An original is not for a terminal.", hint="Name a file with --out, or send it on with a pipe.")
    target = Target(url, key, engine, data, tenant, agent, session, organization, assessment)

    async def work() -> int:
        async with operations(target) as door:
            pieces = cast("AsyncGenerator[bytes]", door.get_attachment(sha256))
            async with aclosing(pieces):
                return await (_to_output(pieces) if out is None else _to_file(pieces, out))

    size = asyncio.run(work())
    if as_json:
        output.print_json({"sha256": sha256, "bytes": size, "file": str(out)})
    elif out is not None:
        output.err.print(f"{size} bytes in {output.printable(str(out))}", markup=False, soft_wrap=True)


async def _pieces(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as original:
        while piece := original.read(PIECE):
            yield piece


async def _to_output(pieces: AsyncIterator[bytes]) -> int:
    size = 0
    async for piece in pieces:
        with _writing("Standard output"):
            sys.stdout.buffer.write(piece)
        size += len(piece)
    with _writing("Standard output"):
        sys.stdout.buffer.flush()
    return size


async def _to_file(pieces: AsyncIterator[bytes], out: Path) -> int:
    """Written beside, and put in place when all of it has come."""
    beside = out.with_name(f".{out.name}.{secrets.token_hex(4)}")
    size = 0
    try:
        # Unbuffered, so that nothing is left to be written when the file is closed, where a full disk would be noticed too late.
        with _writing("The file of --out"):
            file = beside.open("xb", buffering=0)
        with file:
            async for piece in pieces:
                with _writing("The file of --out"):
                    _write_all(file, piece)
                size += len(piece)
        with _writing("The file of --out"):
            beside.replace(out)
    finally:
        # Where it could not be made it cannot be removed either, and that was said already.
        with suppress(OSError):
            beside.unlink(missing_ok=True)
    return size


def _write_all(file: FileIO, piece: bytes) -> None:
    """An unbuffered file may take a part at a time."""
    rest = memoryview(piece)
    while rest:
        rest = rest[file.write(rest) :]


@contextmanager
def _writing(what: str) -> Generator[None]:
    """Only around what writes: what goes wrong with reading the original is another error, though it may be of the same type.

    Raises:
        CommandRefused: it cannot be written.
        BrokenPipeError: the reader of standard output has gone, which is no error of this command.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as failure:
        raise CommandRefused(
            f"{what} cannot be written: {failure.strerror or type(failure).__name__}.",
            hint="Check that its folder exists, may be written to and has room.",
        ) from None
