"""A network of the browser's own, in which the test machine's loopback answers.

Chromium drops the requests under way whenever an interface of its network comes or goes, and
every engine of a test does that to the machine's network.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ground import hostnet
from tests.ground.hostnet import NAMESPACES, HostNumber
from tests.ground.process import LOOPBACK, run


@contextmanager
def program_in_own_network(program: str) -> Iterator[Path]:
    """Give the path of a program that is `program` inside a network of its own."""
    host = HostNumber.take()
    if host is None:
        raise RuntimeError("every number for a simulated host is taken on this machine")
    try:
        hostnet.remove_all_traces(host)
        hostnet.create_network(host)
        _lead_loopback_to_the_machine(host)
        yield _write_wrapper(host, program)
    finally:
        hostnet.remove_all_traces(host)
        host.claim.close()


def _lead_loopback_to_the_machine(host: HostNumber) -> None:
    """Send what is meant for 127.0.0.1 out on the link, and let it reach loopback over there."""
    inside = ["nsenter", f"--net={NAMESPACES / host.name}", "iptables", "-w", "-t", "nat"]
    loopback = ["-d", LOOPBACK, "-p", "tcp"]
    run(*inside, "-A", "OUTPUT", *loopback, "-j", "DNAT", "--to-destination", host.gateway)
    hostnet.lead_gateway_to_loopback(host)


def _write_wrapper(host: HostNumber, program: str) -> Path:
    wrapper = host.folder / Path(program).name
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(f'#!/bin/sh\nexec nsenter --net={NAMESPACES / host.name} {program} "$@"\n')
    wrapper.chmod(0o755)
    return wrapper
