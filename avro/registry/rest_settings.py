"""/config and /mode, and what a registry says of itself."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from duolog.avro.registry import refusals
from duolog.avro.registry.contexts import GLOBAL_CONTEXT, Qualified
from duolog.avro.registry.model import Config, Mode
from duolog.avro.registry.rest_http import Answer
from duolog.avro.registry.rest_models import (
    ConfigAnswer,
    ConfigBody,
    ConfigEcho,
    ModeAnswer,
    ModeBody,
)
from duolog.avro.registry.rest_parameters import JSON_BODY, Flag, scoped
from duolog.avro.registry.rest_routes import BODY_CODES, Endpoint
from duolog.avro.registry.service import RegistryService
from duolog.avro.registry.settings import GLOBAL
from duolog.avro.registry.subject_access import SubjectAccess, limits_subjects
from duolog.avro.registry.wire_names import Json, config_json

DefaultToGlobal = Annotated[
    Flag, Query(alias="defaultToGlobal", description="What goes for it, if it has none itself.")
]


class SettingsRoutes:
    """The same for all subjects and for one."""

    def __init__(self, service: RegistryService) -> None:
        self._settings = service.settings

    def endpoints(self) -> list[Endpoint]:
        config, mode = "/config/{subject}", "/mode/{subject}"
        set_config = (*BODY_CODES, 42203, 42205, 42208, 42210, 50001)
        set_mode = (*BODY_CODES, 42204, 42205, 42206, 42208, 50001)
        no_config, no_mode = (40401, 42205, 50001), (40401, 50001)
        return [
            Endpoint("GET /config", self.get_global_config, ConfigAnswer),
            Endpoint("PUT /config", self.set_global_config, ConfigEcho, set_config),
            Endpoint("DELETE /config", self.delete_global_config, ConfigAnswer, (42205, 50001)),
            Endpoint(f"GET {config}", self.get_subject_config, ConfigAnswer, (40408,)),
            Endpoint(f"PUT {config}", self.set_subject_config, ConfigEcho, set_config),
            Endpoint(f"DELETE {config}", self.delete_subject_config, ConfigAnswer, no_config),
            Endpoint("GET /mode", self.get_global_mode, ModeAnswer),
            Endpoint("PUT /mode", self.set_global_mode, ModeAnswer, set_mode),
            Endpoint("DELETE /mode", self.delete_global_mode, ModeAnswer, (50001,)),
            Endpoint(f"GET {mode}", self.get_subject_mode, ModeAnswer, (40409,)),
            Endpoint(f"PUT {mode}", self.set_subject_mode, ModeAnswer, set_mode),
            Endpoint(f"DELETE {mode}", self.delete_subject_mode, ModeAnswer, no_mode),
        ]

    @limits_subjects
    def get_global_config(
        self, request: Request, default_to_global: DefaultToGlobal = False
    ) -> Response:
        return self.get_subject_config(request, GLOBAL, default_to_global)

    @limits_subjects
    def get_subject_config(
        self, request: Request, subject: str, default_to_global: DefaultToGlobal = False
    ) -> Response:
        name = _readable(request, subject)
        if default_to_global:
            return Answer(config_json(self._settings.config_in_scope(name)))
        return Answer(config_json(self._settings.config(name)))

    def set_global_config(
        self, request: Request, body: Annotated[ConfigBody, JSON_BODY]
    ) -> Response:
        return self.set_subject_config(request, GLOBAL, body)

    @limits_subjects
    def set_subject_config(
        self, request: Request, subject: str, body: Annotated[ConfigBody, JSON_BODY]
    ) -> Response:
        config = self._settings.update_config(_subject(request, subject), body.changes())
        return Answer(_echo(config))

    def delete_global_config(self, request: Request) -> Response:
        return self.delete_subject_config(request, GLOBAL)

    @limits_subjects
    def delete_subject_config(self, request: Request, subject: str) -> Response:
        return Answer(config_json(self._settings.delete_config(_subject(request, subject))))

    @limits_subjects
    def get_global_mode(
        self, request: Request, default_to_global: DefaultToGlobal = False
    ) -> Response:
        return self.get_subject_mode(request, GLOBAL, default_to_global)

    @limits_subjects
    def get_subject_mode(
        self, request: Request, subject: str, default_to_global: DefaultToGlobal = False
    ) -> Response:
        name = _readable(request, subject)
        if default_to_global:
            return Answer({"mode": self._settings.mode_in_scope(name).value})
        return Answer({"mode": self._settings.mode(name).value})

    def set_global_mode(
        self, request: Request, body: Annotated[ModeBody, JSON_BODY], force: Flag = False
    ) -> Response:
        return self.set_subject_mode(request, GLOBAL, body, force)

    @limits_subjects
    def set_subject_mode(
        self,
        request: Request,
        subject: str,
        body: Annotated[ModeBody, JSON_BODY],
        force: Flag = False,
    ) -> Response:
        name = _subject(request, subject)
        self._settings.set_mode(name, _mode(name, body.mode), force=force)
        return Answer({"mode": body.mode} if "mode" in body.model_fields_set else {})

    def delete_global_mode(self, request: Request, recursive: Flag = False) -> Response:
        return self.delete_subject_mode(request, GLOBAL, recursive)

    @limits_subjects
    def delete_subject_mode(
        self, request: Request, subject: str, recursive: Flag = False
    ) -> Response:
        deleted = self._settings.delete_mode(_subject(request, subject), recursive=recursive)
        return Answer({} if deleted is None else {"mode": deleted.value})


def _subject(request: Request, subject: str) -> str:
    """The subject, if the sender may change it."""
    return SubjectAccess.of(request).check(scoped(request, subject))


def _readable(request: Request, subject: str) -> str:
    """The subject, if the sender may see it. What goes for all, everybody may see."""
    return scoped(request, subject) if subject == GLOBAL else _subject(request, subject)


def _echo(config: Config) -> Json:
    """What was set, with the name that requests have for the level."""
    written = config_json(config)
    level = written.pop("compatibilityLevel", None)
    return written if level is None else {"compatibility": level, **written}


def _mode(subject: str, word: str | None) -> Mode | None:
    if word is None:
        return None
    if word.upper() == "FORWARD":
        above_all = Qualified.parse(subject) == Qualified(GLOBAL_CONTEXT, "")
        raise refusals.invalid_mode(
            "Forward mode is not supported: there is no other registry to forward to"
            if above_all
            else "Forward mode only supported on global level"
        )
    try:
        return Mode(word.upper())
    except ValueError:
        raise refusals.invalid_mode(
            "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD."
        ) from None


class MetadataRoutes:
    def __init__(self, version: str, cluster: str) -> None:
        self._version = version
        self._cluster = cluster

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint("GET /", self.get_root, dict[str, Any]),
            Endpoint("POST /", self.post_root, dict[str, Any], BODY_CODES),
            Endpoint("GET /v1/metadata/id", self.get_cluster_id, dict[str, Any]),
            Endpoint("GET /v1/metadata/version", self.get_server_version, dict[str, str]),
        ]

    @limits_subjects
    def get_root(self) -> Response:
        return Answer({})

    @limits_subjects
    def post_root(self, body: Annotated[dict[str, Any], JSON_BODY]) -> Response:  # noqa: ARG002 - it is only read
        return Answer({})

    @limits_subjects
    def get_cluster_id(self) -> Response:
        clusters = {"kafka-cluster": self._cluster, "schema-registry-cluster": "schema-registry"}
        return Answer({"id": "", "scope": {"path": [], "clusters": clusters}})

    @limits_subjects
    def get_server_version(self) -> Response:
        return Answer({"version": self._version, "commitId": ""})
