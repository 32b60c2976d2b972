"""The guard itself: one table in the kernel's packet filter, in this process's network.

Its chain sees what the machine forwards, which is what containers on bridges send; programs
of the machine itself never pass it. Docker's own rules stay as they are: a packet that one table
refuses is refused, whatever the others say.
"""

from __future__ import annotations

import errno
import hashlib
import ipaddress
from typing import Final

from agent.errors import GuardError
from agent.guard import netlink
from agent.guard.netlink import Message, attribute, attributes_in, nested, number, text
from agent.protocol.subnets import METADATA_ADDRESSES

TABLE: Final = "trailer_guard"
_FORWARD, _REFUSE = "forward", "refuse"
_NEW_TABLE, _DEL_TABLE, _NEW_CHAIN, _NEW_RULE, _GET_RULE = 0, 2, 3, 6, 7
# Before Docker's own rules, which are at 0: what is refused here never gets there.
_PRIORITY: Final = -10
_HOOK_FORWARD: Final = 2
_ACCEPT, _GOTO = 1, -4
_REGISTER: Final = 1
_VERDICT: Final = 0
_META_NFPROTO, _META_L4PROTO = 15, 16
_NETWORK_HEADER, _TRANSPORT_HEADER = 1, 2
_TCP, _UDP, _IPV4, _IPV6 = 6, 17, 2, 10
_DNS: Final = 53
_TCP_RESET, _UNREACHABLE, _ADMIN_PROHIBITED = 1, 2, 3
_NO_NF_TABLES: Final = (errno.EPROTONOSUPPORT, errno.EOPNOTSUPP, errno.EAFNOSUPPORT)
# Attributes of a rule.
_OF_TABLE, _EXPRESSIONS, _USERDATA = 1, 4, 7


def is_in_place() -> bool:
    """Reads only. A table that somebody emptied or changed is not in place."""
    try:
        answers = netlink.ask(Message(kind=_GET_RULE, attributes=text(1, TABLE)))
    except OSError as problem:
        if problem.errno in (errno.ENOENT, *_NO_NF_TABLES):
            return False
        raise _in_words(problem) from problem
    rules = [dict(attributes_in(answer)) for answer in answers]
    # Older kernels tell those of all tables.
    ours = [rule for rule in rules if rule.get(_OF_TABLE) == TABLE.encode() + b"\0"]
    return [rule.get(_USERDATA) for rule in ours] == [_remark()] * len(_rules())


def put() -> None:
    """Made anew as a whole, in one transaction: there is no moment without it."""
    made = Message(kind=_NEW_TABLE, flags=netlink.CREATE, attributes=text(1, TABLE))
    rules = (_rule(chain, expressions) for chain, expressions in _rules())
    try:
        netlink.change([*_gone(), made, *_chains(), *rules])
    except OSError as problem:
        raise _in_words(problem) from problem


def remove() -> None:
    """Also when it is not there, as in a kernel that knows no tables."""
    try:
        netlink.change(_gone())
    except OSError as problem:
        if problem.errno not in _NO_NF_TABLES:
            raise _in_words(problem) from problem


def _gone() -> list[Message]:
    """Only what exists can be deleted without an error."""
    name = text(1, TABLE)
    return [
        Message(kind=_NEW_TABLE, flags=netlink.CREATE, attributes=name),
        Message(kind=_DEL_TABLE, attributes=name),
    ]


def _in_words(problem: OSError) -> GuardError:
    if problem.errno in (errno.EPERM, errno.EACCES):
        why = "the right to change the packet filter (CAP_NET_ADMIN) is missing"
    elif problem.errno in _NO_NF_TABLES:
        why = "this kernel has no nf_tables"
    elif problem.errno == errno.ENOENT:
        why = "this kernel's nf_tables lacks a part that is needed (reject in inet tables)"
    else:
        why = problem.strerror or str(problem)
    return GuardError(f"The metadata addresses cannot be closed to containers: {why}.")


# --- the rules -----------------------------------------------------------------------------


def _chains() -> list[Message]:
    """One that the kernel asks about each forwarded packet, and one that it leads to."""
    hook = nested(4, number(1, _HOOK_FORWARD), number(2, _PRIORITY))
    forward = text(1, TABLE) + text(3, _FORWARD) + hook + number(5, _ACCEPT) + text(7, "filter")
    refuse = text(1, TABLE) + text(3, _REFUSE)
    return [
        Message(kind=_NEW_CHAIN, flags=netlink.CREATE, attributes=attributes)
        for attributes in (forward, refuse)
    ]


def _rule(chain: str, expressions: bytes) -> Message:
    named = text(1, TABLE) + text(2, chain)
    listed = nested(_EXPRESSIONS, expressions)
    remark = attribute(_USERDATA, _remark())
    return Message(
        kind=_NEW_RULE,
        flags=netlink.CREATE | netlink.APPEND,
        attributes=named + listed + remark,
    )


def _rules() -> list[tuple[str, bytes]]:
    """Names stay resolvable: on Google Cloud the name server has the metadata's address. The rest
    is answered, so that programs fail at once instead of waiting."""
    tcp, udp = _meta(_META_L4PROTO, bytes([_TCP])), _meta(_META_L4PROTO, bytes([_UDP]))
    refusals = [
        tcp + _to_dns() + _accept(),
        udp + _to_dns() + _accept(),
        tcp + _reset(),
        _reject(),
    ]
    return [
        *((_FORWARD, _to(address) + _refuse()) for address in METADATA_ADDRESSES),
        *((_REFUSE, refusal) for refusal in refusals),
    ]


def _remark() -> bytes:
    """A comment as `nft list ruleset` shows it. Expressions are not compared, since kernels may
    tell them differently; the digest tells these rules from those of an older agent."""
    digest = hashlib.sha256(b"".join(expressions for _, expressions in _rules())).hexdigest()[:8]
    comment = f"Trailer: no cloud metadata for containers ({digest})".encode() + b"\0"
    return bytes([0, len(comment)]) + comment


def _to(address: str) -> bytes:
    to = ipaddress.ip_address(address)
    family, offset = (_IPV4, 16) if to.version == 4 else (_IPV6, 24)
    of_family = _meta(_META_NFPROTO, bytes([family]))
    return of_family + _payload(_NETWORK_HEADER, offset, to.packed)


def _to_dns() -> bytes:
    return _payload(_TRANSPORT_HEADER, 2, _DNS.to_bytes(2, "big"))


def _meta(key: int, value: bytes) -> bytes:
    return _expression("meta", number(2, key), number(1, _REGISTER)) + _equals(value)


def _payload(header: int, offset: int, value: bytes) -> bytes:
    place = number(2, header) + number(3, offset) + number(4, len(value))
    return _expression("payload", number(1, _REGISTER), place) + _equals(value)


def _equals(value: bytes) -> bytes:
    return _expression("cmp", number(1, _REGISTER), number(2, 0), nested(3, attribute(1, value)))


def _accept() -> bytes:
    return _verdict(number(1, _ACCEPT))


def _refuse() -> bytes:
    return _verdict(number(1, _GOTO), text(2, _REFUSE))


def _verdict(*parts: bytes) -> bytes:
    return _expression("immediate", number(1, _VERDICT), nested(2, nested(2, *parts)))


def _reset() -> bytes:
    return _expression("reject", number(1, _TCP_RESET))


def _reject() -> bytes:
    code = attribute(2, bytes([_ADMIN_PROHIBITED]))
    return _expression("reject", number(1, _UNREACHABLE), code)


def _expression(name: str, *parts: bytes) -> bytes:
    return nested(1, text(1, name), nested(2, *parts))
