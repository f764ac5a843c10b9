"""Docstrings: the first paragraph, and texts of parameters in three styles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpcore.providers.docstrings import Docstring, parse_docstring

GOOGLE = """Find notes.

    More about it.

    Args:
        query (str, optional): What to look for,
            over two lines.
        limit: How many.

            A second paragraph of it.
        *rest (tuple[int, ...]): The rest.

    Returns:
        list: not a parameter.
    """

NUMPY = """Find notes.

    Parameters
    ----------
    query : str
        What to look for,
        over two lines.
    x, y : int, optional
        Where.
    bare
        No type.

    Returns
    -------
    result : list
        Not a parameter.
    """

SPHINX = """Find notes.

    :param query: What to look for,
        over two lines.
    :type query: str
    :param int limit: How many.
    :returns: not a parameter
    """


def test_google_sections_give_parameters_without_their_types() -> None:
    found = parse_docstring(GOOGLE)
    assert found.summary == "Find notes."
    assert found.parameters == {
        "query": "What to look for, over two lines.",
        "limit": "How many. A second paragraph of it.",
        "rest": "The rest.",
    }


def test_numpy_sections_share_a_text_between_names() -> None:
    assert parse_docstring(NUMPY).parameters == {
        "query": "What to look for, over two lines.",
        "x": "Where.",
        "y": "Where.",
        "bare": "No type.",
    }


def test_sphinx_fields_give_parameters() -> None:
    assert parse_docstring(SPHINX) == Docstring(
        "Find notes.", {"query": "What to look for, over two lines.", "limit": "How many."}
    )


@pytest.mark.parametrize("text", [None, "", "  \n  "])
def test_no_docstring_says_nothing(text: str | None) -> None:
    assert parse_docstring(text) == Docstring(None, {})


def test_summary_is_the_whole_first_paragraph_dedented() -> None:
    found = parse_docstring("One line\n    and another.\n\n    Not this.")
    assert found.summary == "One line\nand another."


@pytest.mark.parametrize(
    "text",
    [
        "\n    Args:\n        x: the only thing said",
        "Args:\n        x: the only thing said",
        "Args:\n        x: the only\n            thing said\n\n    Returns:\n        y: not a parameter",
        "Parameters\n    ----------\n    x : int\n        the only thing said",
        ":param x: the only thing said",
    ],
)
def test_a_docstring_that_begins_with_a_section_has_no_summary(text: str) -> None:
    assert parse_docstring(text) == Docstring(None, {"x": "the only thing said"})


def test_a_section_right_after_the_summary_ends_it() -> None:
    assert parse_docstring("Adds.\n    Args:\n        x: one").summary == "Adds."


def test_prose_that_ends_in_a_colon_is_prose() -> None:
    assert parse_docstring("Statuses are:\nPENDING and DONE.").summary == "Statuses are:\nPENDING and DONE."


@given(st.text(alphabet=st.sampled_from(list("ab :-\n\t*(),")), max_size=120))
def test_no_text_makes_the_parser_fail(text: str) -> None:
    found = parse_docstring(f"Args:\n{text}\nParameters\n-----\n{text}\n:param {text}")
    assert all(name and described for name, described in found.parameters.items())
