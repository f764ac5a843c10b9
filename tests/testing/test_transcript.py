"""The player of transcripts: what it writes, what it refuses, and how it shows a difference."""

import runpy
import sys
from pathlib import Path

import pytest

from mcpcore.testing.transcript import TranscriptError, check, main, play

PING = """\
# A comment, and a blank line, are kept.

@ server {}
> {"jsonrpc":"2.0","id":1,"method":"ping"}
< {"jsonrpc":"2.0","id":1,"result":{}}
"""


def test_what_comes_of_a_transcript_is_written_after_each_line() -> None:
    bare = "\n".join(line for line in PING.splitlines() if not line.startswith("<")) + "\n"
    assert play(bare) == PING


def test_what_a_transcript_says_must_come_is_not_looked_at_when_it_is_played() -> None:
    assert play(PING.replace('"result":{}', '"result":{"wrong":1}')) == PING


def test_a_transcript_that_says_what_comes_passes(tmp_path: Path) -> None:
    path = tmp_path / "ping.txt"
    path.write_text(PING)
    check(path)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [('"id":1,"result"', '"id":"1","result"'), ("< {", "= MessageIgnored\n< {"), ('< {"jsonrpc"', '< { "jsonrpc"')],
)
def test_a_difference_is_shown_line_by_line(tmp_path: Path, wrong: str, right: str) -> None:
    path = tmp_path / "ping.txt"
    path.write_text(PING.replace(wrong, right))
    with pytest.raises(TranscriptError, match=r"(?s)this came.*\n[+-]"):
        check(path)


def test_writing_anew_makes_a_transcript_pass(tmp_path: Path) -> None:
    path = tmp_path / "ping.txt"
    path.write_text(PING.replace('"result":{}', '"result":{"wrong":1}'))
    main([str(path)])
    assert path.read_text() == PING


def test_it_can_be_run_as_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ping.txt"
    path.write_text(PING.replace('"result":{}', '"result":{"wrong":1}'))
    monkeypatch.setattr(sys, "argv", ["transcript", str(path)])
    monkeypatch.delitem(sys.modules, "mcpcore.testing.transcript")
    runpy.run_module("mcpcore.testing.transcript", run_name="__main__")
    assert path.read_text() == PING


def test_line_separators_of_unicode_end_no_line() -> None:
    text = '@ server {}\n> {"jsonrpc":"2.0","id":"a\u2028b\x85","method":"ping"}\n'
    assert play(text) == text + '< {"jsonrpc":"2.0","id":"a\u2028b\x85","result":{}}\n'


def test_events_are_named_with_the_request_that_they_are_about() -> None:
    text = '@ server {"capabilities":{"tools":{}},"session_version":"2025-11-25"}\n'
    text += '> {"jsonrpc":"2.0","id":"ü","method":"tools/list"}\n'
    assert play(text) == text + '= RequestReceived("ü")\n'


def test_tags_show_on_which_stream_an_answer_goes_and_where_one_ends() -> None:
    lines = [
        '@ server {"capabilities":{"tools":{}},"session_version":"2025-11-25"}',
        '>a {"jsonrpc":"2.0","id":1,"method":"ping"}',
        '<a {"jsonrpc":"2.0","id":1,"result":{}}',
        '>b {"jsonrpc":"2.0","id":2,"method":"tools/list"}',
        "= RequestReceived(2)",
        '>c {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}',
        "= RequestCancelled(2)",
        "<b",
    ]
    assert play("\n".join(lines)).splitlines() == lines


def test_a_refused_action_is_told() -> None:
    text = "@ server {}\n! send_result 1 {}\n"
    with pytest.raises(TranscriptError, match="line 2"):  # nobody knows of which method that would be the result
        play(text)
    text = '@ server {}\n! send_error 1 {"code":1,"message":"x"}\n'
    assert play(text) == text + "= LocalProtocolError: request 1 is not open\n"


def test_a_second_configuration_begins_anew() -> None:
    text = '@ client {"versions":["2025-11-25"]}\n! negotiate\n@ client {"versions":["2026-07-28"]}\n! negotiate\n'
    assert [line.split('"method":')[1][:10] for line in play(text).splitlines() if line.startswith("<")] == [
        '"initializ',
        '"server/di',
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('> {"jsonrpc":"2.0","id":1,"method":"ping"}', "begins with '@ server' or '@ client'"),
        ("@ server {}\nhello", "lines with one of"),
        ("@ proxy {}", "play 'server' or 'client'"),
        ("@ server {}\n! reboot", "reboot is no action: give one of acknowledge, cancel"),
        ('@ server {"color": "blue"}', "color"),
        ('@ server {"versions": ["1.0"]}', "give some of 2024-11-05"),
    ],
)
def test_a_line_that_cannot_be_understood_is_named(text: str, problem: str) -> None:
    with pytest.raises(TranscriptError, match=problem) as caught:
        play(text)
    assert str(caught.value).startswith(f"line {len(text.splitlines())}: ")
