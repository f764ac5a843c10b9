"""What carries state through the client's hands: nobody but who has the secret can make, change or read it."""

import subprocess
import sys
from string import ascii_letters, digits
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore import DefinitionError, Server
from mcpcore.protocol.request_state import HMACCodec
from mcpcore.runtime import sealing
from mcpcore.runtime.sealing import AESCodec, state_codec

AES = state_codec("secret")


@pytest.fixture(params=["aes", "hmac"])
def codec_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "hmac":
        monkeypatch.setattr(sealing, "find_spec", lambda name: None)
    return state_codec


def test_the_better_seal_is_chosen_where_its_library_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(state_codec("secret"), AESCodec)
    monkeypatch.setattr(sealing, "find_spec", lambda name: None)
    assert isinstance(state_codec("secret"), HMACCodec)


@pytest.mark.parametrize("secret", ["", b"", [], ["new", ""], 5, ["new", 5], {"a": 1}])
def test_a_secret_that_is_none_is_refused_and_not_quoted(secret: Any) -> None:
    with pytest.raises(DefinitionError, match="secret=…: give a text or bytes that are not empty"):
        Server("x", secret=secret)


def test_what_was_sealed_is_opened_by_whoever_has_the_secret(codec_of: Any) -> None:
    state = codec_of("secret").seal(b"data")
    assert codec_of(b"secret").open(state) == b"data"
    with pytest.raises(ValueError, match=r"key|signature"):
        codec_of("another").open(state)


def test_of_several_secrets_the_first_seals_and_all_open(codec_of: Any) -> None:
    old, new = codec_of("old"), codec_of(["new", "old"])
    assert new.open(old.seal(b"data")) == b"data"
    assert codec_of("new").open(new.seal(b"data")) == b"data"
    with pytest.raises(ValueError, match=r"key|signature"):
        old.open(new.seal(b"data"))


def test_the_environment_gives_the_secret_where_the_program_does_not(
    codec_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPCORE_SECRET", "shared")
    assert codec_of("shared").open(codec_of().seal(b"data")) == b"data"
    monkeypatch.delenv("MCPCORE_SECRET")
    with pytest.raises(ValueError, match=r"key|signature"):
        codec_of().open(codec_of().seal(b"data"))


def test_sealing_twice_gives_two_states_that_hide_what_is_in_them() -> None:
    one, other = AES.seal(b"the same data"), AES.seal(b"the same data")
    assert one != other and "data" not in one


@pytest.mark.parametrize("size", [8, 9, 10])  # with each length of padding
def test_a_state_that_was_changed_anywhere_is_refused(size: int) -> None:
    state = AES.seal(b"x" * size)
    for position, old in enumerate(state):
        for letter in ascii_letters + digits + "-_=+/ é":
            if letter != old:
                with pytest.raises(ValueError):
                    AES.open(state[:position] + letter + state[position + 1 :])


@given(st.text() | st.text("abcdefAB01-_=.").map(lambda text: f"a1.{text}"))
def test_nothing_but_a_state_is_opened_and_nothing_else_is_raised(text: str) -> None:
    with pytest.raises(ValueError):
        AES.open(text)


def test_a_server_that_never_seals_loads_no_cryptography() -> None:
    code = "import sys; from mcpcore import Server; Server('x', secret='s'); print('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
