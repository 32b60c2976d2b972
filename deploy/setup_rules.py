"""semgrep, which checks the security rules of deploy/semgrep, in an environment of its own."""

from __future__ import annotations

from setup_python import install_requirements, make_virtualenv, virtualenv_works
from setup_report import ROOT, VENV, digest, is_stamped, write_stamp

# Its sixty-odd packages want other versions than ours. Inside .venv it goes when that goes.
SEMGREP = VENV / "semgrep"
REQUIREMENTS = ROOT / "deploy" / "semgrep" / "requirements.txt"


def install_rule_checker() -> None:
    """Make the environment, and install the pinned semgrep when its requirements changed."""
    wanted = digest(REQUIREMENTS)
    if is_stamped("semgrep", wanted) and (SEMGREP / "bin" / "semgrep").exists():
        return
    if not virtualenv_works(SEMGREP):
        make_virtualenv(SEMGREP)
    install_requirements(REQUIREMENTS, SEMGREP)
    write_stamp("semgrep", wanted)
