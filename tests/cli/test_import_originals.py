"""What an imported transcript holds as bytes goes to the attachment store, and only who may see its units reads it (A8, U14)."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

from cli.command_line import lastro
from conftest import Service

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


def test_on_the_store_itself(tmp_path: Path) -> None:
    place = {"LASTRO_DATA": str(tmp_path / "data")}
    assert json.loads(lastro("import", str(run(tmp_path)), "--json", **place).stdout)["originals"] == 1
    out = tmp_path / "again.png"
    assert lastro("attachments", "get", DIGEST, "--out", str(out), **place).returncode == 0
    assert out.read_bytes() == PICTURE
