"""Why a pull failed, in words that say what to do; the engine's own words follow."""

import pytest

from agent.work.pull_problems import pull_problem

REF = "reg.example:5000/team/app:2"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("unauthorized: authentication required", "refused access"),
        ('Get "https://reg.example:5000/v2/": unauthorized: incorrect password', "refused access"),
        ("pull access denied for app, repository does not exist", "refused access"),
        ("manifest for reg.example:5000/team/app:2 not found", "was not found in its registry"),
        ('Get "https://reg.example:5000/v2/": EOF', "cannot be reached"),
        ('Get "http://reg.example:5000/v2/": read: connection reset by peer', "cannot be reached"),
        ("dial tcp: lookup reg.example: no such host", "cannot be reached"),
        ("unexpected EOF", "The download of"),
        ("filesystem layer verification failed for digest sha256:1", "The download of"),
        ("write /var/lib/docker/tmp/blob: no space left on device", "The disk of this host"),
        ("something else", "could not be pulled: something else"),
    ],
)
def test_every_kind_of_failure_is_told_apart(said: str, told: str) -> None:
    sentence = pull_problem(REF, said)
    assert told in sentence
    assert said in sentence
    assert "reg.example:5000" in sentence


def test_it_is_one_line() -> None:
    assert "\n" not in pull_problem(REF, "first\n  second\n")
