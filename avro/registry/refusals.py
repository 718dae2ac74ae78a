"""The answers of no, with the numbers that Confluent gave them. Clients go by the numbers.

| status | error codes                                                                        |
|--------|------------------------------------------------------------------------------------|
| 404    | 40401 subject, 40402 version, 40403 schema, 40404 to 40407 deleted (not) before,   |
|        | 40408 no config of its own, 40409 no mode of its own                               |
| 409    | 409 incompatible; releases after 8.1 write 40901, clients know both                |
| 422    | 42201 schema, 42202 version, 42203 level, 42204 mode, 42205 not permitted,         |
|        | 42206 referred to, 42208 subject, 42210 rules, 42211 context not empty             |
| 500    | 50001 storage, 50002 timeout                                                       |
"""

from __future__ import annotations

from typing import Final

from duolog.errors import (
    DuologError,
    IncompatibleSchema,
    InvalidSchema,
    RegistryRefused,
    UnknownSchema,
    UnknownSubject,
)

_NAMED: Final[dict[int, type[DuologError]]] = {
    40401: UnknownSubject,
    40402: UnknownSchema,
    40403: UnknownSchema,
    409: IncompatibleSchema,
    40901: IncompatibleSchema,
    42201: InvalidSchema,
}


def named(refusal: RegistryRefused) -> DuologError:
    """The error of this code, where it has one of its own; otherwise the refusal itself."""
    kind = _NAMED.get(refusal.error_code)
    return refusal if kind is None else kind(str(refusal))


def _refusal(error_code: int, message: str) -> RegistryRefused:
    status = error_code if error_code < 1000 else error_code // 100
    return RegistryRefused(message, status=status, error_code=error_code)


def invalid_context(context: str) -> RegistryRefused:
    return _refusal(400, f"Context name '{context}' cannot contain a colon")


def subject_not_found(subject: str) -> RegistryRefused:
    return _refusal(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryRefused:
    return _refusal(40402, f"Version {version} not found.")


def schema_not_found(which: int | str | None = None) -> RegistryRefused:
    return _refusal(40403, "Schema not found" if which is None else f"Schema {which} not found")


def subject_soft_deleted(subject: str) -> RegistryRefused:
    return _refusal(
        40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
    )


def subject_not_soft_deleted(subject: str) -> RegistryRefused:
    return _refusal(
        40405, f"Subject '{subject}' was not deleted first before being permanently deleted"
    )


def version_soft_deleted(subject: str, version: int) -> RegistryRefused:
    return _refusal(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted."
        "Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryRefused:
    return _refusal(
        40407,
        f"Subject '{subject}' Version {version} was not deleted first before being permanently "
        "deleted",
    )


def no_config(subject: str) -> RegistryRefused:
    return _refusal(
        40408, f"Subject '{subject}' does not have subject-level compatibility configured"
    )


def no_mode(subject: str) -> RegistryRefused:
    return _refusal(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, differences: str) -> RegistryRefused:
    return _refusal(
        409,
        "Schema being registered is incompatible with an earlier schema for subject "
        f'"{subject}", details: {differences}',
    )


def invalid_schema(message: str) -> RegistryRefused:
    return _refusal(42201, message)


def invalid_version(version: str) -> RegistryRefused:
    return _refusal(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between "
        '[1, 2^31-1] and the string "latest"',
    )


def invalid_level() -> RegistryRefused:
    return _refusal(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive",
    )


def invalid_mode(message: str) -> RegistryRefused:
    return _refusal(42204, message)


def not_permitted(message: str) -> RegistryRefused:
    return _refusal(42205, message)


def referred_to(subject: str, version: int) -> RegistryRefused:
    return _refusal(
        42206,
        "One or more references exist to the schema "
        f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
    )


def invalid_subject(subject: str) -> RegistryRefused:
    return _refusal(42208, f"The specified subject '{subject}' is not a valid.")


def invalid_rules(message: str) -> RegistryRefused:
    return _refusal(42210, message)


def context_not_empty(context: str) -> RegistryRefused:
    return _refusal(42211, f"The specified context '{context}' is not empty.")


def storage_failed(message: str) -> RegistryRefused:
    return _refusal(50001, message)
