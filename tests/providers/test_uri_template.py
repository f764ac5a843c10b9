"""URI templates: matching, its refusals, and that expanding and matching undo each other."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore.exceptions import DefinitionError
from mcpcore.providers.uri_template import URITemplate


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("config://{key}", "config://a", {"key": "a"}),
        ("config://{key}", "config://a/b", None),
        ("config://{key}", "config://", None),
        ("config://{key}", "Config://a", None),
        ("x://h/{a}/{b}.json", "x://h/1/two.json", {"a": "1", "b": "two"}),
        ("x://h/{a}/{b}.json", "x://h/1/two.xml", None),
        ("f://{name}.{ext}", "f://a.b.c", {"name": "a", "ext": "b.c"}),
        ("users/{id}", "users/me", {"id": "me"}),
        ("urn:isbn:{n}", "urn:isbn:1", {"n": "1"}),
        ("x://{n}", "x://a%20b", {"n": "a b"}),
        ("x://{n}", "x://a b", {"n": "a b"}),
        ("x://{n}", "x://caf%C3%A9", {"n": "café"}),
        ("x://{n}", "x://café", {"n": "café"}),
        ("x://{n}", "x://a%252e", {"n": "a%2e"}),
        ("x://{n}", "x://100%", {"n": "100%"}),
        ("x://{n}", "x://%FF", None),
        ("x://{n}", "x://a?b", None),
        ("x://{n}", "x://a#b", None),
        ("x://café/{n}", "x://café/1", {"n": "1"}),
        ("x://café/{n}", "x://caf%C3%A9/1", {"n": "1"}),
        ("x://café/{n}", "x://caf%c3%a9/1", {"n": "1"}),
        ("x://caf%C3%A9/{n}", "x://café/1", {"n": "1"}),
        ("x://a b/{n}", "x://a b/1", {"n": "1"}),
        ("x://a b/{n}", "x://a%20b/1", {"n": "1"}),
        ("x://50%/{n}", "x://50%/1", {"n": "1"}),
        ("x://50%/{n}", "x://50%25/1", {"n": "1"}),
        ("x://%41/{n}", "x://A/1", {"n": "1"}),
        ("f://{+path}", "f://a/b", {"path": "a/b"}),
        ("f://{+path}", "f:///etc", {"path": "/etc"}),
        ("f://{+path}", "f://", None),
        ("r://{owner}/{+path}/raw/{rev}", "r://o/a/raw/b/raw/c", {"owner": "o", "path": "a/raw/b", "rev": "c"}),
        ("r://{+path}/{name}", "r://a/b/c", {"path": "a/b", "name": "c"}),
        ("s://q{?a,b}", "s://q", {}),
        ("s://q{?a,b}", "s://q?b=1&a=%20x", {"a": " x", "b": "1"}),
        ("s://q{?a,b}", "s://q?a=", {"a": ""}),
        ("s://q{?a,b}", "s://q?c=1", None),
        ("s://q{?a,b}", "s://q?a=1&a=2", None),
        ("s://{n}{?a}", "s://x?a=1", {"n": "x", "a": "1"}),
        ("s://q{?a}", "s://q?a=%FF", None),
        ("r://{+path}/x/{rev}", "r://a/b", None),
        ("x://plain", "x://plain", {}),
        ("x://plain", "x://plain/", None),
    ],
)  # fmt: skip
def test_a_template_matches(template: str, uri: str, values: dict[str, str] | None) -> None:
    assert URITemplate(template).match(uri) == values


@pytest.mark.parametrize(
    "value",
    ["..", ".", "%2e%2e", "%2E.", "..%2Fx", "..%2f..%2fetc%2fpasswd", "a%2Fb", "a%5Cb", "..%5C..", "a%00b", "..\\x"],
)
def test_one_segment_never_leads_elsewhere(value: str) -> None:
    assert URITemplate("f://docs/{name}").match(f"f://docs/{value}") is None


@pytest.mark.parametrize("value", ["..", "../a", "a/../b", "a/%2e%2e/b", "a/..%2Fb", "a%5C..%5Cb", "a/%00"])
def test_several_segments_never_climb(value: str) -> None:
    assert URITemplate("f://docs/{+path}").match(f"f://docs/{value}") is None


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{a}{b}", "text between"),
        ("{+a}{b}", "text between"),
        ("{a", "not closed"),
        ("a}", "not closed"),
        ("{{a}}", "not closed"),
        ("{}", "not offered"),
        ("{/a}", "not offered"),
        ("{#a}", "not offered"),
        ("{.a}", "not offered"),
        ("{;a}", "not offered"),
        ("{&a}", "not offered"),
        ("{a*}", "not offered"),
        ("{a:3}", "not offered"),
        ("{a,b}", "not offered"),
        ("{?a,}", "not offered"),
        ("{a b}", "not offered"),
        ("{?a}/b", "at the end"),
        ("{?a}{b}", "not offered"),
        ("x://{+a}/{+b}", "only one"),
        ("{a}/{a}", "occurs twice"),
        ("{a}{?a}", "occurs twice"),
    ],
)
def test_a_template_that_is_not_offered_is_refused_when_it_is_made(template: str, why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        URITemplate(template)


def test_variables_are_named_in_order() -> None:
    template = URITemplate("x://{b}/{+a}/z{?d,c}")
    assert template.variables == ("b", "a", "d", "c")
    assert template.optional == {"c", "d"}
    assert template.template == "x://{b}/{+a}/z{?d,c}"
    assert URITemplate("x://{名前}/{_a1}").variables == ("名前", "_a1")


def test_expanding_writes_what_matching_reads() -> None:
    template = URITemplate("x://café/{a}/{+p}/z{?q,r}")
    uri = template.expand({"a": "é /?", "p": "b c/d", "q": 5, "r": None})
    assert uri == "x://caf%C3%A9/%C3%A9%20%2F%3F/b%20c/d/z?q=5"
    assert URITemplate("x://{a}{?q,r}").expand({"a": 1, "q": "a&b", "r": "="}) == "x://1?q=a%26b&r=%3D"
    with pytest.raises(KeyError):
        template.expand({"a": "x"})


segments = st.text(st.characters(exclude_characters="/\\\0", exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: text not in (".", "..")
)


@given(
    segments,
    st.lists(segments, min_size=1, max_size=4).map("/".join),
    st.none() | st.text(st.characters(exclude_categories=["Cs"])),
)
def test_matching_undoes_expanding(name: str, path: str, query: str | None) -> None:
    template = URITemplate("x://é é/{name}/-/{+path}{?q}")
    values: dict[str, Any] = {"name": name, "path": path, "q": query}
    # Reserved characters of {+path} are kept, so some of them end it; those are not its own.
    if any(mark in path for mark in "?%"):
        return
    assert template.match(template.expand(values)) == {key: value for key, value in values.items() if value is not None}


@given(st.text("ab/.%2e{}+?&=é ", max_size=30), st.text("ab/.%2e?&=é \ud800", max_size=40))
def test_any_text_is_refused_or_answered(template: str, uri: str) -> None:
    try:
        compiled = URITemplate(template)
    except DefinitionError:
        return
    values = compiled.match(uri)
    assert values is None or set(values) <= set(compiled.variables)


def oracle(parts: list[str], uri: str) -> bool:
    """Backtracking reference: does any cut of ``uri`` fit?"""
    if not parts:
        return uri == ""
    head, *rest = parts
    if not head.startswith("{"):
        return uri.startswith(head) and oracle(rest, uri[len(head) :])
    return any((head == "{+}" or "/" not in uri[:end]) and oracle(rest, uri[end:]) for end in range(1, len(uri) + 1))


@given(
    st.lists(st.text("ab/", min_size=1, max_size=2), min_size=1, max_size=4),
    st.integers(0, 4),
    st.text("ab/", max_size=9),
)
def test_never_going_back_finds_a_match_wherever_there_is_one(texts: list[str], multi: int, uri: str) -> None:
    parts: list[str] = [texts[0]]
    template = texts[0]
    for index, text in enumerate(texts[1:]):
        plus = "+" if index == multi else ""
        parts += [f"{{{plus}}}", text]
        template += f"{{{plus}{string.ascii_lowercase[index]}}}{text}"
    assert (URITemplate(template).match(uri) is not None) is oracle(parts, uri), (template, uri)
