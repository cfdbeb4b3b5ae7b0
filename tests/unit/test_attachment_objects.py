"""U14: where the bytes of originals lie: names that no id can bend, files that are whole or not there, and the same on a target of fsspec."""

from __future__ import annotations

import os
import stat
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from app.attachments import objects as module
from app.attachments.objects import INCOMING, FolderObjects, FsspecObjects, Objects, objects_of
from graph.model.attachments import check_digest, check_media_type, object_key, tenant_folder
from graph.model.errors import AttachmentsUnavailable, InvalidField, SettingsInvalid
from graph.model.units import Scope

SHA = "0" * 64
ODD = [
    "..",
    ".",
    "/",
    "a/../../b",
    "A",
    "a",
    "con",
    "x" * 128,
    "é",
    "e\u0301",
    "\u202ea",
    "~",
    "-",
    "t-",
    "a~b",
    "%2e%2e",
    "a\\b",
    "C:",
    "nul",
]


def folder(path: Path) -> Objects:
    return FolderObjects(path / "store")


def memory(path: Path) -> Objects:
    return FsspecObjects(f"memory://{uuid.uuid4().hex}/prefix", path / "spool")


KINDS = [pytest.param(folder, id="folder"), pytest.param(memory, id="fsspec")]


def put(objects: Objects, key: str, *pieces: bytes) -> None:
    with objects.incoming() as incoming:
        for piece in pieces:
            incoming.write(piece)
        objects.put(incoming, key)


def read(objects: Objects, key: str) -> bytes | None:
    file = objects.open(key)
    if file is None:
        return None
    with file:
        return file.read()


def test_no_id_makes_another_path_and_no_two_ids_the_same() -> None:
    keys = [
        object_key(tenant, Scope.model_construct(organization_id=other, assessment_id=None), SHA)
        for tenant in ODD
        for other in [*ODD, None]
    ]
    assert len({key.lower() for key in keys}) == len(keys)
    for key in keys:
        parts = key.split("/")
        assert len(parts) == 4
        assert parts[0].startswith(("t-", "t~"))
        assert parts[3] == SHA
        assert all(part not in {"", ".", ".."} and len(part) <= 102 and part.isascii() and "\\" not in part for part in parts)
    assert object_key("acme", Scope(organization_id="org", assessment_id="a-1"), SHA) == f"t-acme/o-org/a-a-1/{SHA}"
    assert object_key("acme", Scope(), SHA) == f"t-acme/o/a/{SHA}"
    assert object_key("acme", Scope(organization_id="o"), SHA) != object_key("acme", Scope(), SHA)
    assert object_key("acme", Scope(), SHA).startswith(tenant_folder("acme") + "/")
    assert INCOMING not in {tenant_folder(tenant) for tenant in [*ODD, INCOMING]}


@pytest.mark.parametrize("wrong", ["", "0" * 63, "0" * 65, "A" * 64, "g" * 64, "../" + "0" * 61, "0" * 63 + "\n"])
def test_what_is_no_digest_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidField):
        check_digest(wrong)


def test_a_media_type_is_one_or_refused() -> None:
    assert check_media_type("Text/HTML; charset=utf-8") == "text/html"
    assert check_media_type(None) == check_media_type("") == "application/octet-stream"
    for wrong in ("html", "text/", "/html", "text/html/x", "text/ht ml", "text/html\r\nX: y", "text/é", "a" * 65 + "/b"):
        with pytest.raises(InvalidField):
            check_media_type(wrong)


@pytest.mark.parametrize("make", KINDS)
def test_what_is_put_is_there_until_it_is_removed(tmp_path: Path, make: Callable[[Path], Objects]) -> None:
    objects = make(tmp_path)
    key, other = object_key("acme", Scope(), SHA), object_key("acme", Scope(organization_id="o"), SHA)
    assert read(objects, key) is None
    put(objects, key, b"one ", b"two")
    put(objects, other, b"")
    assert (read(objects, key), read(objects, other)) == (b"one two", b"")
    put(objects, key, b"mended")
    assert read(objects, key) == b"mended"
    objects.remove(key)
    objects.remove(key)
    assert (read(objects, key), read(objects, other)) == (None, b"")


@pytest.mark.parametrize("make", KINDS)
def test_a_tenant_goes_whole_and_its_neighbour_stays(tmp_path: Path, make: Callable[[Path], Objects]) -> None:
    objects = make(tmp_path)
    names = ["acme", "acme2", "acm"]
    for name in names:
        for place in (Scope(), Scope(organization_id="o", assessment_id="a")):
            put(objects, object_key(name, place, SHA), name.encode())
    objects.remove_all(tenant_folder("acme"))
    objects.remove_all(tenant_folder("acme"))
    objects.remove_all(tenant_folder("never"))
    assert [read(objects, object_key(name, Scope(), SHA)) for name in names] == [None, b"acme2", b"acm"]
    assert read(objects, object_key("acme", Scope(organization_id="o", assessment_id="a"), SHA)) is None


@pytest.mark.parametrize("make", KINDS)
def test_what_breaks_off_leaves_nothing(tmp_path: Path, make: Callable[[Path], Objects]) -> None:
    objects = make(tmp_path)

    def breaks_off() -> None:
        with objects.incoming() as incoming:
            incoming.write(b"half")
            raise ConnectionError("the caller left")

    with pytest.raises(ConnectionError, match="the caller left"):
        breaks_off()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("make", KINDS)
def test_what_a_crash_left_behind_is_tidied_after_a_day(tmp_path: Path, make: Callable[[Path], Objects]) -> None:
    objects = make(tmp_path)
    objects.tidy()
    put(objects, object_key("acme", Scope(), SHA), b"x")
    arriving = next(path for path in tmp_path.rglob(INCOMING))
    old, new = arriving / "old", arriving / "new"
    for path in (old, new):
        path.write_bytes(b"half")
    long_ago = time.time() - 2 * 86_400
    os.utime(old, (long_ago, long_ago))
    objects.tidy()
    assert (old.exists(), new.exists()) == (False, True)
    assert read(objects, object_key("acme", Scope(), SHA)) == b"x"


@pytest.mark.skipif(sys.platform == "win32", reason="no modes there")
def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        put(folder(tmp_path), object_key("acme", Scope(organization_id="o"), SHA), b"x")
    finally:
        os.umask(before)
    found = {path.relative_to(tmp_path).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert {mode for name, mode in found.items() if name.endswith(SHA)} == {0o600}
    assert {mode for name, mode in found.items() if not name.endswith(SHA)} == {0o700}


def test_bytes_are_on_the_disk_before_their_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this order, or a crash leaves a name without its bytes: the file, then the rename, then the folder."""
    done: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def noted_fsync(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def noted_replace(self: Path, target: Path) -> Path:
        done.append("rename")
        return replace(self, target)

    objects = folder(tmp_path)
    put(objects, object_key("acme", Scope(), SHA), b"x")
    monkeypatch.setattr(module.os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    put(objects, object_key("acme", Scope(), "1" * 64), b"x")
    assert done == ["file", "rename", "folder"]


def test_one_that_is_being_read_is_read_to_its_end_though_it_is_removed(tmp_path: Path) -> None:
    for objects in (folder(tmp_path), memory(tmp_path)):
        key = object_key("acme", Scope(), SHA)
        put(objects, key, b"whole")
        file = objects.open(key)
        assert file is not None
        with file:
            objects.remove(key)
            assert file.read() == b"whole"


def test_a_store_that_cannot_be_written_says_so_without_its_path(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where the folder should be")
    with pytest.raises(AttachmentsUnavailable) as failed, folder(tmp_path).incoming():
        pass
    assert str(tmp_path) not in str(failed.value)


def test_the_setting_names_a_folder_or_a_target(tmp_path: Path) -> None:
    for told, expected in (
        (None, tmp_path / "attachments"),
        (str(tmp_path / "other"), tmp_path / "other"),
        (f"file://{tmp_path}/third", tmp_path / "third"),
    ):
        made = objects_of(told, tmp_path)()
        assert isinstance(made, FolderObjects)
        put(made, object_key("acme", Scope(), SHA), b"x")
        assert (expected / object_key("acme", Scope(), SHA)).read_bytes() == b"x"
    assert isinstance(objects_of("memory://somewhere", tmp_path)(), FsspecObjects)
    later = objects_of("no-such-protocol://bucket/secret-name", tmp_path)
    with pytest.raises(SettingsInvalid) as failed:
        later()
    assert "secret-name" not in f"{failed.value} {failed.value.hint}"
