"""Where Ivy fetches from, and through which proxies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies
from xml.sax.saxutils import quoteattr

from duolog.errors import InvalidSetting

URL_VARIABLE = "DUOLOG_MAVEN_URL"
SETTINGS_VARIABLE = "DUOLOG_IVY_SETTINGS"
_CENTRAL = "https://repo1.maven.org/maven2/"
# Sources and documentation are not asked for: each would be one more request for each library.
_SETTINGS = """\
<ivysettings>
  <property name="ivy.maven.lookup.sources" value="false"/>
  <property name="ivy.maven.lookup.javadoc" value="false"/>
  <settings defaultResolver="maven"/>
  <timeout-constraints>
    <timeout-constraint name="patience" connectionTimeout="15000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="maven" m2compatible="true" timeoutConstraint="patience" root={url}/>
  </resolvers>
</ivysettings>
"""


def settings_file(folder: Path) -> Path:
    """The settings file that the user named, or one written into the folder."""
    named = os.environ.get(SETTINGS_VARIABLE)
    if named:
        path = Path(named).expanduser().absolute()
        if not path.is_file():
            raise InvalidSetting(f"{SETTINGS_VARIABLE} names {path}, which is not there.")
        return path
    path = folder / "settings.xml"
    path.write_text(ivy_settings(os.environ.get(URL_VARIABLE) or _CENTRAL), encoding="utf-8")
    return path


def ivy_settings(url: str) -> str:
    """Settings for one Maven repository."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https", "file"}:
        raise InvalidSetting(f"{URL_VARIABLE} is '{url}', which is no http, https or file address.")
    if parts.username is not None:
        raise InvalidSetting(
            f"{URL_VARIABLE} has a user in it. A mirror that wants one takes an Ivy settings file "
            f"with a <credentials> element: name it with {SETTINGS_VARIABLE}."
        )
    return _SETTINGS.format(url=quoteattr(url.rstrip("/") + "/"))


def java_options() -> str:
    """What Java has to know about proxies, as a file of arguments."""
    options = proxy_options(getproxies())
    return "".join(
        '"{}"\n'.format(each.replace("\\", r"\\").replace('"', r"\"")) for each in options
    )


def proxy_options(proxies: Mapping[str, str]) -> list[str]:
    """Java's properties for what HTTP_PROXY, HTTPS_PROXY and NO_PROXY say."""
    options: list[str] = []
    for scheme in ("http", "https"):
        address = proxies.get(scheme)
        if not address:
            continue
        parts = urlsplit(address if "://" in address else f"http://{address}")
        if parts.hostname is None:
            raise InvalidSetting(f"The proxy for {scheme}, '{address}', is no address.")
        options.append(f"-D{scheme}.proxyHost={parts.hostname}")
        options.append(f"-D{scheme}.proxyPort={parts.port or 80}")
        if parts.username is not None:
            # Ivy takes these for both. Java itself sends no password to an https proxy unless told.
            options.append(f"-Dhttp.proxyUser={unquote(parts.username)}")
            options.append(f"-Dhttp.proxyPassword={unquote(parts.password or '')}")
            options.append("-Djdk.http.auth.tunneling.disabledSchemes=")
    around = [_pattern(host) for host in proxies.get("no", "").split(",") if host.strip()]
    if options and around:
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(around)}")
    return options


def _pattern(host: str) -> str:
    """`.example.com` is `*.example.com` to Java."""
    host = host.strip()
    return f"*{host}" if host.startswith(".") else host
