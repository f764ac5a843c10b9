"""Tokens that are signed JSON."""

from typing import Any

import msgspec
import pytest

from mcpcore.auth import JWTVerifier, Principal

pytestmark = pytest.mark.anyio

NOW = 1_000_000.0
CLAIMS: dict[str, Any] = {
    "iss": "https://as.example.com",
    "aud": "https://mcp.example.com/mcp",
    "sub": "alice",
    "client_id": "app",
    "scope": "read write",
    "exp": NOW + 60,
}


class Issuer:
    """An authorization server that signs tokens and publishes its keys."""

    def __init__(self) -> None:
        self.fetched = 0
        self.broken = False
        self.rotate("k1")

    def rotate(self, name: str) -> None:
        from joserfc.jwk import ECKey

        self.key = ECKey.generate_key("P-256", {"kid": name})

    async def keys(self) -> bytes:
        self.fetched += 1
        if self.broken:
            raise OSError("no network")
        return msgspec.json.encode({"keys": [self.key.as_dict(private=False)]})

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        from joserfc import jwt

        return jwt.encode({"alg": "ES256", "kid": self.key.kid, **header}, claims, self.key)


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


def verifier(issuer: Issuer, clock: Clock) -> JWTVerifier:
    return JWTVerifier(
        issuer=CLAIMS["iss"], audience=CLAIMS["aud"], fetch_keys=issuer.keys, algorithms=["ES256"], clock=clock
    )


async def test_a_good_token_names_its_principal() -> None:
    issuer = Issuer()
    principal = await verifier(issuer, Clock()).verify(issuer.sign(CLAIMS))
    assert principal == Principal("alice", "https://as.example.com", "app")
    assert principal is not None and principal.scopes == {"read", "write"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"iss": "https://as.example.com/"},
        {"aud": "https://other.example.com"},
        {"aud": ["https://other.example.com"]},
        {"sub": None},
        {"exp": NOW - 31},
        {"exp": None},
        {"nbf": NOW + 31},
    ],
)
async def test_a_token_for_somebody_else_or_another_time_is_not_valid(wrong: dict[str, Any]) -> None:
    issuer = Issuer()
    claims = {key: value for key, value in {**CLAIMS, **wrong}.items() if value is not None}
    assert await verifier(issuer, Clock()).verify(issuer.sign(claims)) is None


async def test_a_changed_token_is_invalid() -> None:
    issuer = Issuer()
    check, token = verifier(issuer, Clock()), issuer.sign(CLAIMS)
    head, payload, signature = token.split(".")
    for changed in (f"{head}.{payload[:-2]}AA.{signature}", f"{head}.{payload}.", f"{head}.{payload}", "", "a.b.c"):
        assert await check.verify(changed) is None


async def test_the_token_does_not_choose_its_algorithm() -> None:
    from joserfc import jwt
    from joserfc.jwk import OctKey

    issuer = Issuer()
    forged = jwt.encode({"alg": "HS256", "kid": "k1"}, CLAIMS, OctKey.import_key("public" * 10))
    assert await verifier(issuer, Clock()).verify(forged) is None


async def test_keys_are_fetched_once_and_again_when_a_new_one_appears_but_not_for_every_unknown_one() -> None:
    issuer, clock = Issuer(), Clock()
    check = verifier(issuer, clock)
    old = issuer.sign(CLAIMS)
    assert await check.verify(old) and await check.verify(old) and issuer.fetched == 1
    issuer.rotate("k2")
    fresh = issuer.sign(CLAIMS)
    assert await check.verify(fresh) is None and issuer.fetched == 1
    clock.now += 31
    assert await check.verify(fresh) and issuer.fetched == 2


async def test_old_keys_serve_on_while_new_ones_cannot_be_fetched() -> None:
    issuer, clock = Issuer(), Clock()
    check = verifier(issuer, clock)
    assert await check.verify(issuer.sign(CLAIMS))
    issuer.broken = True
    clock.now += 4000
    assert await check.verify(issuer.sign({**CLAIMS, "exp": clock.now + 60}))


def test_shared_secrets_and_unsigned_tokens_cannot_be_allowed() -> None:
    for algorithms in (["none"], ["HS256"], []):
        with pytest.raises(ValueError, match="asymmetric"):
            JWTVerifier(issuer="i", audience="a", keys={"keys": []}, algorithms=algorithms)
    with pytest.raises(ValueError, match="one of them"):
        JWTVerifier(issuer="i", audience="a")
