"""Each transcript comes out as it is written: one scenario of the specification in one era."""

from pathlib import Path

import pytest

from mcpcore.testing.transcript import check

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    check(path)


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) > 30
