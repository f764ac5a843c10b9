"""Pictures, sounds and files: their types are found out, their bytes are kept."""

import base64
from pathlib import Path
from typing import Any

import pytest

from mcpcore.providers.media import Audio, File, Image, base64_text
from mcpcore.types import Annotations, AudioContent, EmbeddedResource, ImageContent, ResourceContents

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.mark.parametrize(
    ("kind", "data", "format", "mime_type"),
    [
        (Image, PNG, None, "image/png"),
        (Image, b"\xff\xd8\xffrest", None, "image/jpeg"),
        (Image, b"GIF89a", None, "image/gif"),
        (Image, b"RIFF0000WEBP", None, "image/webp"),
        (Image, b"?", "jpg", "image/jpeg"),
        (Image, b"?", ".PNG", "image/png"),
        (Image, b"?", "svg", "image/svg+xml"),
        (Image, b"?", "image/avif", "image/avif"),
        (Audio, b"RIFF0000WAVE", None, "audio/wav"),
        (Audio, b"ID3", None, "audio/mpeg"),
        (Audio, b"OggS", None, "audio/ogg"),
        (Audio, b"?", "mp3", "audio/mpeg"),
    ],
)
def test_the_type_of_bytes(kind: Any, data: bytes, format: str | None, mime_type: str) -> None:
    content = kind(data, format=format).to_content()
    assert isinstance(content, ImageContent | AudioContent)
    assert content.mime_type == mime_type
    assert base64.b64decode(content.data, validate=True) == data


@pytest.mark.parametrize("kind", [Image, Audio])
def test_bytes_of_unknown_type_ask_for_it(kind: Any) -> None:
    with pytest.raises(ValueError, match=rf"{kind.__name__}\(…, format="):
        kind(b"what is this")
    with pytest.raises(ValueError, match="cannot be told"):
        kind(PNG if kind is Audio else b"ID3")


def test_a_file_is_read_when_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bell.wav"
    path.write_bytes(b"?")
    audio = Audio(path)
    path.unlink()
    assert audio.to_content() == AudioContent("Pw==", "audio/wav")
    with pytest.raises(FileNotFoundError):
        Image(str(tmp_path / "none.png"))


def test_annotations_and_meta_are_on_the_block() -> None:
    annotations = Annotations(priority=0.5)
    content = Image(bytearray(PNG), annotations=annotations, meta={"m": 1}).to_content()
    assert content.annotations is annotations and content.meta == {"m": 1}


@pytest.mark.parametrize(
    ("name", "data", "text", "mime_type"),
    [
        ("a.txt", "é".encode(), "é", "text/plain"),
        ("a.json", b"{}", "{}", "application/json"),
        ("a.svg", b"<svg/>", "<svg/>", "image/svg+xml"),
        ("latin1.txt", b"\xe9", None, "text/plain"),
        ("a.unknown-kind", b"\x00", None, "application/octet-stream"),
        ("a.png", PNG, None, "image/png"),
        ("empty.bin", b"", None, "application/octet-stream"),
    ],
)
def test_a_file_is_text_where_it_is_textual_and_a_blob_otherwise(
    tmp_path: Path, name: str, data: bytes, text: str | None, mime_type: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    resource = File(path).to_content().resource
    assert (resource.text, resource.mime_type, resource.uri) == (text, mime_type, path.as_uri())
    assert resource.blob == (None if text is not None else base64_text(data))


def test_a_file_of_bytes_needs_an_address() -> None:
    assert File(b"a", name="a.txt").to_contents() == ResourceContents("file:///a.txt", "text/plain", text="a")
    assert File(b"\x00", uri="x://a").to_contents() == ResourceContents(
        "x://a", "application/octet-stream", blob="AA=="
    )
    assert File(PNG, uri="x://a").mime_type == "image/png"
    assert File(b"a", uri="x://a", mime_type="text/csv").to_contents("y://b").uri == "y://b"
    assert isinstance(File(b"a", name="a").to_content(), EmbeddedResource)
    with pytest.raises(ValueError, match="need an address"):
        File(b"a")


def test_base64_is_standard_and_padded() -> None:
    assert base64_text(b"\xfb\xff\xfe") == "+//+" and base64_text(memoryview(b"a")) == "YQ==" and base64_text(b"") == ""
