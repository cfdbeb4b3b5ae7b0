"""Every error a caller can see, as one tree.

::

    LastroError
    ├── InvalidInput            what was sent cannot be accepted as it is
    │   ├── ContentRefused      the text of a unit breaks a rule of the neutral format
    │   └── TooLarge            over a limit of size or number
    ├── Conflict                it contradicts what is stored
    ├── NotFound                it does not exist for this caller
    ├── Unauthenticated         nobody known is asking
    ├── Forbidden               known, but not allowed
    ├── Unavailable             try again later
    ├── QuotaExceeded           a limit of the tenant's is reached
    ├── DeadlineExceeded        no answer within the time allowed
    └── EngineFailure           the database engine cannot be started or used

``code`` is stable and is what programs compare. ``message`` and ``hint`` are for people; neither repeats content, a secret or
another tenant's data. ``where`` names the item and field of a batch that failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Where:
    """Which part of the input failed: position in the batch (from 0), the item's id, and the field's path."""

    index: int | None = None
    id: str | None = None
    field: str | None = None


class LastroError(Exception):
    """Root of the tree. A subclass sets ``code``, ``message`` and ``hint``; a call may refine ``message`` and say ``where``."""

    code: ClassVar[str] = "internal"
    message: str = "Something failed inside Lastro."
    hint: str = "Look in the service's log for the trace id of this answer."

    def __init__(
        self, message: str | None = None, *, hint: str | None = None, where: Where | None = None, retry_after_s: int | None = None
    ) -> None:
        if message is not None:
            self.message = message
        if hint is not None:
            self.hint = hint
        self.where = where
        self.retry_after_s = retry_after_s
        super().__init__(self.message)

    def at(self, *, index: int | None = None, id: str | None = None, field: str | None = None) -> LastroError:
        """The same error, told where in the input it happened; what was already known is kept."""
        known = self.where or Where()
        self.where = Where(
            index if index is not None else known.index,
            id if id is not None else known.id,
            field if field is not None else known.field,
        )
        return self


# --- what was sent cannot be accepted -------------------------------------------------------------------------------------------


class InvalidInput(LastroError):
    code = "invalid_input"
    message = "The input does not have the form that is asked for."
    hint = "Compare it with the JSON Schema at /v1/schema."


class InvalidJson(InvalidInput):
    code = "invalid_json"
    message = "The body is not valid JSON in UTF-8."
    hint = "Send one JSON document in UTF-8, without NaN, Infinity or lone surrogates, and not nested deeper than 100 levels."


class InvalidField(InvalidInput):
    code = "invalid_field"
    message = "A field is missing, unknown or of the wrong type."


class InvalidId(InvalidInput):
    code = "invalid_id"
    message = "An id must be 1 to 128 visible characters without spaces."
    hint = "Use letters, digits and punctuation; no spaces, control or invisible characters."


class UnknownKind(InvalidInput):
    code = "unknown_kind"
    message = "The kind of a unit is not one of the seven that exist."
    hint = "Use tool_result, decision, state_snapshot, progress_note, constraint, correction or observation."


class UnknownEdgeType(InvalidInput):
    code = "unknown_edge_type"
    message = "The edge type is not one of the four that exist."
    hint = "Use dependency, provenance, supersession or causation."


class NaiveTimestamp(InvalidInput):
    code = "naive_timestamp"
    message = "A time without an offset cannot be placed."
    hint = "Send RFC 3339 with an offset, such as 2026-03-04T08:06:07-03:00 or …Z."


class SelfEdge(InvalidInput):
    code = "self_edge"
    message = "A unit cannot have an edge to itself."
    hint = "An edge points from a unit to one that came before it; remove this relation."


class CycleInBatch(InvalidInput):
    code = "cycle_in_batch"
    message = "The edges of this batch form a cycle."
    hint = "Edges point to what came before, so they cannot lead back; check the units that are named."


class TargetNotFound(InvalidInput):
    code = "target_not_found"
    message = "A relation points to a unit that does not exist."
    hint = "Write the target first or in the same batch."


class DuplicateInBatch(InvalidInput):
    code = "duplicate_in_batch"
    message = "The same id stands twice in the batch."
    hint = "Send each unit once."


class TrustNotAllowed(InvalidInput):
    code = "trust_not_allowed"
    message = "This role may not write units of that trust level."
    hint = "Agents write agent_output or evidence_candidate; normative and approved data come from a publisher."


class LowerTrustSupersedes(InvalidInput):
    code = "lower_trust_supersedes"
    message = "A unit of lower trust cannot supersede one of higher trust."
    hint = "Record it as an observation; somebody with the higher trust level decides."


class InvalidBudget(InvalidInput):
    code = "invalid_budget"
    message = "The budget must be a whole number of tokens, 1 or more, and within the model's window."
    hint = "Set budget_tokens to what you can spare of the model's window, for example 600."


class BudgetTooSmall(InvalidInput):
    code = "budget_too_small"
    message = "The budget does not even hold the frame that every rendered answer needs."
    hint = "Raise budget_tokens, or send render=false to select units without a frame."


class UnknownModel(InvalidInput):
    code = "unknown_model"
    message = "No adapter knows this model."
    hint = "Use a model id of a family that `lastro doctor` lists, such as gpt-… or claude-…, or openai-compatible/ before any other."


class ApiNotOffered(InvalidInput):
    code = "api_not_offered"
    message = "The model's family has no API of this name."
    hint = "Leave `api` out, or use a name that `lastro doctor` lists for the family."


class QueryNotSupported(InvalidInput):
    code = "query_not_supported"
    message = "This combination of query fields cannot be answered."
    hint = "Give one of task_id (with step, if you like), unit_id or session_id."


class ImportRefused(InvalidInput):
    code = "import_refused"
    message = "The file cannot be imported."
    hint = "Check that it is what --format says; `lastro import --help` shows the formats."


class CommandRefused(InvalidInput):
    code = "command_refused"
    message = "The command cannot run as it was called."
    hint = "`--help` shows the options with examples."


class ContentRefused(InvalidInput):
    code = "content_refused"
    message = "The content of a unit is plain text or markdown."


class ContentIsHtml(ContentRefused):
    code = "content_is_html"
    message = "The content is or holds HTML."
    hint = "Send the text, or put markup that matters into a fenced code block."


class ContentIsJson(ContentRefused):
    code = "content_is_json"
    message = "The content is or holds raw JSON."
    hint = "Say it as markdown (lists, tables), put tool arguments into metadata.tool, or fence it as code."


class ContentIsBinary(ContentRefused):
    code = "content_is_binary"
    message = "The content holds binary data, control characters or a long base64 run."
    hint = "Store the original elsewhere, reference it as an attachment and describe it in words."


class NulInText(ContentRefused):
    code = "nul_in_text"
    message = "A text holds a NUL character."
    hint = "Remove U+0000."


class LoneSurrogate(ContentRefused):
    code = "lone_surrogate"
    message = "A text holds half of a surrogate pair, which is not a character."
    hint = "Send valid Unicode; the text was probably cut in the middle of an emoji."


class ContentTooDeep(ContentRefused):
    code = "content_too_deep"
    message = "The markdown nests deeper than can be checked."
    hint = "Flatten it to fewer than 96 levels."


class ContentEmpty(ContentRefused):
    code = "content_empty"
    message = "The content is empty."
    hint = "A unit says something; leave it out if there is nothing to say."


class TooLarge(InvalidInput):
    code = "too_large"
    message = "Something is over its limit."
    hint = "Send less at a time; /v1/schema and docs/settings.md name the limits."


class ContentTooLarge(TooLarge):
    code = "content_too_large"
    message = "The content of a unit is over the limit."
    hint = "Store the original as an attachment reference and write what matters of it."


class BatchTooLarge(TooLarge):
    code = "batch_too_large"
    message = "The batch holds more units than the limit."
    hint = "Split it; each batch is stored whole."


class BodyTooLarge(TooLarge):
    code = "body_too_large"
    message = "The request body is over the limit."
    hint = "Split the batch."


class AttachmentTooLarge(TooLarge):
    code = "attachment_too_large"
    message = "The original is over the limit of an attachment."
    hint = "LASTRO_MAX_ATTACHMENT_BYTES sets the limit; store larger ones elsewhere and reference them by their own uri."


class AttachmentMismatch(InvalidInput):
    code = "attachment_mismatch"
    message = "The bytes that arrived do not have the digest that they are named by."
    hint = "Nothing was stored. Send the SHA-256 of exactly these bytes, or send them again: some may have been lost on the way."


class BodyTooSlow(InvalidInput):
    code = "body_too_slow"
    message = "The request body did not arrive in time."
    hint = "Nothing was done. Send it again in one go."


# --- it contradicts what is stored ----------------------------------------------------------------------------------------------


class Conflict(LastroError):
    code = "conflict"
    message = "It contradicts what is stored."
    hint = "Read what is stored first."


class KeyNotRotatable(Conflict):
    code = "key_not_rotatable"
    message = "This key is revoked, expired or rotated already."
    hint = "`lastro keys list` shows what replaced it; rotate that one, or make a new key."


class UnitConflict(Conflict):
    code = "unit_conflict"
    message = "This id is already taken by a unit with other content."
    hint = "Units never change. Write a new unit with a supersession edge to the old one."


class ReasonMissing(InvalidInput):
    code = "reason_missing"
    message = "A grant to another place needs a reason."
    hint = "Say in `reason` why; it is kept in the audit trail."


class TooManyPolicies(Conflict):
    code = "too_many_policies"
    message = "The tenant has as many policies in force as it may have."
    hint = "Revoke some, or name more agents, teams or kinds in one."


class UnitErased(Conflict):
    code = "unit_erased"
    message = "This unit, or one of the same content, was erased here and is not taken again."
    hint = "Leave it out. An erasure is meant to last: spelling, case and white space make no difference."


class TenantBeingErased(Conflict):
    code = "tenant_being_erased"
    message = "The tenant is being erased and takes nothing any more."
    hint = "Nothing was done. `lastro erase --tenant` goes on with the erasure and shows how far it is."


# --- not for this caller --------------------------------------------------------------------------------------------------------


class NotFound(LastroError):
    code = "not_found"
    message = "There is no such thing here."
    hint = "Check the id and the scope that you ask in."


class Unauthenticated(LastroError):
    code = "unauthenticated"
    message = "The key is missing, wrong, expired or revoked."
    hint = "Send `Authorization: Bearer <key>`; `lastro keys create` makes one."


class Forbidden(LastroError):
    code = "forbidden"
    message = "This key may not do that."
    hint = "Ask an admin of your tenant for a key with the role that is needed."


class AgentMismatch(Forbidden):
    code = "agent_mismatch"
    message = "The unit names an agent, tenant or scope that is not the key's own."
    hint = "Leave these out: they come from the key. Use metadata.actor for who said it."


# --- not now --------------------------------------------------------------------------------------------------------------------


class Unavailable(LastroError):
    code = "unavailable"
    message = "The service cannot answer now."
    hint = "Try again after the time given in Retry-After."


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"
    message = "The database does not answer."
    hint = "Nothing was lost that was acknowledged. Retry; `lastro doctor` says what is wrong."


class DatabaseBusy(Unavailable):
    code = "database_busy"
    message = "Other writers held the same data for too long."
    hint = "Send the same request again: what may have been stored meanwhile is not stored twice."


class AttachmentBusy(Unavailable):
    code = "attachment_busy"
    message = "This original is just being removed."
    hint = "Nothing was stored. Send it again after the time given in Retry-After."


class AttachmentsUnavailable(Unavailable):
    code = "attachments_unavailable"
    message = "The store of attachments does not answer."
    hint = "Units and answers need no originals and go on working. Look at LASTRO_ATTACHMENTS, and at the target that it names."


class AttachmentDamaged(LastroError):
    code = "attachment_damaged"
    message = "What is stored of this original is not what was stored once: its digest is another one, or it is gone."
    hint = "Store it again under the same digest, which mends it, or restore the store of attachments from a backup."


class IssuerUnavailable(Unavailable):
    code = "issuer_unavailable"
    message = "The identity provider does not answer, so this token cannot be checked now."
    hint = "Nothing was done. Try again after the time given in Retry-After; API keys go on working."


class EmbedderUnavailable(Unavailable):
    code = "embedder_unavailable"
    message = "The embedding model cannot be used now."
    hint = "Units are found by their words meanwhile, and embedded later by themselves. `lastro doctor` says more."


class EmbedderNotInstalled(EmbedderUnavailable):
    code = "embedder_not_installed"
    message = "The embedder that LASTRO_EMBEDDER names is not installed."
    hint = "Install its extra, or set LASTRO_EMBEDDER to bundled or none."


class EmbeddingFailed(Unavailable):
    code = "embedding_failed"
    message = "The embedding model gave no usable vector for a text."
    hint = "The unit is found by its words. `lastro reembed` tries again."


class EmbedderChanged(Conflict):
    code = "embedder_changed"
    message = "The graph holds vectors of another model than the one that is set."
    hint = "Run `lastro reembed`, or set LASTRO_EMBEDDER back."


class QuotaExceeded(LastroError):
    """A limit of a quota would be passed. ``quota`` says which, for programs; it holds names and numbers of the caller's own tenant."""

    code = "quota_exceeded"
    message = "A quota of this tenant is used up."
    hint = "Nothing was done. An admin of the tenant can raise the quota; `lastro quotas list` shows them."

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        where: Where | None = None,
        retry_after_s: int | None = None,
        quota: Mapping[str, str | int] | None = None,
    ) -> None:
        super().__init__(message, hint=hint, where=where, retry_after_s=retry_after_s)
        self.quota = dict(quota or {})

    @classmethod
    def of(
        cls, subject_type: str, subject_id: str, limit: str, *, allowed: int, used: int, asked: int, resets_in_s: int | None = None
    ) -> QuotaExceeded:
        """The refusal for one limit of one subject; ``resets_in_s`` for limits of bandwidth, whose window ends."""
        remaining = max(allowed - used, 0)
        quota: dict[str, str | int] = {
            "subject_type": subject_type,
            "subject_id": subject_id,
            "limit": limit,
            "allowed": allowed,
            "used": used,
            "remaining": remaining,
            "asked": asked,
        }
        told = f"The quota of this {subject_type} for {limit} is used up: {allowed} allowed, {used} used, {remaining} remaining, {asked} asked for."
        if resets_in_s is None:
            return cls(told, quota=quota)
        hint = "Nothing was done. Try again after the time given in Retry-After, or ask an admin of the tenant for more."
        if asked > allowed:
            hint = "Nothing was done. This is more than a whole window allows: send less at a time, or ask an admin of the tenant for more."
        return cls(told, hint=hint, retry_after_s=max(resets_in_s, 1), quota=quota | {"resets_in_s": max(resets_in_s, 1)})


class DeadlineExceeded(LastroError):
    code = "deadline_exceeded"
    message = "No answer was ready within the deadline, by any strategy."
    hint = "This does not mean that nothing is known. Ask again with a larger deadline_ms."


# --- the engine -----------------------------------------------------------------------------------------------------------------


class EngineFailure(LastroError):
    code = "engine_failure"
    message = "The database engine failed."
    hint = "`lastro doctor` says what is missing."


class EngineFolderInUse(EngineFailure):
    code = "engine_folder_in_use"
    message = "Another process owns this data folder."
    hint = "Use that service (set LASTRO_URL and LASTRO_KEY), stop it, or choose another --data."


class EngineNotInstalled(EngineFailure):
    code = "engine_not_installed"
    message = "The embedded engine is not installed or has no build for this platform."
    hint = "Run on Linux x86_64/aarch64 (glibc 2.34+), macOS arm64 or Windows, or use --engine neo4j with a URI."


class EngineStartFailed(EngineFailure):
    code = "engine_start_failed"
    message = "The database engine did not start."
    hint = "Read engine.log in the data folder."


class SchemaTooNew(EngineFailure):
    code = "schema_too_new"
    message = "The database was written by a newer Lastro."
    hint = "Run that version or a later one."


class SettingsInvalid(EngineFailure):
    code = "settings_invalid"
    message = "A setting is missing or has a value that cannot be used."
    hint = "docs/settings.md lists every setting with its default."
