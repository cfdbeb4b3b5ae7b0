"""From the codes of the error tree to HTTP answers (RFC 9457). One table; a test fails when a code is missing."""

from __future__ import annotations

import orjson
from fastapi import Request, Response

from graph.model.errors import LastroError, QuotaExceeded

STATUS: dict[str, int] = {
    "internal": 500,
    # 400: the body cannot be read at all; 413: it is too much; 422: it can be read and is not acceptable.
    "invalid_json": 400,
    "body_too_large": 413,
    "body_too_slow": 408,
    "batch_too_large": 413,
    "content_too_large": 413,
    "too_large": 413,
    "invalid_input": 422,
    "invalid_field": 422,
    "invalid_id": 422,
    "unknown_kind": 422,
    "unknown_edge_type": 422,
    "naive_timestamp": 422,
    "self_edge": 422,
    "cycle_in_batch": 422,
    "target_not_found": 422,
    "duplicate_in_batch": 422,
    "trust_not_allowed": 403,
    "lower_trust_supersedes": 422,
    "invalid_budget": 422,
    "budget_too_small": 422,
    "unknown_model": 422,
    "api_not_offered": 422,
    "query_not_supported": 422,
    "import_refused": 422,
    "command_refused": 422,
    "content_refused": 422,
    "content_is_html": 422,
    "content_is_json": 422,
    "content_is_binary": 422,
    "nul_in_text": 422,
    "lone_surrogate": 422,
    "content_too_deep": 422,
    "content_empty": 422,
    "conflict": 409,
    "unit_conflict": 409,
    "unit_erased": 409,
    "tenant_being_erased": 409,
    "key_not_rotatable": 409,
    "too_many_policies": 409,
    "reason_missing": 422,
    "not_found": 404,
    "method_not_allowed": 405,
    "unauthenticated": 401,
    "forbidden": 403,
    "agent_mismatch": 403,
    "unavailable": 503,
    "overloaded": 503,
    "database_unavailable": 503,
    "issuer_unavailable": 503,
    "attachment_busy": 503,
    "attachments_unavailable": 503,
    "attachment_damaged": 500,
    "attachment_too_large": 413,
    "attachment_mismatch": 422,
    "embedder_unavailable": 503,
    "embedder_hangs": 503,
    "embedder_not_installed": 503,
    "embedding_failed": 503,
    "embedder_changed": 409,
    "database_busy": 503,
    # Also for storage: what helps is in the hint, and clients know this status.
    "quota_exceeded": 429,
    "deadline_exceeded": 504,
    "engine_failure": 503,
    "engine_folder_in_use": 503,
    "engine_not_installed": 503,
    "engine_start_failed": 503,
    "start_failed": 503,
    "schema_too_new": 503,
    "settings_invalid": 500,
    "statement_failed": 500,
}

CONTENT_TYPE = "application/problem+json"


def problem(error: LastroError, trace_id: str) -> Response:
    """An error as problem+json. ``where`` names the item of a batch by position, id and field."""
    status = STATUS[error.code]
    body: dict[str, object] = {
        "type": f"urn:lastro:problem:{error.code}",
        "title": error.message,
        "status": status,
        "code": error.code,
        "hint": error.hint,
        "trace_id": trace_id,
    }
    if error.where is not None:
        where = {"index": error.where.index, "id": error.where.id, "field": error.where.field}
        body["where"] = {name: value for name, value in where.items() if value is not None}
    if isinstance(error, QuotaExceeded):
        body["quota"] = error.quota
    headers = {"Lastro-Trace": trace_id}
    if status == 503:  # noqa: PLR2004 (Service Unavailable)
        headers["Retry-After"] = str(error.retry_after_s or 2)
    elif error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if status == 401:  # noqa: PLR2004 (Unauthorized)
        headers["WWW-Authenticate"] = 'Bearer realm="lastro"'
    return Response(orjson.dumps(body), status_code=status, media_type=CONTENT_TYPE, headers=headers)


def trace_of(request: Request) -> str:
    """The request's trace id, set by the outermost middleware."""
    return str(request.scope["lastro.trace_id"])
