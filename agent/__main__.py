"""Entry point of `python -m agent`."""

import sys

from agent.health import main as health


def _main() -> int:
    arguments = sys.argv[1:]
    if arguments == ["health"]:
        # Asked every few seconds for ever: nothing that takes long to load.
        return health()
    from agent.cli import main  # noqa: PLC0415  see above

    return main(arguments)


if __name__ == "__main__":
    sys.exit(_main())
