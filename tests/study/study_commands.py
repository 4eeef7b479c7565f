"""Commands of the command line, and what they answer."""

import json

from click.testing import CliRunner

from chainscout.cli import main


def run(*words, stdin=None, status=0):
    found = CliRunner().invoke(main, [str(word) for word in words], input=stdin)
    assert found.exit_code == status, (found.output, found.exception)
    return found.output


def answer(*words, **options):
    return json.loads(run(*words, "--json", **options))
