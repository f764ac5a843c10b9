"""The command line of the benchmark."""

import pytest

from benchmarks.__main__ import chosen, main
from benchmarks.rows import ROWS, SMOKE


def test_everything_is_chosen_by_default() -> None:
    assert chosen("row", None, ("a", "b")) == ["a", "b"]


def test_the_chosen_keep_the_order_of_the_table() -> None:
    assert chosen("row", "c,a", ("a", "b", "c")) == ["a", "c"]


def test_an_unknown_name_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--rows", "call-1,nonsense"])
    message = capsys.readouterr().err
    assert "there is no row 'nonsense'; choose from call-1, call-32," in message


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--seconds", "0"], ["--seconds", "61"]])
def test_an_effort_out_of_range_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)


def test_list_names_the_chosen_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(ROWS)
    assert main(["--list", "--rows", "start"]) == 0
    assert capsys.readouterr().out.startswith("start ")


def test_a_smoke_run_takes_its_own_rows_unless_it_is_told_which(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--smoke"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(SMOKE)
    assert main(["--list", "--smoke", "--rows", "call-1"]) == 0
    assert capsys.readouterr().out.startswith("call-1 ")


def test_a_smoke_run_runs_every_kind_of_program_in_the_order_of_the_table() -> None:
    assert {ROWS[name].program for name in SMOKE} == {row.program for row in ROWS.values()}
    assert [name for name in ROWS if name in SMOKE] == list(SMOKE)
