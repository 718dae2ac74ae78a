"""The function that a setting names as `module:function`.

To name it is to run it, with the rights of the process: so it is taken from settings files,
variables and the command line, which belong to who starts the process, and never from a request.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from duolog.bridge.kafka.tokens.token import Provider
from duolog.errors import InvalidSetting

SETTING: Final = "sasl.oauthbearer.token.provider"


def provider_of(named: str) -> Provider:
    """Import it. Raises InvalidSetting when there is no such function."""
    module_name, colon, function_name = named.partition(":")
    parts = [*module_name.split("."), *function_name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise InvalidSetting(f"{SETTING} is written module:function; got '{named}'.")
    try:
        found: Any = import_module(module_name)
        for part in function_name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InvalidSetting(
            f"{SETTING}={named} cannot be found: {error}. It is to be installed beside duolog, or "
            "in a folder of PYTHONPATH."
        ) from error
    except Exception as error:
        raise InvalidSetting(
            f"{SETTING}={named} cannot be imported: {type(error).__name__}: {error}."
        ) from error
    if not callable(found):
        raise InvalidSetting(f"{SETTING}={named} is no function.")
    return found  # type: ignore[no-any-return]
