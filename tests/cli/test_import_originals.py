"""What an imported transcript holds as bytes goes to the attachment store, and only who may see its units reads it (A8, U14)."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
from pathlib import Path

import pytest
from cli.command_line import lastro
from conftest import Service

from adapters.importers.spoken import NOTE_MEDIA_TYPE
from app.importing import MODEL_LEFT_OUT

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
DIGEST = hashlib.sha256(PICTURE).hexdigest()


def run(tmp_path: Path) -> Path:
    address = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
    told = [
        {"role": "user", "content": [{"type": "text", "text": "What is on it?"}, {"type": "image_url", "image_url": {"url": address}}]},
        {"role": "assistant", "content": "A ferry."},
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"messages": told}))
    return path


def test_the_picture_of_a_run_can_be_read_again(service: Service, tenant: str, other_tenant: str, tmp_path: Path) -> None:
    remote = {"LASTRO_URL": service.url, "LASTRO_KEY": service.key(tenant), "LASTRO_DATA": str(tmp_path / "checkpoints")}
    first, again = (json.loads(lastro("import", str(run(tmp_path)), "--json", **remote).stdout) for _ in range(2))
    assert (first["originals"], again["originals"]) == (1, 1)
    assert again["written"] == 0, "the second import changes nothing"
    with service.client(service.key(tenant)) as client, service.client(service.key(other_tenant)) as stranger:
        (named,) = [each for unit in client.get("/v1/units").json()["units"] for each in unit["attachments"]]
        assert (named["sha256"], named["media_type"]) == (DIGEST, "image/png")
        assert client.get(f"/v1/attachments/{DIGEST}").content == PICTURE
        assert stranger.get(f"/v1/attachments/{DIGEST}").status_code == 404
    told = lastro("import", str(run(tmp_path)), **remote).stdout
    assert "1 batch (" in told
    assert "1 file in the attachment store" in told
    file = tmp_path / "file"
    file.touch()
    for out in (tmp_path / "no" / "x", file / "x", tmp_path / ("x" * 255)):
        done = lastro("attachments", "get", DIGEST, "--out", str(out), "--json", **remote)
        assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "command_refused")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.cli.attachments._write_all", _full)
        done = lastro("attachments", "get", DIGEST, "--out", str(tmp_path / "x"), "--json", **remote)
    assert (done.returncode, "No space left" in done.stdout) == (2, True)
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "file"}, "nothing is left of it"
    whole = lastro("attachments", "get", DIGEST, "--out", str(tmp_path / "x"), **remote)
    assert (whole.returncode, (tmp_path / "x").read_bytes()) == (0, PICTURE)


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_part_of_a_digest_is_refused_with_what_is_missing() -> None:
    done = lastro("attachments", "get", DIGEST[:6], "--out", "x", "--json", LASTRO_URL="http://127.0.0.1:9", LASTRO_KEY="k")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"], "64 hex digits" in error["title"], "schema" in error["hint"]) == (
        2,
        "invalid_field",
        True,
        False,
    )


@pytest.mark.parametrize("model", ["mod\u00e8le", "m\n\x00\ud800", "m" * 10_000])
def test_an_odd_model_and_an_odd_media_type_are_no_obstacle(service: Service, tenant: str, tmp_path: Path, model: str) -> None:
    source = {"type": "base64", "media_type": f"image/{'x' * 100}", "data": "AAAA"}
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"model": model, "messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]}))
    remote = {"LASTRO_URL": service.url, "LASTRO_KEY": service.key(tenant), "LASTRO_DATA": str(tmp_path / "checkpoints")}
    far, near = (json.loads(lastro("import", str(path), "--json", **place).stdout) for place in (remote, {"LASTRO_DATA": str(tmp_path)}))
    assert far["originals"] == near["originals"] == 1
    assert far["notes"] == near["notes"]
    assert {MODEL_LEFT_OUT, NOTE_MEDIA_TYPE} <= far["notes"].keys()


def test_on_the_store_itself(tmp_path: Path) -> None:
    place = {"LASTRO_DATA": str(tmp_path / "data")}
    assert json.loads(lastro("import", str(run(tmp_path)), "--json", **place).stdout)["originals"] == 1
    out = tmp_path / "again.png"
    assert lastro("attachments", "get", DIGEST, "--out", str(out), **place).returncode == 0
    assert out.read_bytes() == PICTURE
