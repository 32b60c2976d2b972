"""What an agent claims about its machine, seen from the machine and from a container on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent.host_facts import capabilities

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("present", "can_nest"),
    [
        (("dev_kvm",), True),
        ((), False),
        # A container has a /dev of its own; the kernel's list of devices is the machine's.
        (("dockerenv",), False),
        (("dockerenv", "sys_kvm"), True),
        (("dockerenv", "dev_kvm"), True),
        # The module alone is nothing that the engine could pass on.
        (("sys_kvm",), False),
    ],
)
def test_nested_virtualization_is_claimed_where_the_machine_has_kvm(
    present: tuple[str, ...], can_nest: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"dev_kvm": "_KVM", "sys_kvm": "_KVM_OF_KERNEL", "dockerenv": "_IN_CONTAINER"}
    for name, constant in places.items():
        monkeypatch.setattr(f"agent.host_facts.{constant}", tmp_path / name)
    for name in present:
        (tmp_path / name).touch()
    assert ("nested_virtualization" in capabilities()) is can_nest
