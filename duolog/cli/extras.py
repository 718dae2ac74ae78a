"""Which libraries each extra brings, and so what to install when one is missing."""

from __future__ import annotations

from importlib import metadata

from duolog.cli.checkup import requirement

EXTRAS = ("avro", "registry", "bridge", "client", "kafka", "sql", "spark")


def libraries_of_extras() -> dict[str, dict[str, str]]:
    """Libraries and their versions by extra; extras of our own among them are those of others."""
    wanted: dict[str, dict[str, str]] = {}
    inner: dict[str, list[str]] = {}
    for line in metadata.requires("duolog") or ():
        name, fits = requirement(line)
        _, _, condition = line.partition("extra ==")
        extra = condition.strip(" \"'")
        if not extra:
            continue
        if name == "duolog":
            inside = line.partition("[")[2].partition("]")[0]
            inner.setdefault(extra, []).extend(each.strip() for each in inside.split(","))
        else:
            wanted.setdefault(extra, {})[name] = fits
    for extra, others in inner.items():
        for other in others:
            wanted.setdefault(extra, {}).update(wanted.get(other, {}))
    return wanted


def what_to_install(error: ModuleNotFoundError) -> str | None:
    """For a library of an extra; nothing for any other module, whose absence is a mistake."""
    module = (error.name or "").partition(".")[0]
    library = module.replace("_", "-")
    bring = {
        extra: libraries
        for extra, libraries in libraries_of_extras().items()
        if extra in EXTRAS and library in libraries
    }
    if not bring:
        return None
    smallest = min(bring, key=lambda extra: len(bring[extra]))
    return f"This needs {module}, which is not installed: pip install 'duolog[{smallest}]'."
