"""What can go wrong in the agent, as types; the text of each is a sentence a user may read."""

from __future__ import annotations


class AgentError(Exception):
    """Base of everything the agent raises on purpose."""


class ConfigError(AgentError):
    """The agent cannot start as it is configured."""


class RejectedDocument(AgentError):
    """The server's state document cannot be followed; the last good one stays in force."""


class EngineError(AgentError):
    """The engine refused a call; another try may work."""


class EngineUnavailable(EngineError):
    """The engine could not be reached or did not answer before the deadline."""


class NotFound(EngineError):
    """The object is not on the engine."""


class Conflict(EngineError):
    """The engine says that the object is in use or its name is taken."""


class StepFailed(AgentError):
    """A step did not reach its goal although each engine call worked."""


class RegistryRefused(AgentError):
    """A registry that may not be asked for who named it; the engine was not asked either."""


class GuardError(AgentError):
    """The rule against metadata addresses could not be set, looked at or removed."""


class ServerError(AgentError):
    """The server refused a request for good."""


class ServerUnavailable(ServerError):
    """The server did not answer sensibly; `retry_after` is its own wish in seconds."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class LogOffsetMoved(ServerError):
    """The server holds another number of log bytes than the agent thought."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"The server has {offset} bytes of this log.")
        self.offset = offset


class Superseded(ServerError):
    """A newer session of this host exists: this agent must not change anything any more."""


class Revoked(ServerError):
    """The agent's token is no longer valid."""


class FetchError(AgentError):
    """What a user named could not be fetched; nothing is wrong with the agent or the engine."""


class AddressRefused(FetchError):
    """The name leads to an address to which nobody may connect on a user's behalf; nothing was
    sent there."""

    def __init__(self, host: str, address: str, *, is_own: bool = False) -> None:
        self.host = host
        self.address = address
        self.what = "an address of this very host" if is_own else "not an address of the internet"
        leads = "" if host == address else f" leads to {address}, which"
        super().__init__(f"{host}{leads} is {self.what}.")


class NameUnknown(FetchError):
    """The name has no address here, so nobody can say where it leads."""

    def __init__(self, host: str) -> None:
        super().__init__(f"The name {host} can't be resolved on this host.")
        self.host = host


class BadAddress(FetchError):
    """The text is no address that can be fetched."""


class InsecureServer(FetchError):
    """The server did not prove who it is; nothing was sent to it."""


class FetchCancelled(FetchError):
    """The caller no longer wants it."""
