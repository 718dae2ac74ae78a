"""Attacks by those who have no token, a wrong one, or one that is not enough."""

from __future__ import annotations

import base64

from tests.drills.edge.hosting import ROLES, SECRET, Edge, until
from tests.drills.edge.requests import GUARDED, INTERNAL, OPEN_PATHS
from tests.drills.edge.table import attack
from tests.drills.edge.wire import Answer, request

_KIND = "authentication"


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _refused_everywhere(edge: Edge, headers: dict[str, str]) -> None:
    for each in GUARDED:
        answer = edge.host.ask(
            each.method, each.path, each.content, headers={**each.headers, **headers}
        )
        assert answer.status == 401, (each, answer)
        _tells_nothing(edge, answer)


def _tells_nothing(edge: Edge, answer: Answer) -> None:
    assert SECRET not in answer.text, answer
    assert not any(token in answer.text for token in edge.tokens.values()), answer


@attack(_KIND, how="each path and method without `Authorization`", result="401")
def no_token(edge: Edge) -> None:
    _refused_everywhere(edge, {})


@attack(
    _KIND,
    how="a right token cut, lengthened, in capitals, empty, or with another scheme; a hash of the "
    "token file; a made-up token of this machine",
    result="401",
)
def wrong_token(edge: Edge) -> None:
    right = edge.tokens["system"]
    stored = (edge.folder / "tokens").read_text().partition('"sha256": "')[2].partition('"')[0]
    wrong = ("", right[:-1], f"{right}x", right.upper(), stored, f"duolog-local.{'0' * 64}.0")
    assert len(stored) == 64
    headers = [_bearer(token) for token in wrong]
    headers += [{"Authorization": text} for text in (right, f"Token {right}", "Basic %%%")]
    for each in headers:
        answer = edge.host.ask("GET", "/metrics", headers=each)
        assert answer.status == 401, (each, answer)
        _tells_nothing(edge, answer)
    _refused_everywhere(edge, _bearer(f"{right[:-1]}~"))


@attack(_KIND, how="a token after `duolog token revoke`", result="401")
def revoked_token(edge: Edge) -> None:
    _refused_everywhere(edge, _bearer(edge.tokens["revoked"]))


@attack(_KIND, how="a token after its `--expires-seconds`", result="401")
def expired_token(edge: Edge) -> None:
    brought = _bearer(edge.tokens["expired"])
    until(
        lambda: edge.host.ask("GET", "/metrics", headers=brought).status == 401, within_seconds=3.0
    )
    _refused_everywhere(edge, brought)


@attack(
    _KIND, how="the former token after `duolog token rotate`", result="401; the new one is taken"
)
def former_token(edge: Edge) -> None:
    _refused_everywhere(edge, _bearer(edge.former))
    assert edge.ask("GET", "/metrics", who="rotated").status == 200


@attack(
    _KIND,
    how="a right token as `?token=`, `?access_token=`, user name, cookie, or other header",
    result="401",
)
def token_in_the_url(edge: Edge) -> None:
    token = edge.tokens["system"]
    for target, headers in (
        (f"/metrics?token={token}", ()),
        (f"/metrics?access_token={token}", ()),
        (f"/metrics?authorization=Bearer%20{token}", ()),
        (f"http://{token}:{token}@localhost/metrics", ()),
        ("/metrics", (f"Cookie: token={token}",)),
        ("/metrics", (f"X-Authorization: Bearer {token}",)),
        ("/metrics", (f"Proxy-Authorization: Bearer {token}",)),
    ):
        (answer,) = edge.host.send(request("GET", target, *headers))
        assert answer.status in {400, 401}, (target, answer)
        _tells_nothing(edge, answer)


@attack(_KIND, how="two `Authorization` headers, one of them right", result="401")
def two_tokens(edge: Edge) -> None:
    right = f"Authorization: Bearer {edge.tokens['system']}"
    for headers in ((right, right), (right, "Authorization: Bearer x"), ("Authorization: ", right)):
        (answer,) = edge.host.send(request("GET", "/metrics", *headers))
        assert answer.status == 401, (headers, answer)


@attack(
    _KIND,
    how="each path, method and kind of statement with every role below its own",
    result="403; 401 for calls between Duolog processes",
)
def role_too_low(edge: Edge) -> None:
    for each in GUARDED:
        for role in ROLES:
            answer = edge.ask(each.method, each.path, each.content, who=role, headers=each.headers)
            is_too_low = ROLES.index(role) < ROLES.index(each.least_role)
            expected = 401 if each.headers else 403
            if is_too_low:
                assert answer.status == expected, (each, role, answer)
                _tells_nothing(edge, answer)
            else:
                assert answer.status not in {401, 403}, (each, role, answer)


@attack(
    _KIND,
    how="each path with `%0a`, `%0d`, `%00`, `%20`, `/`, `;` behind it, with the lowest role and "
    "with a limited token",
    result="404, or what the path itself says",
)
def path_with_an_ending(edge: Edge) -> None:
    for each in GUARDED:
        for ending in ("%0a", "%0d%0a", "%0d", "%00", "%20", "/", ";", "%2f"):
            for who in ("user", "for orders"):
                answer = edge.ask(
                    each.method,
                    f"{each.path}{ending}",
                    each.content,
                    who=who,
                    headers=each.headers,
                )
                asks_for_itself = each.path.startswith((INTERNAL, "/registry"))
                expected = {401, 403, 404} if asks_for_itself else {404}
                if asks_for_itself and who == "for orders" and not each.unlimited:
                    expected |= {200}  # a slash makes no difference to the registry
                assert answer.status in expected, (each, ending, who, answer)
    assert edge.salaries_are_untouched()


@attack(
    _KIND,
    how="other methods, also unknown ones and `X-HTTP-Method-Override`, without a token",
    result="401, or 405 where a path is open or asks for itself",
)
def other_methods(edge: Edge) -> None:
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        for path in sorted({each.path for each in GUARDED}):
            for headers in ((), ("X-HTTP-Method-Override: GET",)):
                (answer,) = edge.host.send(_without_body(method, path, headers))
                asks_for_itself = path.startswith(INTERNAL)
                assert answer.status in {401, 405 if asks_for_itself else 401}, (method, path)
                assert b"result" not in answer.body, (method, path, answer)
        for path in OPEN_PATHS:
            (answer,) = edge.host.send(_without_body(method, path, ()))
            assert answer.status in {200, 405}, (method, path, answer)
            assert answer.status == 405 or method in {"GET", "HEAD"}, (method, path, answer)
    for method in ("CONNECT", "BREW", "get", "PRI"):
        for answer in edge.host.send(_without_body(method, "/metrics", ())):
            assert answer.status in {400, 401, 405}, (method, answer)


def _without_body(method: str, path: str, headers: tuple[str, ...]) -> bytes:
    length = () if method in {"GET", "HEAD"} else ("Content-Length: 0",)
    return request(method, path, "Duolog-Protocol: 2", *length, *headers)


@attack(
    _KIND,
    how="a path in another spelling without a token: `//`, `/./`, `/../`, `%2e`, `%2f`, capitals, "
    "`;`, `?`, `#`, a full url, `*`",
    result="400, 401 or 404; never what the path guards",
)
def other_spellings_of_a_path(edge: Edge) -> None:
    for target in (
        "//metrics", "/./metrics", "/healthz/../metrics", "/healthz/%2e%2e/metrics",
        "/healthz%2f..%2fmetrics", "/%6detrics", "/METRICS", "/metrics/", "/metrics;healthz",
        "/metrics?/healthz", "/metrics#/healthz", "/metrics%00", "/metrics%0a", "/healthz/metrics",
        "http://localhost/metrics", "http://localhost/healthz/../metrics", "*", "metrics",
        "/registry/../metrics", "/registry//subjects", "/registry/%2e%2e/metrics", "/v1/internal",
        "/v1/internal/", "/v1/internal//call/topics", "/v1/internal/../../metrics",
        "/v1/internal/hello/../call/topics", "/openapi.json/../metrics", "//localhost/metrics",
    ):  # fmt: skip
        for method in ("GET", "POST"):
            for answer in edge.host.send(_without_body(method, target, ())):
                assert answer.status in {400, 401, 404, 405}, (method, target, answer)
                assert b"duolog_" not in answer.body, (method, target, answer)
                assert b"subjects" not in answer.body, (method, target, answer)


_HIDDEN = request("GET", "/metrics")


@attack(
    _KIND,
    how="a second request hidden by `Content-Length` with `Transfer-Encoding`, two "
    "`Content-Length`, or a coding that is misspelt",
    result="400, and the connection ends; the hidden request is not answered",
)
def hidden_request(edge: Edge) -> None:
    token = f"Authorization: Bearer {edge.tokens['system']}"
    kind = "Content-Type: application/json"
    body = b'{"topic":"orders"}'
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    whole = len(chunked) + len(_HIDDEN)
    for lengths in (
        (f"Content-Length: {whole}", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", f"Content-Length: {whole}"),
        (f"Content-Length: {len(body)}", f"Content-Length: {whole}"),
        (f"Content-Length: {whole}, {whole}",),
        (f"Content-Length: +{whole}",),
        (f"Content-Length: 0x{whole:x}",),
        (f"Content-Length: {whole} {whole}",),
        (f"Content-Length: {whole}", "Transfer-Encoding: xchunked"),
        (f"Content-Length: {whole}", "Transfer-Encoding : chunked"),
        (f"Content-Length: {whole}", "Transfer-Encoding: chunked, identity"),
        ("Transfer-Encoding: identity, chunked, chunked",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: x"),
        ("Transfer-Encoding: \x0bchunked",),
    ):
        head = _keeping("/v1/api/topics/latest-offsets", kind, token, *lengths)
        _ends_unanswered(edge, head + chunked + _HIDDEN, lengths)


@attack(
    _KIND,
    how="lengths of chunks that are negative, signed, too large, with bare line ends, or with "
    "spaces",
    result="400, and the connection ends",
)
def wrong_chunks(edge: Edge) -> None:
    token = f"Authorization: Bearer {edge.tokens['system']}"
    head = _keeping(
        "/v1/api/topics/latest-offsets",
        "Content-Type: application/json",
        "Transfer-Encoding: chunked",
        token,
    )
    for chunk in (
        b"-1\r\n", b"+12\r\n", b"0x12\r\n", b"ffffffffffffffffff\r\n", b"g\r\n", b"\r\n",
        b"1_0\r\n", b"12\n", b" 12\r\n", b"12\r\n" + b'{"topic":"orders"}XX',
    ):  # fmt: skip
        _ends_unanswered(edge, head + chunk + b'{"topic":"orders"}\r\n0\r\n\r\n' + _HIDDEN, chunk)


@attack(
    _KIND,
    how="folded header lines, spaces in or behind header names, names with control characters, "
    "bare line ends",
    result="400, and the connection ends; or the one request is answered without what was hidden",
)
def header_lines_that_hide_others(edge: Edge) -> None:
    token = f"Authorization: Bearer {edge.tokens['system']}"
    for lines in (
        f"X-Folded: a\r\n {token}",
        f"X-Folded: a\r\n\t{token}",
        token.replace(":", " :", 1),
        token.replace(":", "\t:", 1),
        f"X: a\n{token}",
        f"X: a\r{token}",
        f"X: a\x00\r\n{token}",
        f" {token}",
        f"Author\x00ization: {token.partition(': ')[2]}",
        f"Authorization\x0b: {token.partition(': ')[2]}",
        f": {token}",
    ):
        answers = edge.host.send(request("GET", "/metrics", lines))
        assert len(answers) <= 1, (lines, answers)
        assert all(answer.status in {400, 401} for answer in answers), (lines, answers)


def _keeping(path: str, *headers: str) -> bytes:
    """The head of a request that leaves the connection open for more."""
    return request("POST", path, *headers).replace(b"Connection: close\r\n", b"")


def _ends_unanswered(edge: Edge, sent: bytes, how: object) -> None:
    answers = edge.host.send(sent)
    assert [answer.status for answer in answers] in ([], [400], [413]), (how, answers)


@attack(
    _KIND,
    how="without tokens: a foreign name in `Host`, in the url, twice, or as a number",
    result="403",
)
def foreign_host_name(edge: Edge) -> None:
    def asked(target: str, *hosts: str) -> list[Answer]:
        lines = [f"GET {target} HTTP/1.1", *(f"Host: {host}" for host in hosts)]
        closing = "Connection: close\r\n\r\n"
        return edge.open_host.send("\r\n".join([*lines, closing]).encode())

    for name in (
        "evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example",
        "evil.example@127.0.0.1", "0.0.0.0", "2130706434", "[::2]", "169.254.169.254", "",
        "localhost, evil.example",
    ):  # fmt: skip
        for answer in asked("/registry/subjects", name):
            assert answer.status in {400, 403}, (name, answer)
    for answer in asked("/registry/subjects", "localhost", "evil.example"):
        assert answer.status in {400, 403}, answer
    (own,) = asked("/registry/subjects", "localhost")
    assert own.status == 200


@attack(
    _KIND,
    how="without tokens: a foreign `Origin`, `null`, another port, `Sec-Fetch-Site: cross-site`, "
    "on each path",
    result="403, and no header of CORS",
)
def page_of_another_site(edge: Edge) -> None:
    port = edge.open_host.port
    for said in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://127.0.0.1:{port % 65_535 + 1}"},
        {"Origin": f"https://127.0.0.1:{port}"},
        {"Origin": f"http://127.0.0.1:{port}.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        for each in GUARDED:
            answer = edge.open_host.ask(
                each.method, each.path, each.content, headers={**each.headers, **said}
            )
            assert answer.status == 403, (said, each, answer)
            assert not any(name.startswith("access-control") for name in answer.headers), answer
        preflight = {"Access-Control-Request-Method": "POST", **said}
        assert edge.open_host.ask("OPTIONS", "/v1/api/sql", headers=preflight).status == 403


@attack(
    _KIND,
    how="a right token as the password that a browser keeps, with the `Origin` of another site",
    result="403",
)
def kept_password_of_another_site(edge: Edge) -> None:
    kept = base64.b64encode(f"x:{edge.tokens['system']}".encode()).decode()
    for said in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        for each in GUARDED:
            if each.headers:
                continue  # such calls take no passwords
            brought = {"Authorization": f"Basic {kept}", **said}
            answer = edge.host.ask(each.method, each.path, each.content, headers=brought)
            assert answer.status == 403, (said, each, answer)
    own = {"Authorization": f"Basic {kept}"}
    assert edge.host.ask("GET", "/metrics", headers=own).status == 200


@attack(
    _KIND,
    how="`X-Forwarded-For`, `-Host`, `-Proto`, `Forwarded` that say the request is of this machine",
    result="401; a page of another site stays one",
)
def forged_proxy_headers(edge: Edge) -> None:
    forged = {
        "X-Forwarded-For": "127.0.0.1",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "https",
        "X-Real-IP": "127.0.0.1",
        "Forwarded": "for=127.0.0.1;host=evil.example;proto=https",
    }
    _refused_everywhere(edge, forged)
    page = {**forged, "Origin": "https://evil.example"}
    assert edge.open_host.ask("GET", "/registry/subjects", headers=page).status == 403
