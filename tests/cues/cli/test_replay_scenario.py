"""`cues replay --scenario`: the names, and what is refused. That scenarios are served is tested with the services."""

import pytest
from click.testing import CliRunner

from cues.cli.replay import command
from stream.replay.scenarios import names


def test_the_list_has_one_name_a_line():
    result = CliRunner().invoke(command, ["--scenario", "list"])
    assert result.exit_code == 0
    assert result.output.splitlines() == names()


def test_a_name_that_is_nearly_right_gets_a_suggestion():
    result = CliRunner().invoke(command, ["--scenario", "fork-dup"])
    assert result.exit_code == 2
    assert "did you mean 'fork-duplicate'?" in result.output


@pytest.mark.parametrize("arguments", [[], ["--scenario", "fork-nonsense"], ["a.sse", "--scenario", "list"]])
def test_wrong_arguments_are_a_usage_error(arguments):
    assert CliRunner().invoke(command, arguments).exit_code == 2
