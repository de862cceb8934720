"""Who a plugin is, from the token it shows. Source: planner.md §8.2. Tokens are in no message and no repr."""

import hmac
from collections.abc import Mapping, Sequence
from typing import Protocol

from controllers.planner.config.parts import PluginAuth

__all__ = ("ANONYMOUS", "AllowUnauthenticated", "Authenticator", "FirstOf", "StaticSecrets", "authenticator")

ANONYMOUS = "anonymous"


class Authenticator(Protocol):
    """Turns a token into the name of who holds it."""

    def subject(self, token: str) -> str | None:
        """None: not known."""
        ...


class StaticSecrets:
    """Tokens from the configuration."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        """secret → subject. ValueError: a secret without subject."""
        if any(not subject for subject in secrets.values()):
            raise ValueError("plugin_registration.auth.static_secrets: a secret has an empty subject")
        self._secrets = tuple((secret.encode(errors="surrogatepass"), subject) for secret, subject in secrets.items() if secret)

    def subject(self, token: str) -> str | None:
        """Takes as long for any token of a length, whether one matches or not."""
        shown = token.encode(errors="surrogatepass")
        found: str | None = None
        for secret, subject in self._secrets:
            if hmac.compare_digest(shown, secret) and found is None:
                found = subject
        return found


class AllowUnauthenticated:
    """Everybody is let in. For development."""

    def subject(self, token: str) -> str | None:
        return ANONYMOUS


class FirstOf:
    """The first source that knows the token."""

    def __init__(self, sources: Sequence[Authenticator]) -> None:
        self._sources = tuple(sources)

    def subject(self, token: str) -> str | None:
        return next((subject for source in self._sources if (subject := source.subject(token)) is not None), None)


def authenticator(auth: PluginAuth) -> tuple[Authenticator, tuple[str, ...]]:
    """As configured, and warnings about it. ValueError: a secret without subject."""
    sources: list[Authenticator] = []
    warnings: list[str] = []
    for source in auth.trusted_sources or ("allow_unauthenticated",):
        if source == "static_secret":
            sources.append(StaticSecrets(auth.static_secrets))
        else:
            sources.append(AllowUnauthenticated())
            warnings.append("plugin_registration.auth: plugins are not authenticated; anyone who reaches the gateway may register one")
    return FirstOf(sources), tuple(warnings)
