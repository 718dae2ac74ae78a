"""/schemas and /contexts."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from duolog.avro.registry import refusals
from duolog.avro.registry.contexts import within
from duolog.avro.registry.model import AVRO, Version
from duolog.avro.registry.rest_http import Answer, TextAnswer
from duolog.avro.registry.rest_models import (
    ContextId,
    SchemaAnswer,
    SubjectVersion,
    content_json,
    version_json,
)
from duolog.avro.registry.rest_parameters import (
    Deleted,
    Flag,
    Format,
    Limit,
    Offset,
    SchemaId,
    page,
    scoped,
    short_page,
)
from duolog.avro.registry.rest_routes import Endpoint
from duolog.avro.registry.rest_subjects import formatted, with_qualified
from duolog.avro.registry.service import RegistryService
from duolog.avro.registry.subject_access import SubjectAccess, limits_subjects


class SchemaRoutes:
    def __init__(self, service: RegistryService) -> None:
        self._service = service

    def endpoints(self) -> list[Endpoint]:
        one = "/schemas/ids/{id}"
        guid = "/schemas/guids/{guid}"
        unknown = (40403,)
        return [
            Endpoint("GET /schemas", self.list_schemas, list[SchemaAnswer]),
            Endpoint("GET /schemas/types", self.list_schema_types, list[str]),
            Endpoint(f"GET {one}", self.get_schema, SchemaAnswer, unknown),
            Endpoint(f"GET {one}/schema", self.get_schema_text, Any, unknown),
            Endpoint(f"GET {one}/subjects", self.list_subjects_of_id, list[str], unknown),
            Endpoint(
                f"GET {one}/versions", self.list_versions_of_id, list[SubjectVersion], unknown
            ),
            Endpoint(f"GET {guid}", self.get_schema_by_guid, SchemaAnswer, unknown),
            Endpoint(f"GET {guid}/ids", self.list_ids_of_guid, list[ContextId]),
        ]

    def context_endpoints(self) -> list[Endpoint]:
        return [
            Endpoint("GET /contexts", self.list_contexts, list[str]),
            Endpoint("DELETE /contexts/{context}", self.delete_context, None, (42211, 50001), 204),
        ]

    @limits_subjects
    def list_schemas(
        self,
        request: Request,
        subject_prefix: Annotated[str, Query(alias="subjectPrefix")] = "",
        latest_only: Annotated[Flag, Query(alias="latestOnly")] = False,
        deleted: Deleted = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        found = self._service.all_versions(
            scoped(request, subject_prefix), deleted=deleted, latest_only=latest_only
        )
        shown = short_page(SubjectAccess.of(request).versions(found), offset, limit)
        return Answer([version_json(version) for version in shown])

    @limits_subjects
    def list_schema_types(self) -> Response:
        return Answer([AVRO])

    @limits_subjects
    def get_schema(
        self,
        request: Request,
        schema_id: SchemaId,
        subject: str | None = None,
        format: Format = "",  # noqa: A002 - a name of the API
        reference_format: Annotated[str, Query(alias="referenceFormat")] = "",
        fetch_max_id: Annotated[Flag, Query(alias="fetchMaxId")] = False,
    ) -> Response:
        found = self._by_id(request, schema_id, subject)
        written = content_json(found, formatted(self._service, found, format))
        if subject is not None:
            # Confluent leaves the id out, and its Python client misses it.
            place = {"subject": found.subject, "version": found.version, "id": schema_id}
            written = {**place, **written}
        if fetch_max_id:
            written["maxId"] = self._service.largest_id(found.context)
        return Answer(with_qualified(written, found, reference_format))

    @limits_subjects
    def get_schema_text(
        self,
        request: Request,
        schema_id: SchemaId,
        subject: str | None = None,
        format: Format = "",  # noqa: A002
    ) -> Response:
        found = self._by_id(request, schema_id, subject)
        return TextAnswer(formatted(self._service, found, format) or found.content.text)

    @limits_subjects
    def list_subjects_of_id(
        self,
        request: Request,
        schema_id: SchemaId,
        subject: str = "",
        deleted: Deleted = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        versions = self._holders(request, schema_id, subject, deleted=deleted)
        return Answer(page([version.subject for version in versions], offset, limit))

    @limits_subjects
    def list_versions_of_id(
        self,
        request: Request,
        schema_id: SchemaId,
        subject: str = "",
        deleted: Deleted = False,
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        versions = self._holders(request, schema_id, subject, deleted=deleted)
        return Answer(
            [
                {"subject": version.subject, "version": version.version}
                for version in page(versions, offset, limit)
            ]
        )

    def get_schema_by_guid(
        self,
        guid: str,
        format: Format = "",  # noqa: A002
    ) -> Response:
        known = _guid(guid)
        if known is None:
            raise refusals.schema_not_found(guid)
        found = self._service.find_by_guid(known)
        return Answer(content_json(found, formatted(self._service, found, format)))

    def list_ids_of_guid(self, guid: str) -> Response:
        known = _guid(guid)
        ids = [] if known is None else self._service.ids_of_guid(known)
        return Answer([{"context": context, "id": schema_id} for context, schema_id in ids])

    def list_contexts(
        self,
        context_prefix: Annotated[str, Query(alias="contextPrefix")] = "",
        offset: Offset = 0,
        limit: Limit = -1,
    ) -> Response:
        names = [name for name in self._service.contexts() if name.startswith(context_prefix)]
        return Answer(page(names, offset, limit))

    def delete_context(self, context: str) -> Response:
        self._service.deletion.delete_context(within(context, ""))
        return Response(status_code=204)

    def _subject(self, request: Request, subject: str) -> str:
        name = scoped(request, subject)
        if not name:
            return name
        aliased = self._service.settings.aliased(name)
        if subject:
            access = SubjectAccess.of(request)
            access.check(name)
            access.check(aliased)
        return aliased

    def _by_id(self, request: Request, schema_id: int, subject: str | None) -> Version:
        found = self._service.find_by_id(schema_id, self._subject(request, subject or ""))
        if SubjectAccess.of(request).versions([found]):
            return found
        others = self._holders(request, schema_id, subject or "", deleted=True)
        if not others:
            raise refusals.schema_not_found(schema_id)
        return others[0]

    def _holders(
        self, request: Request, schema_id: int, subject: str, *, deleted: bool
    ) -> list[Version]:
        """Those of the sender's subjects that have the id."""
        access = SubjectAccess.of(request)
        name = self._subject(request, subject)
        found = self._service.versions_of_id(schema_id, name, deleted=True)
        seen = access.versions(found)
        if found and not seen:
            raise refusals.schema_not_found()
        return [version for version in seen if deleted or not version.deleted]


def _guid(written: str) -> UUID | None:
    try:
        return UUID(written)
    except ValueError:
        return None
