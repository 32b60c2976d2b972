"""The audit's actions and browsers' names, as people say them."""

from __future__ import annotations

from typing import Final

_NOUNS: Final = {"apitoken": "token", "auditentry": "audit"}
_WHOLE: Final = {
    "user.login": "Signed in",
    "user.logout": "Signed out",
    "user.password": "Changed own password",
    "user.sign_out_everywhere": "Signed out everywhere else",
    "session.delete": "Signed a browser out",
    "user.password_reset": "Chose a new password by mail",
    "user.second_factor_begin": "Began to set up a second factor",
    "user.second_factor_on": "Turned the second factor on",
    "user.second_factor_off": "Turned the second factor off",
    "user.recovery_codes": "Made new recovery codes",
    "user.quota": "Set the quota of user",
    "group.quota": "Set the quota of group",
    "audit.verify": "Compared the audit with its seals",
    "host.enrol": "Made an enrolment line for host",
    "host.enrolled": "Joined as the agent of host",
    "host.token": "Took a new token as the agent of host",
    "host.revoke": "Shut out the agent of host",
    "host.confirm_state": "Confirmed the state of host",
    "host.share": "Changed capabilities on host",
    "volume.acknowledge": "Acknowledged the lost data of volume",
    "workspace.exec_opened": "Opened a terminal in workspace",
    "workspace.exec_closed": "Closed a terminal in workspace",
    "workspace.attach_opened": "Attached to workspace",
    "workspace.attach_closed": "Detached from workspace",
}
_VERBS: Final = {
    "create": "Created",
    "update": "Changed",
    "delete": "Deleted",
    "share": "Shared",
    "clone": "Cloned to",
    "start": "Started",
    "stop": "Stopped",
    "redeploy": "Redeployed",
    "rollback": "Rolled back",
    "snapshot": "Snapshotted",
    "transfer": "Handed over",
    "build": "Built",
    "cancel": "Cancelled the build of",
    "check": "Checked",
    "test": "Tested",
}
_BROWSERS: Final = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
_SYSTEMS: Final = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def action_words(action: str) -> str:
    """`workspace.update` as "Changed workspace"."""
    if action in _WHOLE:
        return _WHOLE[action]
    noun, _, verb = action.partition(".")
    told = _VERBS.get(verb, verb.replace("_", " ").capitalize())
    return f"{told} {kind_words(noun)}".strip()


def kind_words(kind: str) -> str:
    return _NOUNS.get(kind, kind)


def browser_name(user_agent: str) -> str:
    """`Firefox on Linux`, as far as what a browser says of itself can be believed."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    if browser and system:
        return f"{browser} on {system}"
    return browser or system or "Unknown browser"
