"""Options of a registry's connection and of serializers."""

from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from duolog.avro.registry.options import (
    ConnectionOptions,
    RegistryOptions,
    SerializerOptions,
    is_registry_option,
)
from duolog.avro.registry.subject_names import SubjectNameStrategy
from duolog.errors import InvalidSetting

URL = "http://registry:8081"


def connected(given: dict[str, str]) -> ConnectionOptions:
    options = RegistryOptions.of({"schema.registry.url": URL} | given).connection
    assert options is not None
    return options


def test_nothing_given_means_the_logs_own_registry_and_confluents_defaults() -> None:
    assert RegistryOptions.of({}) == RegistryOptions(None, SerializerOptions())
    assert SerializerOptions().auto_register_schemas


def test_each_option_lands_in_its_place() -> None:
    options = RegistryOptions.of(
        {
            "schema.registry.url": " http://a:1/ , https://b/registry/,http://[::1]:8081",
            "basic.auth.credentials.source": "user_info",
            "basic.auth.user.info": "ann:pa:ss ",
            "ssl.ca.location": "/ca.pem",
            "ssl.certificate.location": "/c.pem",
            "ssl.key.location": "/k.pem",
            "ssl.key.password": "hush",
            "proxy.host": "p",
            "proxy.port": "3128",
            "request.header.X-Trace": "on",
            "bearer.auth.logical.cluster": "lsrc-1",
            "timeout": "2.5",
            "http.connect.timeout.ms": "500",
            "max.retries": "7",
            "retries.wait.ms": "0",
            "retries.max.wait.ms": "1500",
            "retries.deadline.ms": "9000",
            "max.schemas.per.subject": "10",
            "latest.cache.ttl.sec": "-1",
            "use.latest.version": "TRUE",
            "latest.compatibility.strict": "false",
            "normalize.schemas": "true",
            "key.subject.name.strategy": "Record",
            "subject.name.strategy": "topic_record_subject_name_strategy",
        }
    )
    assert options == RegistryOptions(
        ConnectionOptions(
            urls=("http://a:1", "https://b/registry", "http://[::1]:8081"),
            user_info=SecretStr("ann:pa:ss "),
            headers=(("x-trace", SecretStr("on")), ("target-sr-cluster", SecretStr("lsrc-1"))),
            proxy=SecretStr("http://p:3128"),
            ca_path="/ca.pem",
            certificate_path="/c.pem",
            key_path="/k.pem",
            key_password=SecretStr("hush"),
            connect_timeout_seconds=0.5,
            read_timeout_seconds=2.5,
            deadline_seconds=9.0,
            max_retries=7,
            retry_wait_seconds=0.0,
            retry_max_wait_seconds=1.5,
            cache_capacity=10,
            latest_cache_seconds=math.inf,
        ),
        SerializerOptions(
            auto_register_schemas=False,
            use_latest_version=True,
            latest_compatibility_strict=False,
            normalize_schemas=True,
            key_strategy=SubjectNameStrategy.RECORD,
            value_strategy=SubjectNameStrategy.TOPIC_RECORD,
        ),
    )


@pytest.mark.parametrize(
    ("spelling", "same_as", "value"),
    [
        ("url", "schema.registry.url", URL),
        ("schema.registry.basic.auth.user.info", "basic.auth.user.info", "a:b"),
        ("schema.registry.bearer.auth.token", "bearer.auth.token", "abc"),
        ("schema.registry.ssl.ca.location", "ssl.ca.location", "/ca.pem"),
        ("Basic.Auth.User.Info", "basic.auth.user.info", "a:b"),
        ("cache.capacity", "max.schemas.per.subject", "5"),
        ("cache.latest.ttl.sec", "latest.cache.ttl.sec", "5"),
        ("subject.name.strategy.type", "subject.name.strategy", "RECORD"),
    ],
)
def test_the_spellings_of_java_and_python_mean_the_same(
    spelling: str, same_as: str, value: str
) -> None:
    base = {"schema.registry.url": URL}
    expected = RegistryOptions.of(base | {same_as: value})
    assert RegistryOptions.of({**base, spelling: value}) == expected
    assert RegistryOptions.of({**base, spelling: value, same_as: value}) == expected
    if spelling != "url":
        assert expected != RegistryOptions.of(base)


def test_one_meaning_with_two_values_is_refused() -> None:
    both = {"basic.auth.user.info": "a:b", "schema.registry.basic.auth.user.info": "a:c"}
    with pytest.raises(InvalidSetting, match="mean the same and differ"):
        connected(both)


@pytest.mark.parametrize(
    "given",
    [
        {"basic.auth.user.info": "ann:s3cret"},
        {"bearer.auth.token": "s3cret"},
        {"schema.registry.url": "http://ann:s3cret@registry:8081"},
        {"ssl.certificate.location": "/c.pem", "ssl.key.password": "s3cret"},
        {"request.header.Authorization": "Bearer s3cret"},
        {"proxy": "http://me:s3cret@proxy:1"},
        {"bearer.auth.identity.pool.id": "s3cret"},
    ],
    ids=lambda given: next(reversed(given)),
)
def test_secrets_show_in_no_text_of_the_options(given: dict[str, str]) -> None:
    options = RegistryOptions.of({"schema.registry.url": URL} | given)
    assert "s3cret" not in f"{options!r} {options} {options.connection!r} {options.connection}"
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    "given",
    [
        {"basic.auth.user.info": "s3cret"},
        {"bearer.auth.token": "s3cret\u00e9"},
        {"schema.registry.url": "http://ann:s3cret@registry:port"},
        {"schema.registry.url": "htp://ann:s3cret@registry"},
        {"schema.registry.url": "http://ann:s3cret@a,http://ann:other@b"},
        {"request.header.X": "s3cret\n"},
        {"proxy": "s3cret"},
        {"proxy": "http://me:s3cret@["},
        {"proxy": "http://me:s3cret@proxy:port"},
        {"schema.registry.url": "http://ann:s3cret@a b"},
        {"basic.auth.user.info": "ann:s3cret", "schema.registry.basic.auth.user.info": "ann:s"},
        {"basic.auth.user.info": "ann:s3cret", "bearer.auth.token": "s3cret"},
    ],
    ids=str,
)
def test_secrets_show_in_no_message(given: dict[str, str]) -> None:
    given = {name: value.replace("\n", "\n.") for name, value in given.items()}
    with pytest.raises(InvalidSetting) as refusal:
        connected(given)
    assert "s3cret" not in str(refusal.value)


def test_credentials_in_the_address_are_taken_out_of_it() -> None:
    options = connected({"schema.registry.url": "https://ann:p%40ss@a:1,https://ann:p%40ss@b:1"})
    assert options.urls == ("https://a:1", "https://b:1")
    assert options.user_info == SecretStr("ann:p@ss")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("auto.register.schema", "auto.register.schemas"),
        ("basic.auth.userinfo", "basic.auth.user.info"),
        ("use.latest.versions", "use.latest.version"),
        ("schema.registry.urls", "schema.registry.url"),
        ("value.subject.naming.strategy", "value.subject.name.strategy"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(name: str, nearest: str) -> None:
    with pytest.raises(InvalidSetting, match=f"'{name}'. The nearest known one is '{nearest}'"):
        RegistryOptions.of({name: "x"})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"auto.register.schemas": "true", "use.latest.version": "true"}, "contradict each other"),
        ({"auto.register.schemas": "true", "use.schema.id": "3"}, "contradict each other"),
        ({"use.latest.version": "true", "use.schema.id": "3"}, "each names a schema"),
        ({"basic.auth.user.info": "a:b", "bearer.auth.token": "t"}, "carries one of them"),
        (
            {"request.header.Authorization": "Bearer x", "bearer.auth.token": "t"},
            "carries one of them",
        ),
        (
            {"schema.registry.url": "http://a:b@h", "basic.auth.user.info": "a:b"},
            "Credentials are both in",
        ),
        ({"schema.registry.url": "http://a:b@h,http://h2"}, "carry different credentials"),
        (
            {"basic.auth.credentials.source": "URL", "basic.auth.user.info": "a:b"},
            "credentials.source is URL",
        ),
        ({"basic.auth.credentials.source": "USER_INFO"}, "user.info is not given"),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, "must be URL or USER_INFO"),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN"}, "bearer.auth.token is not given"),
        ({"bearer.auth.credentials.source": "OAUTHBEARER"}, "must be STATIC_TOKEN"),
        ({"ssl.key.location": "/k.pem"}, "give ssl.certificate.location too"),
        ({"proxy.host": "p"}, "belong together"),
        ({"proxy.host": "p", "proxy.port": "1", "proxy": "http://q:1"}, "both given"),
        ({"schema.registry.ssl.truststore.location": "/t.jks"}, "Give PEM files"),
        ({"use.latest.with.metadata": "a=b"}, "is not taken. Use use.latest.version"),
        ({"bearer.auth.client.id": "me"}, "Tokens are not fetched"),
        ({"auto.register.schemas": "yes"}, "must be true or false; got 'yes'"),
        ({"use.schema.id": "12x"}, "use.schema.id must be a whole number"),
        ({"max.retries": "-1"}, "from 0 on; got '-1'"),
        ({"timeout": "0"}, "timeout must be above 0"),
        ({"timeout": "nan"}, "timeout must be a number"),
        ({"retries.wait.ms": "soon"}, "got 'soon'"),
        ({"cache.capacity": "0"}, "from 1 on"),
        ({"value.subject.name.strategy": "Mine"}, "value.subject.name.strategy: 'Mine' is no"),
        ({"schema.registry.url": ""}, "must not be empty"),
        ({"schema.registry.url": "http://a,"}, "Address 2 of schema.registry.url"),
        ({"schema.registry.url": "http://a?x=1"}, "has a query"),
        ({"schema.registry.url": "mock://a"}, "must be http://HOST:PORT"),
        ({"request.header.": "x"}, "no header that HTTP has"),
    ],
    ids=str,
)
def test_what_contradicts_itself_or_cannot_be_is_named(given: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        connected(given)
    assert told in str(refusal.value)


@pytest.mark.parametrize("name", ["basic.auth.user.info", "ssl.ca.location", "timeout", "proxy"])
def test_a_connection_without_an_address_is_refused(name: str) -> None:
    with pytest.raises(InvalidSetting, match=rf"{name} is given without schema\.registry\.url"):
        RegistryOptions.of({name: "http://a:b"} if name != "timeout" else {name: "1"})


def test_serializer_options_need_no_address() -> None:
    options = RegistryOptions.of({"use.schema.id": "7", "id.compatibility.strict": "false"})
    assert options.connection is None
    assert options.serializer.use_schema_id == 7
    assert not options.serializer.auto_register_schemas
    assert not options.serializer.id_compatibility_strict


def test_javas_minus_one_means_no_schema_id() -> None:
    assert RegistryOptions.of({"use.schema.id": "-1"}).serializer == SerializerOptions()


def test_a_choice_of_schema_turns_registration_off_by_itself() -> None:
    assert not RegistryOptions.of({"use.latest.version": "true"}).serializer.auto_register_schemas
    assert RegistryOptions.of({"use.latest.version": "false"}).serializer.auto_register_schemas


def test_options_among_others_are_told_apart() -> None:
    ours = ["schema.registry.url", "schema.registry.timeout", "request.header.x", "USE.SCHEMA.ID"]
    assert all(is_registry_option(name) for name in ours)
    assert not any(is_registry_option(name) for name in ["url", "timeout", "topic", "max.poll"])


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=3))
def test_whatever_is_given_is_taken_or_refused_by_name(given: dict[str, str]) -> None:
    try:
        RegistryOptions.of(given)
    except InvalidSetting:
        return
    assert all(is_registry_option(name) or name in {"url", "timeout", "proxy"} for name in given)
