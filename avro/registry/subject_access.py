"""Which subjects a request may use.

Whoever serves the registry puts a predicate over subjects into the scope of a request whose sender
is limited to some. Every endpoint that answers such a request says so with `limits_subjects`, and
looks at each subject that it names, changes or answers with; all others are refused. The predicate
says besides whether its sender may change these subjects. What is not asked by GET is a change,
unless the endpoint says with `only_reads` that it is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from starlette.requests import Request

from duolog.avro.registry.contexts import normalized
from duolog.avro.registry.model import Version
from duolog.errors import RegistryRefused

Run = TypeVar("Run", bound=Callable[..., Any])

_IN_SCOPE: Final = "duolog.subjects"
_MARK: Final = "limits_subjects"
_READ_MARK: Final = "only_reads"
_READING: Final = ("GET", "HEAD")
_FORBIDDEN: Final = 403


class Subjects(Protocol):
    """Which subjects a sender may use, and whether for more than reading."""

    @property
    def may_change(self) -> bool: ...

    def __call__(self, subject: str, /) -> bool: ...


def limit_subjects(scope: MutableMapping[str, Any], may_use: Subjects) -> None:
    """Let this request use only the subjects for which `may_use` is true."""
    scope[_IN_SCOPE] = may_use


def limits_subjects(run: Run) -> Run:
    """Mark an endpoint that answers requests that are limited to some subjects."""
    setattr(run, _MARK, True)
    return run


def only_reads(run: Run) -> Run:
    """Mark an endpoint that changes nothing though it is asked by POST."""
    setattr(run, _READ_MARK, True)
    return run


def is_open_to(request: Request, run: Callable[..., Any]) -> bool:
    """Whether an endpoint answers this request."""
    return _IN_SCOPE not in request.scope or getattr(run, _MARK, False)


def may_ask(request: Request, run: Callable[..., Any]) -> bool:
    """Whether the sender may do what an endpoint does, for subjects of theirs."""
    if request.method in _READING or getattr(run, _READ_MARK, False):
        return True
    return _IN_SCOPE not in request.scope or bool(request.scope[_IN_SCOPE].may_change)


@dataclass(frozen=True, slots=True)
class SubjectAccess:
    """What one request may use."""

    may_use: Callable[[str], bool]

    @classmethod
    def of(cls, request: Request) -> SubjectAccess:
        return cls(request.scope.get(_IN_SCOPE, _all))

    def check(self, subject: str) -> str:
        """The subject; 403 if it is not one of the sender's, whether it is there or not."""
        if not self.may_use(normalized(subject)):
            raise forbidden(
                f"The token may not use subject '{subject}'. Have one made with --subjects that "
                "match it."
            )
        return subject

    def subjects(self, subjects: Iterable[str]) -> list[str]:
        return [subject for subject in subjects if self.may_use(normalized(subject))]

    def versions(self, versions: Iterable[Version]) -> list[Version]:
        return [version for version in versions if self.may_use(normalized(version.subject))]


def forbidden(message: str) -> RegistryRefused:
    """To be raised."""
    return RegistryRefused(message, status=_FORBIDDEN, error_code=_FORBIDDEN)


def _all(_: str) -> bool:
    return True
