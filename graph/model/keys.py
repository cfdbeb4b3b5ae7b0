"""API keys on the wire: what is asked for, and what is told. The whole key appears once, in the answer to its creation."""

from __future__ import annotations

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from graph.model.base import Id, Model, Timestamp
from graph.model.scope import Role
from graph.model.units import Scope

DAY_S = 86_400
MOST_OVERLAP_S = 90 * DAY_S


class KeyRequest(Model):
    """The body of ``POST /v1/keys``."""

    agent_id: Id
    role: Role = Role.AGENT
    expires_at: Timestamp | None = Field(default=None, description="When it stops working; never when left out.")
    bound: Scope = Field(default_factory=Scope, description="Organisation and assessment that it is kept within.")

    @model_validator(mode="after")
    def _place_is_whole(self) -> KeyRequest:
        if self.bound.assessment_id is not None and self.bound.organization_id is None:
            raise PydanticCustomError("invalid_field", "an assessment is one of an organisation")
        return self


class RotationRequest(Model):
    """The body of ``POST /v1/keys/{id}/rotate``."""

    overlap_s: int = Field(
        default=DAY_S,
        ge=0,
        le=MOST_OVERLAP_S,
        description="Seconds that the old key goes on working beside the new one; 0 ends it at once.",
    )
    expires_at: Timestamp | None = Field(
        default=None, description="When the new key stops working; left out, it holds for as long as the old one was made for."
    )


class KeyView(Model):
    """A key without anything that could be used as one."""

    id: str
    tenant_id: str
    agent_id: str
    role: Role
    organization_id: str | None
    assessment_id: str | None
    expires_at: Timestamp | None
    state: str = Field(description="active, expired or revoked.")
    replaced_by: str | None = Field(default=None, description="Id of the key that it was rotated into.")


class CreatedKey(KeyView):
    """A key just made, with its text: the only time it is shown."""

    key: str = Field(repr=False)


class KeyList(Model):
    """A tenant's keys, newest first."""

    keys: list[KeyView]
