"""What a client carries for us is believed to the letter or not at all."""

import base64
import string
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from mcpcore.exceptions import RemoteProtocolError
from mcpcore.protocol.request_state import Claims, HMACCodec, digest, open_state, seal_state

KEY, OLD_KEY = b"k" * 32, b"o" * 16
CODEC = HMACCodec([KEY])
ANSWERS = {"who": Raw(b'{"action":"accept","content":{"name":"x"}}')}
REQUEST: dict[str, Any] = {"method": "tools/call", "target": "add", "digest": "d", "principal": "alice"}


def sealed(codec: HMACCodec = CODEC, *, expires: float = 100.0) -> str:
    return seal_state(codec, Claims(**REQUEST, expires=expires, answers=ANSWERS))


def opened(state: str, codec: HMACCodec = CODEC, *, now: float = 0.0, **other: Any) -> dict[str, bytes]:
    answers = open_state(codec, state, **(REQUEST | other), now=now)
    return {key: bytes(raw) for key, raw in answers.items()}


def test_answers_come_back_as_they_went() -> None:
    assert opened(sealed()) == {key: bytes(raw) for key, raw in ANSWERS.items()}


@pytest.mark.parametrize(
    "other",
    [
        {"method": "prompts/get"},
        {"target": "subtract"},
        {"target": ""},
        {"digest": "e"},
        {"principal": "bob"},
        {"principal": None},
        {"principal": ""},
        {"now": 100.0},
        {"now": 1e9},
    ],
)
def test_a_state_of_another_request_or_principal_or_time_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        opened(sealed(), **other)
    assert (caught.value.code, caught.value.id) == (-32602, None)


def test_one_text_tells_nothing_about_what_was_wrong() -> None:
    texts = set()
    for state, other in [(sealed(), {"principal": "bob"}), ("", {}), (sealed(), {"now": 1e9}), ("h1.x.y", {})]:
        with pytest.raises(RemoteProtocolError) as caught:
            opened(state, **other)  # type: ignore[arg-type]  # the names are those of `opened`
        texts.add(str(caught.value))
    assert len(texts) == 1


def test_a_state_holds_until_the_moment_it_expires() -> None:
    assert opened(sealed(expires=100.0), now=99.999)
    with pytest.raises(RemoteProtocolError):
        opened(sealed(expires=100.0), now=100.0)


def test_changing_any_single_character_is_refused() -> None:
    state = sealed()
    for position, original in enumerate(state):
        for character in (string.ascii_letters + string.digits + "-_.=+/ é\n")[position % 7 :: 7]:
            if character != original:
                with pytest.raises(RemoteProtocolError):
                    opened(state[:position] + character + state[position + 1 :])


def test_leaving_out_or_adding_any_character_is_refused() -> None:
    state = sealed()
    for position in range(len(state) + 1):
        for text in (state[:position], state[position:], f"{state[:position]}A{state[position:]}"):
            if text != state:
                with pytest.raises(RemoteProtocolError):
                    opened(text)


@given(st.one_of(st.text(), st.text(alphabet="h1.AQ-_=", max_size=20)))
def test_whatever_a_client_makes_up_is_refused(state: str) -> None:
    with pytest.raises(RemoteProtocolError):
        opened(state)


def test_only_canonical_base64_is_read() -> None:
    """A lenient decoder would take several texts for one state."""
    kind, payload, signature = sealed().split(".")
    assert CODEC.open(f"{kind}.{payload}.{signature}")
    last = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
    same = last[last.index(signature[-1]) ^ 1]  # differs in bits that no byte holds
    for text in (f"{signature}=", f"{signature}\n", signature[:-1] + same, signature.replace("-", "+") + " "):
        with pytest.raises(ValueError, match="base64"):
            CODEC.open(f"{kind}.{payload}.{text}")


def test_states_are_printable_and_fit_into_json_without_escapes() -> None:
    state = sealed()
    assert msgspec.json.encode(state) == b'"%b"' % state.encode()


def test_claims_that_are_signed_and_malformed_are_refused() -> None:
    for data in (b"", b"[]", b"{}", b'{"m":1}', b"\xff"):
        with pytest.raises(RemoteProtocolError):
            opened(CODEC.seal(data))


# -- keys --------------------------------------------------------------------------------------------------------------


def test_the_first_key_signs_and_all_are_accepted() -> None:
    both = HMACCodec([KEY, OLD_KEY])
    assert opened(sealed(HMACCodec([OLD_KEY])), both) and opened(sealed(CODEC), both)
    assert opened(sealed(both), CODEC)
    with pytest.raises(RemoteProtocolError):
        opened(sealed(both), HMACCodec([OLD_KEY]))


@pytest.mark.parametrize("keys", [[], [b""], [b"k" * 15], [KEY, b"short"]])
def test_short_keys_are_refused(keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match="at least 16 bytes"):
        HMACCodec(keys)


def test_the_signature_is_bound_to_this_use() -> None:
    """The same key in another scheme of HMAC-SHA256 makes no valid state."""
    import hmac

    plain = hmac.digest(KEY, b"{}", "sha256")
    with pytest.raises(ValueError, match="signature"):
        CODEC.open(f"h1.e30.{base64.urlsafe_b64encode(plain).rstrip(b'=').decode()}")


# -- digest ------------------------------------------------------------------------------------------------------------


def test_the_digest_does_not_depend_on_spacing_or_order() -> None:
    same = [b'{"a":1,"b":{"c":[1,2],"d":null}}', b' { "b" : {"d":null,"c":[1, 2]},\n"a":1} ']
    assert len({digest(Raw(raw)) for raw in same}) == 1


def test_no_arguments_are_no_arguments_however_they_are_written() -> None:
    absent: list[Any] = [UNSET, None, {}, Raw(b"{}"), Raw(b"null"), Raw(b" {} ")]
    assert len({digest(value) for value in absent}) == 1


def test_arguments_of_a_prompt_and_of_a_tool_digest_alike() -> None:
    assert digest({"a": "x"}) == digest(Raw(b'{"a":"x"}'))


@given(
    st.lists(
        st.dictionaries(st.text(max_size=3), st.one_of(st.integers(), st.text(max_size=3), st.none()), min_size=1),
        unique_by=lambda value: msgspec.json.encode(value, order="sorted"),
        max_size=8,
    )
)
def test_different_arguments_have_different_digests(values: list[dict[str, Any]]) -> None:
    assert len({digest(Raw(msgspec.json.encode(value))) for value in values}) == len(values)


def test_numbers_of_any_size_can_be_digested() -> None:
    assert digest(Raw(b'{"n":123456789012345678901234567890}')) != digest(Raw(b'{"n":123456789012345678901234567891}'))
