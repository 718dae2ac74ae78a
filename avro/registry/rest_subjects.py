"""/subjects and /compatibility."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from duolog.avro.registry.contexts import DEFAULT_CONTEXT, EVERY_CONTEXT, beside, context_of
from duolog.avro.registry.model import Candidate, Version
from duolog.avro.registry.refusals import named
from duolog.avro.registry.rest_http import Answer, TextAnswer
from duolog.avro.registry.rest_models import (
    CheckAnswer,
    SchemaAnswer,
    SchemaBody,
    content_json,
    version_json,
)
from duolog.avro.registry.rest_parameters import (
    JSON_BODY,
    Deleted,
    Flag,
    Format,
    Limit,
    Offset,
    VersionNumber,
    listed,
    page,
    scoped,
    version_number,
)
from duolog.avro.registry.rest_routes import SCHEMA_CODES, Endpoint
from duolog.avro.registry.service import Listed, RegistryService
from duolog.avro.registry.subject_access import SubjectAccess, limits_subjects, only_reads
from duolog.avro.registry.wire_names import Json
from duolog.errors import InvalidSchema, RegistryRefused


class SubjectRoutes:
    def __init__(self, service: RegistryService) -> None:
        self._service = service

    def endpoints(self) -> list[Endpoint]:
        one = "/subjects/{subject}"
        versions = f"{one}/versions"
        version = f"{versions}/{{version}}"
        checks = f"/compatibility{versions}"
        unknown = (40401, 40402, 42202)
        return [
            Endpoint("GET /subjects", self.list_subjects, list[str]),
            Endpoint(f"GET {versions}", self.list_versions, list[int], (40401,)),
            Endpoint(
                f"POST {versions}",
                self.register_schema,
                SchemaAnswer,
                (*SCHEMA_CODES, 409, 42205, 42208, 42210, 50001),
            ),
            Endpoint(f"GET {version}", self.get_version, SchemaAnswer, unknown),
            Endpoint(
                f"DELETE {version}",
                self.delete_version,
                int,
                (*unknown, 40406, 40407, 42205, 42206, 50001),
            ),
            Endpoint(f"GET {version}/schema", self.get_version_text, Any, unknown),
            Endpoint(f"GET {version}/referencedby", self.list_referrers, list[int], unknown),
            Endpoint(f"GET {one}/metadata", self.get_by_metadata, SchemaAnswer, (40401, 40403)),
            Endpoint(
                f"POST {one}", self.look_up_schema, SchemaAnswer, (*SCHEMA_CODES, 40401, 40403)
            ),
            Endpoint(
                f"DELETE {one}",
                self.delete_subject,
                list[int],
                (40401, 40404, 40405, 42205, 42206, 50001),
            ),
            Endpoint(f"POST {checks}", self.check_against_subject, CheckAnswer, SCHEMA_CODES),
            Endpoint(
                f"POST {checks}/{{version}}",
                self.check_against_version,
                CheckAnswer,
                (*SCHEMA_CODES, 40402, 42202),
            ),
        ]

    @limits_subjects
    def list_subjects(
        self,
        request: Request,
        subject_prefix: Annotated[str | None, Query(alias="subjectPrefix")] = None,
        deleted: Deleted = False,
        deleted_only: Annotated[Flag, Query(alias="deletedOnly")] = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        in_context = "context" in request.path_params
        prefix = subject_prefix
        if prefix is None:
            prefix = "" if in_context else EVERY_CONTEXT
        which = listed(deleted=deleted, deleted_only=deleted_only)
        found = self._service.subjects(scoped(request, prefix), which)
        return Answer(page(SubjectAccess.of(request).subjects(found), offset, limit))

    @limits_subjects
    def list_versions(
        self,
        request: Request,
        subject: str,
        deleted: Deleted = False,
        deleted_only: Annotated[Flag, Query(alias="deletedOnly")] = False,
        deleted_as_negative: Annotated[Flag, Query(alias="deletedAsNegative")] = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        name = self._subject(request, subject)
        which = listed(deleted=deleted, deleted_only=deleted_only)
        if deleted_as_negative:
            if which is Listed.PRESENT:
                self._service.versions(name)  # 40401 when all are deleted
            which = Listed.ALL
        numbers = [
            -version.version if version.deleted and deleted_as_negative else version.version
            for version in self._service.versions(name, which)
        ]
        return Answer(page(numbers, offset, limit))

    @limits_subjects
    def register_schema(
        self,
        request: Request,
        subject: str,
        body: Annotated[SchemaBody, JSON_BODY],
        normalize: Flag = False,
        format: Format = "",  # noqa: A002 - a name of the API
        force: Flag = False,
    ) -> Response:
        name = self._subject(request, subject)
        version = self._service.registration.register(
            name, _candidate(request, name, body), normalize=normalize, force=force
        )
        written = content_json(version, self._formatted(version, format))
        return Answer({"id": version.id, "version": version.version, **written})

    @limits_subjects
    @only_reads
    def look_up_schema(
        self,
        request: Request,
        subject: str,
        body: Annotated[SchemaBody, JSON_BODY],
        normalize: Flag = False,
        format: Format = "",  # noqa: A002
        deleted: Deleted = False,
    ) -> Response:
        name = self._subject(request, subject)
        version = self._service.registration.lookup(
            name, _candidate(request, name, body), normalize=normalize, deleted=deleted
        )
        return Answer(version_json(version, self._formatted(version, format)))

    @limits_subjects
    def get_version(
        self,
        request: Request,
        subject: str,
        version: VersionNumber,
        format: Format = "",  # noqa: A002
        reference_format: Annotated[str, Query(alias="referenceFormat")] = "",
        deleted: Deleted = False,
    ) -> Response:
        found = self._version(request, subject, version, deleted=deleted)
        written = version_json(found, self._formatted(found, format))
        return Answer(with_qualified(written, found, reference_format))

    @limits_subjects
    def get_version_text(
        self,
        request: Request,
        subject: str,
        version: VersionNumber,
        format: Format = "",  # noqa: A002
        deleted: Deleted = False,
    ) -> Response:
        found = self._version(request, subject, version, deleted=deleted)
        return TextAnswer(self._formatted(found, format) or found.content.text)

    def list_referrers(
        self,
        request: Request,
        subject: str,
        version: VersionNumber,
        deleted: Deleted = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        found = self._version(request, subject, version, deleted=True)
        return Answer(page(self._service.referrers(found, deleted=deleted), offset, limit))

    @limits_subjects
    def get_by_metadata(
        self,
        request: Request,
        subject: str,
        key: Annotated[list[str] | None, Query()] = None,
        value: Annotated[list[str] | None, Query()] = None,
        format: Format = "",  # noqa: A002
        deleted: Deleted = False,
    ) -> Response:
        properties = dict(zip(key or (), value or (), strict=False))
        found = self._service.latest_with_metadata(
            self._subject(request, subject), properties, deleted=deleted
        )
        return Answer(version_json(found, self._formatted(found, format)))

    @limits_subjects
    def delete_version(
        self, request: Request, subject: str, version: VersionNumber, permanent: Flag = False
    ) -> Response:
        number = version_number(version)
        name = self._subject(request, subject)
        return Answer(self._service.deletion.delete_version(name, number, permanent=permanent))

    @limits_subjects
    def delete_subject(self, request: Request, subject: str, permanent: Flag = False) -> Response:
        name = self._subject(request, subject)
        return Answer(self._service.deletion.delete_subject(name, permanent=permanent))

    @limits_subjects
    @only_reads
    def check_against_subject(
        self,
        request: Request,
        subject: str,
        body: Annotated[SchemaBody, JSON_BODY],
        normalize: Flag = False,
        verbose: Flag = False,
    ) -> Response:
        return self._check(request, subject, None, body, normalize=normalize, verbose=verbose)

    @limits_subjects
    @only_reads
    def check_against_version(
        self,
        request: Request,
        subject: str,
        version: VersionNumber,
        body: Annotated[SchemaBody, JSON_BODY],
        normalize: Flag = False,
        verbose: Flag = False,
    ) -> Response:
        number = version_number(version)
        return self._check(request, subject, number, body, normalize=normalize, verbose=verbose)

    def _check(
        self,
        request: Request,
        subject: str,
        version: int | None,
        body: SchemaBody,
        *,
        normalize: bool,
        verbose: bool,
    ) -> Response:
        name = self._subject(request, subject)
        previous = self._service.to_check_against(name, version)
        try:
            messages = self._service.registration.check(
                name, _candidate(request, name, body), previous, normalize=normalize
            )
        except RegistryRefused as refusal:
            if not verbose or not isinstance(named(refusal), InvalidSchema):
                raise
            messages = [str(refusal)]
        answer: Json = {"is_compatible": not messages}
        if verbose:
            answer["messages"] = messages
        return Answer(answer)

    def _subject(self, request: Request, subject: str) -> str:
        access = SubjectAccess.of(request)
        named = access.check(scoped(request, subject))
        return access.check(self._service.settings.aliased(named))

    def _version(self, request: Request, subject: str, version: str, *, deleted: bool) -> Version:
        number = version_number(version)
        name = self._subject(request, subject)
        found = self._service.find_version(name, number, deleted=deleted)
        SubjectAccess.of(request).check(found.subject)  # it may be one of another context
        return found

    def _formatted(self, version: Version, format_name: str) -> str | None:
        return formatted(self._service, version, format_name)


def _candidate(request: Request, subject: str, body: SchemaBody) -> Candidate:
    """The schema of a body, whose references may be read by its sender, too."""
    candidate = body.candidate()
    for reference in candidate.references:
        SubjectAccess.of(request).check(beside(subject, reference.subject))
    return candidate


def formatted(service: RegistryService, version: Version, format_name: str) -> str | None:
    """The schema's text in a form that was asked for. None: as it is, also for unknown forms."""
    return service.registration.resolved_text(version) if format_name == "resolved" else None


def with_qualified(written: Json, version: Version, reference_format: str) -> Json:
    """With the contexts of references spelled out, if that was asked for."""
    in_default = context_of(version.subject) == DEFAULT_CONTEXT
    if reference_format != "qualified" or in_default or not version.content.references:
        return written
    references = [
        {**reference, "subject": beside(version.subject, reference["subject"])}
        for reference in written["references"]
    ]
    return {**written, "references": references}
