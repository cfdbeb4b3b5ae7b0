"""A small identity provider on this machine, with real keys, that can be slow, wrong, huge and away."""

from __future__ import annotations

import base64
import gzip
import json
import ssl
import threading
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import jwt
from conftest import Service, serve_in_thread
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from app.bootstrap import running
from app.settings import load_settings
from graph.engines.neo4j import GivenNeo4j

AUDIENCE = "https://lastro.example.org"
DISCOVERY = "/.well-known/openid-configuration"
JWKS = "/keys"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def private_key(name: str) -> PrivateKey:
    """A key of this name; ``rsa-…`` or ``ec-…``, ``weak-…`` for one that is too short."""
    if name.startswith("ec-"):
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(65_537, 1_024 if name.startswith("weak-") else 2_048)


def public_jwk(name: str) -> dict[str, Any]:
    """The key as an issuer publishes it."""
    key = private_key(name).public_key()
    told = ECAlgorithm.to_jwk(key, as_dict=True) if isinstance(key, ec.EllipticCurvePublicKey) else RSAAlgorithm.to_jwk(key, as_dict=True)
    return {**told, "kid": name, "use": "sig"}


def part(told: object) -> str:
    """A part of a compact token."""
    return base64.urlsafe_b64encode(told if isinstance(told, bytes) else json.dumps(told).encode()).rstrip(b"=").decode()


@dataclass
class Issuer:
    """Who makes tokens. ``published`` names its keys; ``mood`` is how it answers."""

    published: list[str] = field(default_factory=lambda: ["rsa-1", "ec-1"])
    mood: str = "well"
    asked: list[str] = field(default_factory=list[str])
    tls: ssl.SSLContext | None = None
    port: int = 0
    overrides: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of the discovery document."""
    changes: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of each key as it is published."""
    _server: ThreadingHTTPServer | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self.port}"

    @property
    def fetches(self) -> int:
        """How often its keys were asked for."""
        return self.asked.count(JWKS)

    def start(self) -> None:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                issuer.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A caller that hangs up is what some tests are about."""

        self._server = Server(("127.0.0.1", self.port), Handler)
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """As its mood is."""
        status, headers, body = self._told(request.path)
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        if self.mood != "huge":
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if self.mood == "slow":
            for byte in body:
                request.wfile.write(bytes([byte]))
                time.sleep(0.2)
        elif self.mood == "huge":
            for _ in range(16_384):  # 1 GB
                request.wfile.write(b" " * 65_536)
        else:
            request.wfile.write(body)

    def _told(self, path: str) -> tuple[int, dict[str, str], bytes]:
        told: dict[str, Any] = {"issuer": self.url, "jwks_uri": self.url + JWKS, **self.overrides}
        if path == JWKS:
            told = {"keys": "soon" if self.mood == "no keys" else [{**public_jwk(name), **self.changes} for name in self.published]}
        body = json.dumps(told).encode()
        kind = {"Content-Type": "application/json"}
        return {
            "rubbish": (200, kind, b"<html>We are moving house."),
            "a list": (200, kind, b"[1, 2, 3]"),
            "failing": (500, kind, body),
            "moved": (302, {"Location": "http://127.0.0.1:9/keys"}, b""),
            "compressed": (200, {**kind, "Content-Encoding": "gzip"}, gzip.compress(b" " * 1_000_000 + body)),
        }.get(self.mood, (200, kind, body))

    def claims(self, tenant: str, **more: Any) -> dict[str, Any]:
        """What a token says; a claim that is None here is left out."""
        now = int(time.time())
        told = {"iss": self.url, "aud": AUDIENCE, "sub": "agent-1", "tenant_id": tenant, "role": "agent", "iat": now, "exp": now + 300}
        return {name: value for name, value in {**told, **more}.items() if value is not None}

    def token(self, tenant: str, *, key: str = "rsa-1", headers: dict[str, Any] | None = None, algorithm: str = "", **more: Any) -> str:
        """A token, signed with the key of that name."""
        algorithm = algorithm or ("ES256" if key.startswith("ec-") else "RS256")
        with warnings.catch_warnings(action="ignore"):  # of a key that is too short
            return jwt.encode(self.claims(tenant, **more), private_key(key), algorithm=algorithm, headers={"kid": key, **(headers or {})})


@contextmanager
def beside(service: Service, **settings: object) -> Generator[Service]:
    """Another replica on the same database, with settings of its own."""
    address = service.run(service.lastro.engine.start())
    told = load_settings(data=service.settings.data, **settings)
    engine = GivenNeo4j(address.uri, address.user, address.password, address.database)
    found, stop = serve_in_thread(service.engine_name, told, lambda: running(told, engine, warm_up=False))
    try:
        yield found
    finally:
        stop()


def trusting(issuer: Issuer, **more: object) -> dict[str, object]:
    """Settings of a service that accepts the issuer's tokens."""
    return {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, "oidc_allow_http": True, **more}


def certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A context for a server on 127.0.0.1, and the file of whoever vouches for it."""
    key = private_key("ec-tls")
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    trusted, secret = folder / "issuer.pem", folder / "issuer.key"
    trusted.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, secret)
    return context, trusted
