"""What a run of all tests says at its end."""

from pathlib import Path

from tests.ground.suites import Suite, run_suite, told


def test_the_names_of_failed_tests_end_the_output(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_two.py").write_text(
        "def test_right():\n    assert True\n\n\ndef test_wrong():\n    assert not 1\n"
    )
    suite = Suite("two", program=("pytest", "-q", "-ra", "-p", "no:cacheprovider", str(tmp_path)))
    result = run_suite(suite)
    assert not result.passed
    first, last = told([result])
    assert first.startswith("two        FAILED (")
    assert last.startswith("FAILED ")
    assert "::test_wrong" in last
