"""Puts the values of `${needs.*}`, `${config.*}` and `${secret.*}` into a stack file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import msgspec

from workspaces.stacks.file.errors import VariablesError
from workspaces.stacks.file.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.protocol.spec import HealthCheckSpec
    from workspaces.stacks.file.types import ServiceSpec, StackFile, Variables

# $$ is a dollar sign; ${...} is a variable; $name would be one for Compose, so it is refused.
_TOKEN: Final = re.compile(r"\$\$|\$\{(?P<name>[^}]*)\}?|\$(?P<bare>[A-Za-z_]\w*)")


def resolve(
    stack_file: StackFile,
    variables: Variables,
    need_values: Mapping[str, Mapping[str, str | Secret]],
) -> StackFile:
    """Refuses with every undefined variable by name; a value with a secret in it is a secret."""
    resolving = _Resolving(stack_file, variables, need_values)
    services = tuple(resolving.service(service) for service in stack_file.services)
    if resolving.problems:
        raise VariablesError(*dict.fromkeys(resolving.problems))
    return replace(stack_file, services=services)


@dataclass
class _Resolving:
    stack_file: StackFile
    variables: Variables
    need_values: Mapping[str, Mapping[str, str | Secret]]
    problems: list[str] = field(default_factory=list)

    def service(self, service: ServiceSpec) -> ServiceSpec:
        key = f"services.{service.name}"
        environment: dict[str, str] = {}
        secret_environment: dict[str, Secret] = {}
        for name, text in service.environment.items():
            value, is_secret = self._filled(f"{key}.environment.{name}", text)
            if is_secret:
                secret_environment[name] = Secret(value)
            else:
                environment[name] = value
        return replace(
            service,
            image=self._plain(f"{key}.image", service.image),
            command=tuple(self._plain(f"{key}.command", word) for word in service.command),
            environment=environment,
            secret_environment=secret_environment,
            labels={
                name: self._plain(f"{key}.labels.{name}", text)
                for name, text in service.labels.items()
            },
            health_check=self._health_check(key, service.health_check),
            domains=tuple(
                replace(
                    domain,
                    host_name=self._plain(f"{key}.x-trailer.domain", domain.host_name).lower(),
                )
                for domain in service.domains
            ),
        )

    def _health_check(self, key: str, check: HealthCheckSpec | None) -> HealthCheckSpec | None:
        if check is None:
            return None
        test = tuple(self._plain(f"{key}.healthcheck.test", word) for word in check.test)
        return msgspec.structs.replace(check, test=test)

    def _plain(self, key: str, text: str) -> str:
        value, is_secret = self._filled(key, text)
        if is_secret:
            self._wrong(
                key, "a secret may stand only in environment, because everything else is shown"
            )
            return ""
        return value

    def _filled(self, key: str, text: str) -> tuple[str, bool]:
        is_secret = False

        def value_of(match: re.Match[str]) -> str:
            nonlocal is_secret
            if match[0] == "$$":
                return "$"
            if match["bare"] or not match[0].endswith("}"):
                self._wrong(
                    key,
                    f"{match[0]} is no variable of Trailer; write ${{config.NAME}}, or $$ for a "
                    "dollar sign",
                )
                return ""
            value = self._value(key, match["name"])
            if isinstance(value, Secret):
                is_secret = True
                return value.reveal()
            return value

        return _TOKEN.sub(value_of, text), is_secret

    def _value(self, key: str, name: str) -> str | Secret:
        space, _, rest = name.partition(".")
        found: str | Secret | None = None
        if space == "config":
            found = self.variables.config.get(rest)
            if found is None and rest in self.variables.secrets:
                self._wrong(key, f"{rest} is a secret; write ${{secret.{rest}}}")
                return ""
        elif space == "secret":
            found = self.variables.secrets.get(rest)
            if found is None and rest in self.variables.config:
                self._wrong(key, f"{rest} is not a secret; write ${{config.{rest}}}")
                return ""
        elif space == "needs":
            need, _, part = rest.partition(".")
            found = self.need_values.get(need, {}).get(part)
        else:
            self._wrong(
                key,
                f"${{{name}}} is no variable of Trailer; write ${{config.NAME}}, "
                "${secret.NAME} or ${needs.KIND.PART}",
            )
            return ""
        if found is None:
            self._wrong(key, self._undefined(space, rest))
            return ""
        return found

    def _undefined(self, space: str, rest: str) -> str:
        if space != "needs":
            kind = "config variable" if space == "config" else "secret"
            return (
                f"undefined {kind}: {rest}. Add it to trailer.vars.yml or to the stack's variables"
            )
        need, _, part = rest.partition(".")
        if need not in self.need_values:
            return f"undefined need: {need}. Add it to x-trailer.needs"
        parts = ", ".join(sorted(self.need_values[need]))
        return f"undefined part {part} of the need {need}. It has: {parts}"

    def _wrong(self, key: str, sentence: str) -> None:
        line = self._line(key)
        self.problems.append(f"{self.stack_file.file_name}, line {line}: {key}: {sentence}.")

    def _line(self, key: str) -> int:
        while key and key not in self.stack_file.lines:
            key = key.rpartition(".")[0]
        return self.stack_file.lines.get(key, 1)
