"""Keys over HTTP, for admins of a tenant: an embedded store belongs to its service, so keys are managed through it while it runs."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from app.api.documentation import body_of
from app.api.routes import as_json, body, id_of, lastro_of, scope_of
from app.registry.key_operations import RegistryKeys
from app.registry.permissions import Action
from graph.model.base import parse
from graph.model.keys import CreatedKey, KeyList, KeyRequest, RotationRequest

keys = APIRouter(prefix="/v1/keys", tags=["keys"])


@keys.post("", status_code=201, response_model=CreatedKey, openapi_extra=body_of(KeyRequest))
async def create_key(request: Request) -> Response:
    """Make a key of the caller's tenant. Its text is shown this once and stored as a hash."""
    door = RegistryKeys(lastro_of(request).registry, await scope_of(request, Action.MANAGE_KEYS))
    answer = as_json(await door.create_key(parse(KeyRequest, await body(request))), status=201)
    answer.headers["Cache-Control"] = "no-store"
    return answer


@keys.get("", response_model=KeyList)
async def list_keys(request: Request) -> Response:
    """The tenant's keys, newest first, without their secrets."""
    return as_json(await RegistryKeys(lastro_of(request).registry, await scope_of(request, Action.MANAGE_KEYS)).list_keys())


@keys.post("/{key_id}/rotate", status_code=201, response_model=CreatedKey, openapi_extra=body_of(RotationRequest))
async def rotate_key(request: Request, key_id: str) -> Response:
    """Make a key with the same agent, role and bounds, and let this one end after the overlap. The new text is shown this once."""
    scope = await scope_of(request, Action.MANAGE_KEYS)
    door = RegistryKeys(lastro_of(request).registry, scope)
    answer = as_json(await door.rotate_key(id_of(key_id, "key_id"), parse(RotationRequest, await body(request))), status=201)
    answer.headers["Cache-Control"] = "no-store"
    return answer


@keys.delete("/{key_id}", status_code=204)
async def revoke_key(request: Request, key_id: str) -> Response:
    """Revoke a key. It stops working at once, on every replica."""
    scope = await scope_of(request, Action.MANAGE_KEYS)
    await RegistryKeys(lastro_of(request).registry, scope).revoke_key(id_of(key_id, "key_id"))
    return Response(status_code=204)
