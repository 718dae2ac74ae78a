"""Where a log may live: a directory of a file system whose locks and files work as it needs."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from duolog.errors import UnsupportedLocation

# File systems whose locks may not be seen by another node, or that rewrite files as a whole.
_NETWORK = frozenset(
    {
        "9p2000.L", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre",
        "ncpfs", "nfs", "nfs4", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "wekafs",
    }
)  # fmt: skip
_FUSE_NETWORK = re.compile(
    r"alluxio|blobfuse|ceph|cvmfs|davfs|dbfs|efs|gcsfuse|geesefs|gluster|goofys|juicefs|mountpoint"
    r"|nfs|rclone|s3|seaweed|smb|ssh"
)
_ESCAPED = re.compile(rb"\\([0-7]{3})")  # as the kernel writes spaces, tabs and the like
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def check_location(path: str | os.PathLike[str]) -> Path:
    """The directory that is meant, or a named refusal."""
    text = os.fspath(path)
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise UnsupportedLocation(f"{text!r} is no directory for a log.")
    if text.lower().startswith("file:/"):
        text = unquote(urlsplit(text).path)
    elif _SCHEME.match(text):
        raise UnsupportedLocation(
            f"'{text}' is an address, not a directory. A log lives on a local disk; object stores "
            "and HDFS have no locks and no appends. To write from a cluster, give the bridge's url."
        )
    try:
        folder = Path(os.path.abspath(text))  # noqa: PTH100 - resolve() would follow links
        str(folder).encode()  # as RocksDB is told it
        folder.exists()  # a name may be too long, or the working directory gone
    except OSError as error:
        raise UnsupportedLocation(
            f"{ascii(text)[:200]} cannot be the folder of a log: {error.strerror}."
        ) from error
    except UnicodeEncodeError as error:
        raise UnsupportedLocation(
            f"{ascii(text)[:200]} cannot be the folder of a log: it is not valid {error.encoding}. "
            "Give it a name in UTF-8, and use a locale with it."
        ) from error
    kind, where = file_system_of(folder)
    if is_network(kind):
        raise UnsupportedLocation(
            f"{folder} lies on {where}, a network file system ({kind}): its locks do not keep two "
            "machines apart. Use a local disk, or reach the log through a bridge by its url."
        )
    if folder.exists() and not folder.is_dir():
        raise UnsupportedLocation(f"{folder} is a file; a log is a directory.")
    return folder


def _unescaped(octal: re.Match[bytes]) -> bytes:
    return bytes([int(octal[1], 8)])


def is_network(kind: str) -> bool:
    """Whether this is a kind of file system that a log refuses."""
    if kind.startswith("fuse."):
        return _FUSE_NETWORK.search(kind) is not None
    return kind in _NETWORK


def file_system_of(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> tuple[str, str]:
    """The kind of file system and its mount point; an empty kind where it cannot be known."""
    try:
        lines = mounts.read_bytes().strip().split(b"\n")  # which the kernel escapes in names
    except OSError:  # not Linux
        return "", "/"
    real = Path(os.path.realpath(folder))
    best, kind = Path("/"), ""
    for line in lines:
        fields, _, rest = line.partition(b" - ")
        mount = Path(os.fsdecode(_ESCAPED.sub(_unescaped, fields.split(b" ")[4])))
        if real.is_relative_to(mount) and len(mount.parts) >= len(best.parts):
            best, kind = mount, rest.split(b" ")[0].decode(errors="replace")
    return kind, str(best)
