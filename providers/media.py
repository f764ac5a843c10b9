"""Pictures, sounds and files that a handler returns: bytes with their media type."""

from base64 import b64encode
from os import PathLike
from pathlib import Path
from typing import Any, Final

from mcpcore.types.content import Annotations, AudioContent, EmbeddedResource, ImageContent, ResourceContents

__all__ = ["Audio", "File", "Image", "base64_text"]

_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
# What `mimetypes` does not know everywhere, or calls by an old name.
_FORMATS: Final = {"jpg": "jpeg", "svg": "svg+xml", "mp3": "mpeg", "x-wav": "wav"}


class _Media:
    """Bytes with a media type.

    Args:
        source: A path, which is read now, or the bytes.
        format: ``"png"``, ``"wav"``; or the whole media type. None finds it out from the bytes or the name.
        annotations: For whom it is and how much it matters.
        meta: The block's ``_meta``.

    Raises:
        OSError: The file cannot be read.
        ValueError: The format is not given and cannot be found out.
    """

    _family = ""

    def __init__(
        self,
        source: str | PathLike[str] | bytes | bytearray | memoryview,
        *,
        format: str | None = None,  # the word that users of this kind of class know
        annotations: Annotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        self.data, name = _load(source)
        self.mime_type = self._type_of(format, name)
        self.annotations = annotations
        self.meta = meta

    def _type_of(self, format: str | None, name: str | None) -> str:
        if format is not None:
            lowered = format.lower().removeprefix(".")
            return format if "/" in format else f"{self._family}/{_FORMATS.get(lowered, lowered)}"
        found = _sniff(self.data) or (name and _guess(name))
        if not found or not found.startswith(self._family + "/"):
            what = type(self).__name__
            raise ValueError(f'the format of this {what} cannot be told; give it: {what}(…, format="{_example(what)}")')
        return found.replace("/x-", "/")


class Image(_Media):
    """A picture: ``Image("chart.png")`` or ``Image(png_bytes, format="png")``."""

    _family = "image"

    def to_content(self) -> ImageContent:
        """Return the content block."""
        return ImageContent(base64_text(self.data), self.mime_type, self.annotations, self.meta)


class Audio(_Media):
    """A sound: ``Audio("bell.wav")`` or ``Audio(wav_bytes, format="wav")``. Known to peers since 2025-03-26."""

    _family = "audio"

    def to_content(self) -> AudioContent:
        """Return the content block."""
        return AudioContent(base64_text(self.data), self.mime_type, self.annotations, self.meta)


class File:
    """A file of any kind, as an embedded resource: text where its type is textual and it is UTF-8, else a blob.

    Args:
        source: A path, which is read now, or the bytes.
        uri: Where it stands; ``file://`` and the path, or ``file:///`` and ``name``, when None.
        name: For bytes, to find the type and make the URI.
        mime_type: None finds it out from the name.
        annotations: For whom it is and how much it matters.

    Raises:
        OSError: The file cannot be read.
        ValueError: Bytes without ``uri`` and ``name``.
    """

    def __init__(
        self,
        source: str | PathLike[str] | bytes | bytearray | memoryview,
        *,
        uri: str | None = None,
        name: str | None = None,
        mime_type: str | None = None,
        annotations: Annotations | None = None,
    ) -> None:
        self.data, found = _load(source)
        name = name or found
        if uri is None and name is None:
            raise ValueError("bytes need an address: File(data, uri=…) or File(data, name=…)")
        self.uri = uri or (Path(source).absolute().as_uri() if found else f"file:///{name}")  # type: ignore[arg-type]  # a path
        self.mime_type = mime_type or (name and _guess(name)) or _sniff(self.data)
        self.annotations = annotations

    def to_contents(self, uri: str | None = None) -> ResourceContents:
        """Return the contents, under another address if one is given."""
        where = uri or self.uri
        if _is_textual(self.mime_type):
            try:
                return ResourceContents(where, self.mime_type or "text/plain", text=self.data.decode())
            except UnicodeDecodeError:
                pass  # not what its name says; a blob loses nothing
        return ResourceContents(where, self.mime_type or "application/octet-stream", blob=base64_text(self.data))

    def to_content(self) -> EmbeddedResource:
        """Return the content block."""
        return EmbeddedResource(self.to_contents(), self.annotations)


def base64_text(data: bytes | bytearray | memoryview) -> str:
    """Return ``data`` in standard padded base64."""
    return b64encode(data).decode("ascii")


def _load(source: str | PathLike[str] | bytes | bytearray | memoryview) -> tuple[bytes, str | None]:
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), None
    path = Path(source)
    return path.read_bytes(), path.name


def _sniff(data: bytes) -> str | None:
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12])
    return next((mime_type for signature, mime_type in _SIGNATURES if data.startswith(signature)), None)


def _guess(name: str) -> str | None:
    import mimetypes  # reads the tables of the system, which servers without files need not wait for

    return mimetypes.guess_type(name)[0]


def _is_textual(mime_type: str | None) -> bool:
    if mime_type is None:
        return False
    family, _, kind = mime_type.partition("/")
    return family == "text" or kind in ("json", "xml", "javascript", "yaml", "toml") or kind.endswith(("+json", "+xml"))


def _example(what: str) -> str:
    return "png" if what == "Image" else "wav"
