"""Where a log may live."""

from __future__ import annotations

from pathlib import Path

import pytest

from duolog.errors import UnsupportedLocation
from duolog.log.location import check_location, file_system_of, is_network

MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /mnt/share rw - nfs4 server:/export rw
31 22 0:41 / /mnt/share/local rw - tmpfs tmpfs rw
32 22 0:42 / /mnt/with\\040space rw - fuse.s3fs bucket rw
33 22 0:43 / /mnt/daten-ü rw - nfs4 server:/daten rw
34 22 0:44 / /mnt/line\u2028end\x85here rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    "address",
    ["s3://bucket/log", "gs://b", "abfss://c@a/x", "hdfs://n/x", "dbfs:/x", "S3://B/x", "http://x"],
)
def test_addresses_are_refused(address: str) -> None:
    with pytest.raises(UnsupportedLocation, match="bridge"):
        check_location(address)


@pytest.mark.parametrize("path", ["", "  ", "a\0b"])
def test_no_directory(path: str) -> None:
    with pytest.raises(UnsupportedLocation):
        check_location(path)


def test_a_file_is_no_log(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UnsupportedLocation, match="directory"):
        check_location(file)


def test_a_path_and_its_file_url_are_one(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    assert check_location(folder) == check_location(folder.as_uri()) == folder


@pytest.mark.parametrize(
    ("path", "kind", "mount"),
    [
        ("/srv/log", "ext4", "/"),
        ("/mnt/share/log", "nfs4", "/mnt/share"),
        ("/mnt/share/local/log", "tmpfs", "/mnt/share/local"),
        ("/mnt/shared", "ext4", "/"),
        ("/mnt/with space/log", "fuse.s3fs", "/mnt/with space"),
        ("/mnt/daten-ü/log", "nfs4", "/mnt/daten-ü"),
        ("/mnt/line\u2028end\x85here/log", "tmpfs", "/mnt/line\u2028end\x85here"),
    ],
)
def test_the_nearest_mount_counts(tmp_path: Path, path: str, kind: str, mount: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_bytes(b"35 22 0:45 / /mnt/caf\xe9 rw - tmpfs tmpfs rw\n" + MOUNTS.encode())
    assert file_system_of(Path(path), mounts) == (kind, mount)


@pytest.mark.parametrize("path", ["/" + "x" * 300, "/x" * 3000, "/tmp/half-\ud800-pair"])
def test_names_that_no_folder_can_have_are_refused(path: str) -> None:
    with pytest.raises(UnsupportedLocation, match="cannot be the folder of a log"):
        check_location(path)


@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        ("ext4", False), ("xfs", False), ("btrfs", False), ("tmpfs", False), ("overlay", False),
        ("zfs", False), ("fuseblk", False), ("fuse.fuse-overlayfs", False), ("virtiofs", False),
        ("", False), ("nfs", True), ("nfs4", True), ("cifs", True), ("smb3", True), ("ceph", True),
        ("lustre", True), ("fuse.sshfs", True), ("fuse.s3fs", True), ("fuse.gcsfuse", True),
        ("fuse.rclone", True), ("fuse.glusterfs", True), ("fuse.juicefs", True),
    ],
)  # fmt: skip
def test_network_file_systems_are_refused(kind: str, refused: bool) -> None:
    assert is_network(kind) is refused


def test_a_log_on_a_network_file_system_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duolog.log.location.file_system_of", lambda folder: ("nfs4", "/mnt/share"))
    with pytest.raises(UnsupportedLocation, match="nfs4"):
        check_location(tmp_path)
