"""Tokens of an OIDC issuer beside API keys: who they let in, whom they do not, and what an issuer can do to the service (T6)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from api.wire import ask, ids, listed, read, refused, send, stored, write
from conftest import Service, unit
from cryptography.hazmat.primitives import serialization
from faults.serving import until
from hypothesis import given, settings, strategies
from jwt.algorithms import ECAlgorithm
from security.issuer import AUDIENCE, JWKS, Issuer, beside, certificate, part, private_key, public_jwk, trusting

from app.cli.access import Target
from app.registry.oidc import OidcTokens
from app.settings import load_settings
from graph.model.base import check_id
from graph.model.errors import SettingsInvalid, Unauthenticated

ES256 = ECAlgorithm(ECAlgorithm.SHA256)
HOUR_S = 3_600


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """An issuer of the test's own."""
    found = Issuer()
    found.start()
    yield found
    found.stop()


@pytest.fixture(scope="module")
def provider() -> Iterator[Issuer]:
    """An issuer that is well all the time."""
    found = Issuer()
    found.start()
    yield found
    found.stop()


@pytest.fixture(scope="module")
def trustful(service: Service, provider: Issuer) -> Iterator[Service]:
    """A service that accepts its tokens."""
    with beside(service, **trusting(provider)) as found:
        yield found


@pytest.fixture(scope="module")
def trusted(provider: Issuer) -> tuple[Issuer, OidcTokens]:
    """The check itself, without a service; it knows the issuer's keys."""
    tokens = OidcTokens(load_settings(**trusting(provider)))
    assert asyncio.run(tokens.verify(f"Bearer {provider.token('acme', key='ec-1')}")).tenant_id == "acme"
    return provider, tokens


@pytest.fixture
def known(service: Service, tenant: str) -> str:
    """A tenant that exists."""
    service.key(tenant)
    return tenant


def status_of(service: Service, token: str) -> int:
    with service.client(token) as client:
        return client.get("/v1/units").status_code


def unavailable(service: Service, token: str) -> None:
    with service.client(token) as client:
        answer = client.get("/v1/units")
    refused(answer, 503, "issuer_unavailable")
    assert 1 <= int(answer.headers["retry-after"]) <= 60


# --- whom a token lets in ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["rsa-1", "ec-1"])
def test_a_token_writes_and_reads_as_its_agent_and_another_tenant_sees_nothing(
    trustful: Service, service: Service, provider: Issuer, known: str, key: str
) -> None:
    neighbour = f"{known}-neighbour"
    service.key(neighbour)
    with (
        trustful.client(provider.token(known, key=key, sub="triage"), session="s") as client,
        trustful.client(provider.token(neighbour, key=key, sub="triage"), session="s") as stranger,
        service.client(service.key(known, "triage"), session="s") as colleague,
    ):
        stored(client, unit("a", "The pump is loud.", task_id="t"))
        assert read(client, "a")["owner"] == {"tenant_id": known, "agent_id": "triage", "session_id": "s", "model": None}
        assert ids(ask(client, task_id="t")["units"]) == ["a"]
        assert read(colleague, "a")["content"] == "The pump is loud.", "the same agent, with a key"
        refused(stranger.get("/v1/units/a"), 404, "not_found")
        assert listed(stranger) == []
        assert ask(stranger, task_id="t")["units"] == []
        stored(stranger, unit("a", "Another pump."))
        assert read(client, "a")["content"] == "The pump is loud."


@pytest.mark.parametrize(("role", "status"), [("admin", 201), ("publisher", 201), ("agent", 201), ("analyst", 403)])
def test_the_role_of_a_token_holds(trustful: Service, provider: Issuer, known: str, role: str, status: int) -> None:
    with trustful.client(provider.token(known, role=role)) as client:
        assert write(client, unit("a")).status_code == status
        made = send(client, "/v1/keys", {"agent_id": "worker"})
        assert made.status_code == (201 if role == "admin" else 403)
        rule = write(client, unit("rule", kind="constraint", trust="normative"))
        assert rule.status_code == (201 if role == "publisher" else 403)


def test_a_token_stays_within_what_its_claims_bind_it_to(trustful: Service, provider: Issuer, known: str) -> None:
    token = provider.token(known, organization_id="o", assessment_id="a", session_id="s")
    with trustful.client(token) as client, trustful.client(provider.token(known, role="admin")) as admin:
        stored(client, unit("inside"))
        found = read(client, "inside")
        assert found["scope"] == {"organization_id": "o", "assessment_id": "a"}
        assert found["owner"]["session_id"] == "s"
        refused(admin.get("/v1/units/inside"), 404, "not_found")
        same = {"Lastro-Organization": "o", "Lastro-Assessment": "a", "Lastro-Session": "s"}
        assert client.get("/v1/units/inside", headers=same).status_code == 200
        for name in same:
            refused(client.get("/v1/units/inside", headers={name: "other"}), 404, "not_found")
    bounded: list[dict[str, Any]] = [{"organization_id": "o"}, {"session_id": "s"}]
    for bounds in bounded:
        with trustful.client(provider.token(known, role="admin", **bounds)) as bound:
            refused(bound.get("/v1/keys"), 403, "forbidden")
            refused(bound.get("/v1/policies"), 403, "forbidden")
    with trustful.client(provider.token(known, session_id="s")) as bound:
        refused(write(bound, unit("elsewhere", session_id="other")), 403, "agent_mismatch", field="metadata.session_id")
        assert write(bound, unit("here", session_id="s")).status_code == 201


@pytest.mark.parametrize("audience", [[AUDIENCE], ["https://other.example.org", AUDIENCE]])
def test_an_audience_may_be_one_of_several(trustful: Service, provider: Issuer, known: str, audience: list[str]) -> None:
    assert status_of(trustful, provider.token(known, aud=audience)) == 200


@pytest.mark.parametrize(
    ("claims", "right"),
    [
        ({"exp": -30}, True),
        ({"exp": -75}, False),
        ({"nbf": 45}, True),
        ({"nbf": 90}, False),
        ({"iat": 45}, True),
        ({"iat": 90}, False),
        ({"exp": 30, "nbf": -30, "iat": -HOUR_S}, True),
    ],
)
def test_clocks_may_differ_by_a_minute_and_no_more(
    trustful: Service, provider: Issuer, known: str, claims: dict[str, int], right: bool
) -> None:
    now = int(time.time())
    told: dict[str, Any] = {name: now + seconds for name, seconds in claims.items()}
    token = provider.token(known, **told)
    assert status_of(trustful, token) == (200 if right else 401)


# --- whom it does not --------------------------------------------------------------------------------------------------------------


def by_hand(issuer: Issuer, tenant: str, header: object, signature: Callable[[bytes], bytes] = lambda _: b"", **more: Any) -> str:
    """A token that no library would make."""
    signed = f"{part(header)}.{part(issuer.claims(tenant, **more))}"
    return f"{signed}.{part(signature(signed.encode()))}"


def public_pem(name: str) -> bytes:
    return private_key(name).public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def swapped(token: str, **more: Any) -> str:
    """The token with other claims below the same signature."""
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    return f"{head}.{part({**claims, **more})}.{signature}"


def in_hours(hours: float) -> int:
    return int(time.time() + hours * HOUR_S)


WRONG: dict[str, Callable[[Issuer, str], str]] = {
    "another audience": lambda issuer, tenant: issuer.token(tenant, aud="https://other.example.org"),
    "no audience": lambda issuer, tenant: issuer.token(tenant, aud=None),
    "an audience that begins alike": lambda issuer, tenant: issuer.token(tenant, aud=AUDIENCE + "/other"),
    "an empty audience": lambda issuer, tenant: issuer.token(tenant, aud=[]),
    "another issuer": lambda issuer, tenant: issuer.token(tenant, iss="https://login.example.org"),
    "the issuer with a slash": lambda issuer, tenant: issuer.token(tenant, iss=issuer.url + "/"),
    "no issuer": lambda issuer, tenant: issuer.token(tenant, iss=None),
    "no algorithm, no signature": lambda issuer, tenant: by_hand(issuer, tenant, {"alg": "none", "kid": "rsa-1"}),
    "no algorithm, a signature": lambda issuer, tenant: by_hand(issuer, tenant, {"alg": "None", "kid": "rsa-1"}, lambda _: b"x" * 256),
    "the public key as a secret": lambda issuer, tenant: by_hand(
        issuer, tenant, {"alg": "HS256", "kid": "rsa-1"}, lambda signed: hmac.digest(public_pem("rsa-1"), signed, hashlib.sha256)
    ),
    "the public key as a secret, said to be RS256": lambda issuer, tenant: by_hand(
        issuer, tenant, {"alg": "RS256", "kid": "rsa-1"}, lambda signed: hmac.digest(public_pem("rsa-1"), signed, hashlib.sha256)
    ),
    "an algorithm that is not allowed": lambda issuer, tenant: issuer.token(tenant, algorithm="RS512"),
    "an algorithm of another kind of key": lambda issuer, tenant: issuer.token(tenant, key="ec-1", headers={"kid": "rsa-1"}),
    "an algorithm that is a list": lambda issuer, tenant: by_hand(issuer, tenant, {"alg": ["RS256"], "kid": "rsa-1"}),
    "expired": lambda issuer, tenant: issuer.token(tenant, exp=in_hours(-1)),
    "no expiry": lambda issuer, tenant: issuer.token(tenant, exp=None),
    "an expiry that is text": lambda issuer, tenant: issuer.token(tenant, exp=str(in_hours(1))),
    "an expiry that never comes": lambda issuer, tenant: issuer.token(tenant, exp=1e300),
    "not yet": lambda issuer, tenant: issuer.token(tenant, nbf=in_hours(1)),
    "made tomorrow": lambda issuer, tenant: issuer.token(tenant, iat=in_hours(24)),
    "no tenant": lambda issuer, tenant: issuer.token(tenant, tenant_id=None),
    "a tenant that is no id": lambda issuer, tenant: issuer.token(tenant, tenant_id=f"{tenant} x"),
    "a tenant that is a list": lambda issuer, tenant: issuer.token(tenant, tenant_id=[tenant]),
    "a tenant of the service's own": lambda issuer, _: issuer.token("lastro:warm-up"),
    "a tenant that does not exist": lambda issuer, tenant: issuer.token(f"{tenant}-nowhere"),
    "no agent": lambda issuer, tenant: issuer.token(tenant, sub=None),
    "an agent that is no id": lambda issuer, tenant: issuer.token(tenant, sub="a" * 129),
    "no role": lambda issuer, tenant: issuer.token(tenant, role=None),
    "an unknown role": lambda issuer, tenant: issuer.token(tenant, role="emperor"),
    "a role in capitals": lambda issuer, tenant: issuer.token(tenant, role="ADMIN"),
    "roles in a list": lambda issuer, tenant: issuer.token(tenant, role=["admin"]),
    "an organisation that is no id": lambda issuer, tenant: issuer.token(tenant, organization_id=""),
    "a session that is a number": lambda issuer, tenant: issuer.token(tenant, session_id=7),
    "a key of somebody else": lambda issuer, tenant: issuer.token(tenant, key="rsa-9", headers={"kid": "rsa-1"}),
    "a key that is not published": lambda issuer, tenant: issuer.token(tenant, key="rsa-9"),
    "no key id": lambda issuer, tenant: by_hand(issuer, tenant, {"alg": "RS256"}),
    "a key that it brings itself": lambda issuer, tenant: issuer.token(
        tenant, key="rsa-9", headers={"kid": "rsa-1", "jwk": public_jwk("rsa-9"), "jku": "http://127.0.0.1:9/keys"}
    ),
    "something critical": lambda issuer, tenant: by_hand(issuer, tenant, {"alg": "RS256", "kid": "rsa-1", "crit": ["b64"], "b64": False}),
    "other claims": lambda issuer, tenant: swapped(issuer.token(tenant), role="admin"),
    "a cut signature": lambda issuer, tenant: issuer.token(tenant)[:-8],
    "four parts": lambda issuer, tenant: issuer.token(tenant) + ".x",
    "empty parts": lambda _issuer, _tenant: "..",
    "a header that is no object": lambda issuer, tenant: by_hand(issuer, tenant, ["RS256"]),
    "a header that is no JSON": lambda issuer, tenant: by_hand(issuer, tenant, b"\xff\xfe"),
    "claims nested deep": lambda _issuer, _tenant: f"{part({'alg': 'RS256', 'kid': 'rsa-1'})}.{part(b'[' * 5_000)}.x",
    "a megabyte": lambda issuer, tenant: issuer.token(tenant, filler="x" * 1_000_000),
    "just over the limit": lambda issuer, tenant: issuer.token(tenant, filler="x" * 16_384),
}


@pytest.mark.parametrize("case", WRONG)
def test_whatever_is_wrong_with_a_token_the_answer_is_that_of_a_wrong_key(
    trustful: Service, provider: Issuer, known: str, case: str
) -> None:
    with trustful.client() as anybody:
        expected = refused(anybody.get("/v1/units", headers={"Authorization": "Bearer wrong"}), 401, "unauthenticated")
        header = {"Authorization": f"Bearer {WRONG[case](provider, known)}"}
        for method, path in (("GET", "/v1/units"), ("POST", "/v1/units"), ("POST", "/v1/context"), ("GET", "/v1/keys")):
            answer = anybody.request(method, path, headers=header, content=b"{")
            assert answer.headers["www-authenticate"] == 'Bearer realm="lastro"'
            assert {**refused(answer, 401, "unauthenticated"), "trace_id": ""} == {**expected, "trace_id": ""}
    assert status_of(trustful, provider.token(known)) == 200, "the service is as it was"


JSON_VALUES = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers(-(2**70), 2**70)
    | strategies.floats()
    | strategies.sampled_from(["", "agent", "admin", "acme", "lastro:x", AUDIENCE, "a b", "\ud800", "\x00", "é"])
    | strategies.text(max_size=8),
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
NAMES_OF_CLAIMS = ["exp", "nbf", "iat", "iss", "aud", "sub", "jti", "tenant_id", "role", "organization_id", "assessment_id", "session_id"]


@settings(max_examples=300, deadline=None)
@given(
    strategies.dictionaries(strategies.sampled_from(NAMES_OF_CLAIMS), JSON_VALUES, min_size=1, max_size=4), strategies.binary(max_size=12)
)
def test_no_token_of_the_issuer_itself_breaks_the_check(trusted: tuple[Issuer, OidcTokens], odd: dict[str, Any], noise: bytes) -> None:
    """Signed with its real key, whatever it says: an identity with every part checked, or the one refusal."""
    issuer, tokens = trusted
    signed = f"{part({'alg': 'ES256', 'kid': 'ec-1'})}.{part({**issuer.claims('acme'), **odd})}"
    right = f"{signed}.{part(ES256.sign(signed.encode(), cast('Any', private_key('ec-1'))))}"
    for token in (right, f"{right[:-3]}{part(noise)}", f"{part(noise)}.{right}", f"{signed}.{part(noise)}"):
        try:
            found = asyncio.run(tokens.verify(f"Bearer {token}"))
        except Unauthenticated:
            continue
        assert check_id(found.tenant_id) == found.tenant_id == odd.get("tenant_id", "acme")
        assert not found.tenant_id.startswith("lastro:")
        assert check_id(found.agent_id) == found.agent_id == odd.get("sub", "agent-1")
        assert found.role == odd.get("role", "agent")
        named = found.bound.organization_id, found.bound.assessment_id, found.session_id
        assert named == (odd.get("organization_id"), odd.get("assessment_id"), odd.get("session_id"))


def test_a_service_without_an_issuer_takes_no_token(service: Service, provider: Issuer, known: str) -> None:
    asked = len(provider.asked)
    assert status_of(service, provider.token(known)) == 401
    assert len(provider.asked) == asked


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("weak-1", {}),
        ("rsa-1", {"use": "enc"}),
        ("rsa-1", {"key_ops": ["sign"]}),
        ("rsa-1", {"key_ops": 7}),
        ("rsa-1", {"alg": "RS512"}),
        ("rsa-1", {"kty": "oct", "k": part(b"x" * 32)}),
        ("rsa-1", {"n": "!"}),
        ("rsa-1", {"kid": 1}),
        ("ec-1", {"crv": "P-384"}),
        ("ec-1", {"x": part(b"x" * 32)}),
    ],
)
def test_a_key_that_is_not_for_this_is_not_taken(service: Service, issuer: Issuer, known: str, name: str, changes: dict[str, Any]) -> None:
    issuer.published, issuer.changes = [name], changes
    with beside(service, **trusting(issuer)) as found:
        assert status_of(found, issuer.token(known, key=name)) == 401
        assert issuer.fetches >= 1


# --- tenants that do not exist yet --------------------------------------------------------------------------------------------------


def test_a_new_tenant_is_made_by_its_first_write_where_that_is_allowed(service: Service, issuer: Issuer, tenant: str) -> None:
    token = issuer.token(tenant)
    with beside(service, **trusting(issuer)) as strict:
        assert status_of(strict, token) == 401
        with strict.client(token) as client:
            refused(write(client, unit("a")), 401, "unauthenticated")
        with beside(service, **trusting(issuer, oidc_create_tenants=True)) as open_handed:
            with open_handed.client(token) as client:
                assert listed(client) == []
                refused(client.get("/v1/units/a"), 404, "not_found")
                assert ask(client, task_id="t")["units"] == []
                assert status_of(strict, token) == 401, "reading makes no tenant"
                with ThreadPoolExecutor(4) as pool:
                    answers = list(pool.map(partial(write, client), [unit(f"u-{n}") for n in range(8)]))
                assert [answer.status_code for answer in answers] == [201] * 8
                assert len(listed(client)) == 8
            with open_handed.client(issuer.token(f"{tenant}-other")) as stranger:
                assert listed(stranger) == []
        assert status_of(strict, token) == 200, "now it exists"


# --- the issuer's keys ---------------------------------------------------------------------------------------------------------------


def test_a_new_key_works_within_one_request_and_a_withdrawn_one_stops(service: Service, issuer: Issuer, known: str) -> None:
    with beside(service, **trusting(issuer, oidc_keys_refresh_s=1, oidc_refetch_s=0.1)) as found:
        old, new = issuer.token(known, key="rsa-1"), issuer.token(known, key="rsa-2")
        assert status_of(found, old) == 200
        assert status_of(found, new) == 401
        issuer.published = ["rsa-2", "rsa-1"]
        time.sleep(0.15)
        assert status_of(found, new) == 200
        assert status_of(found, old) == 200
        issuer.published = ["rsa-2"]
        time.sleep(2.1)
        assert status_of(found, old) == 401
        assert status_of(found, new) == 200
        issuer.published = []
        time.sleep(2.1)
        assert status_of(found, new) == 401


def test_unknown_keys_and_many_callers_cause_no_storm(service: Service, issuer: Issuer, known: str) -> None:
    with beside(service, **trusting(issuer, oidc_refetch_s=30)) as found, ThreadPoolExecutor(16) as pool:
        token = issuer.token(known)
        assert set(pool.map(partial(status_of, found), [token] * 32)) == {200}
        assert issuer.fetches == 1
        invented = [issuer.token(known, key="rsa-9", headers={"kid": f"invented-{n}"}) for n in range(32)]
        assert set(pool.map(partial(status_of, found), invented)) == {401}
        assert issuer.fetches == 2, "one for all that is not known"
        assert status_of(found, issuer.token(known, aud="other")) == 401
        assert status_of(found, issuer.token(known, exp=in_hours(-1), headers={"kid": "other"})) == 401
        assert issuer.fetches == 2, "what is refused anyway asks for nothing"
        assert issuer.asked.count(JWKS) * 2 == len(issuer.asked)


def test_an_issuer_that_is_down_at_the_start_stops_nothing_else(service: Service, issuer: Issuer, known: str) -> None:
    issuer.stop()
    with beside(service, **trusting(issuer, oidc_refetch_s=0.3)) as found:
        token = issuer.token(known)
        unavailable(found, token)
        assert status_of(found, service.key(known)) == 200
        assert status_of(found, issuer.token(known, aud="other")) == 401, "wrong, whatever the issuer would say"
        issuer.start()
        time.sleep(0.35)
        assert status_of(found, token) == 200


def test_known_keys_outlive_the_issuer_until_the_limit(service: Service, issuer: Issuer, known: str) -> None:
    with beside(service, **trusting(issuer, oidc_keys_refresh_s=1, oidc_keys_usable_s=4, oidc_refetch_s=0.2)) as found:
        token, unknown = issuer.token(known), issuer.token(known, key="rsa-2")
        assert status_of(found, token) == 200
        began = time.monotonic()
        issuer.stop()
        unavailable(found, unknown)
        while time.monotonic() - began < 3:
            assert status_of(found, token) == 200
            assert status_of(found, swapped(token, role="admin")) == 401
            unavailable(found, unknown)
            time.sleep(0.3)
        time.sleep(max(0.0, 4.1 - (time.monotonic() - began)))
        unavailable(found, token)
        assert status_of(found, service.key(known)) == 200
        issuer.published.append("rsa-2")
        issuer.start()
        time.sleep(0.3)
        assert status_of(found, token) == status_of(found, unknown) == 200


@pytest.mark.parametrize("mood", ["slow", "rubbish", "a list", "no keys", "failing", "moved", "compressed", "huge"])
def test_an_issuer_that_answers_badly_costs_seconds_and_no_more(service: Service, issuer: Issuer, known: str, mood: str) -> None:
    issuer.mood = mood
    with beside(service, **trusting(issuer, oidc_keys_refresh_s=1, oidc_refetch_s=0.2)) as found:
        token = issuer.token(known)
        began = time.monotonic()
        unavailable(found, token)
        assert time.monotonic() - began < 8
        with found.client() as anybody:
            assert anybody.get("/healthz").status_code == 200
        issuer.mood = "well"
        time.sleep(0.25)
        assert status_of(found, token) == 200
        issuer.mood = mood
        time.sleep(1.1)
        for _ in range(5):
            began = time.monotonic()
            assert status_of(found, token) == 200
            assert time.monotonic() - began < 2, "known keys do not wait for it"
            time.sleep(0.25)


def test_a_slow_issuer_takes_no_places_from_those_with_a_key(service: Service, issuer: Issuer, known: str) -> None:
    issuer.mood = "slow"
    with beside(service, **trusting(issuer, max_concurrent_requests=8)) as found, ThreadPoolExecutor(7) as pool:
        key, token = service.key(known), issuer.token(known)
        waiting = [pool.submit(status_of, found, token) for _ in range(7)]
        until(lambda: sum(asked.done() for asked in waiting) == 3, 4, "half of the places wait, and no more")
        assert status_of(found, key) == 200
        assert sum(asked.done() for asked in waiting) == 3
        assert [asked.result() for asked in waiting] == [503] * 7


@pytest.mark.parametrize(
    "told",
    [
        {"issuer": "https://login.example.org"},
        {"issuer": None},
        {"jwks_uri": "http://keys.example.org/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": 7},
        {"jwks_uri": "https://"},
    ],
)
def test_a_discovery_document_that_leads_elsewhere_is_not_followed(
    service: Service, issuer: Issuer, known: str, told: dict[str, Any]
) -> None:
    issuer.overrides = told
    with beside(service, **trusting(issuer)) as found:
        unavailable(found, issuer.token(known))
        assert issuer.fetches == 0


def test_an_issuer_over_https_is_known_by_who_vouches_for_it(service: Service, known: str, tmp_path: Path) -> None:
    context, trusted = certificate(tmp_path)
    issuer = Issuer(tls=context)
    issuer.start()
    try:
        with beside(service, oidc_issuer=issuer.url, oidc_audience=AUDIENCE) as found:
            unavailable(found, issuer.token(known))
        with beside(service, oidc_issuer=issuer.url, oidc_audience=AUDIENCE, oidc_ca_file=trusted) as found:
            assert status_of(found, issuer.token(known)) == 200
    finally:
        issuer.stop()


# --- settings, and what OIDC costs who does not use it --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({"oidc_issuer": "http://login.example.org", "oidc_audience": "a"}, "LASTRO_OIDC_ISSUER"),
        ({"oidc_issuer": "http://login.example.org", "oidc_audience": "a", "oidc_allow_http": True}, "LASTRO_OIDC_ISSUER"),
        ({"oidc_issuer": "http://127.0.0.1:8080", "oidc_audience": "a"}, "LASTRO_OIDC_ISSUER"),
        ({"oidc_issuer": "ftp://login.example.org", "oidc_audience": "a"}, "LASTRO_OIDC_ISSUER"),
        ({"oidc_issuer": "https://user:secret@login.example.org", "oidc_audience": "a"}, "LASTRO_OIDC_ISSUER"),
        ({"oidc_issuer": "login.example.org", "oidc_audience": "a"}, "LASTRO_OIDC_ISSUER"),
        ({"oidc_issuer": "https://login.example.org"}, "LASTRO_OIDC_AUDIENCE"),
        ({"oidc_issuer": "https://login.example.org", "oidc_audience": ""}, "LASTRO_OIDC_AUDIENCE"),
        ({"oidc_algorithms": "none"}, "LASTRO_OIDC_ALGORITHMS"),
        ({"oidc_algorithms": "RS256,HS256"}, "LASTRO_OIDC_ALGORITHMS"),
        ({"oidc_algorithms": ""}, "LASTRO_OIDC_ALGORITHMS"),
        ({"oidc_clock_skew_s": 3_600}, "LASTRO_OIDC_CLOCK_SKEW_S"),
        ({"oidc_tenant_claim": ""}, "LASTRO_OIDC_TENANT_CLAIM"),
        ({"oidc_ca_file": "/nowhere/issuer.pem"}, "LASTRO_OIDC_CA_FILE"),
    ],
)
def test_settings_that_would_open_the_door_stop_the_start(told: dict[str, object], named: str) -> None:
    with pytest.raises(SettingsInvalid, match=named) as refusal:
        load_settings(**told)
    assert "example.org" not in refusal.value.message


def test_nothing_is_loaded_for_oidc_where_no_issuer_is_set() -> None:
    script = (
        "import sys, app.api.server, app.cli.main; print([name for name in sys.modules if name.split('.')[0] in {'jwt', 'cryptography'}])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"


def test_two_tokens_never_share_the_checkpoint_of_an_import() -> None:
    header = part({"alg": "RS256", "kid": "rsa-1"})
    names = {Target(url="http://127.0.0.1:9", key=f"{header}.{part({'tenant_id': name})}.x").name for name in ("acme", "globex")}
    assert len(names) == 2
    assert not any(header in name for name in names)
    assert Target(url="http://127.0.0.1:9", key="lastro_0123456789abcdef_secret").name == "http://127.0.0.1:9 lastro_0123456789abcdef"


def test_a_revoked_key_stops_on_every_replica_within_a_second(service: Service, tenant: str) -> None:
    key = service.key(tenant)
    with beside(service) as other, service.client(key) as here, other.client(key) as there:
        stored(here, unit("a"))
        assert there.get("/v1/units/a").status_code == here.get("/v1/units/a").status_code == 200
        service.run(service.lastro.registry.revoke_key(service.lastro.registry.local(tenant, "operator"), key.split("_")[1]))
        began = time.monotonic()
        answers = {here.get("/v1/units/a").status_code, there.get("/v1/units/a").status_code}
        assert time.monotonic() - began < 1
        assert answers == {401}
