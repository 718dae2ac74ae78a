"""A process that is forked while a log is open: the child is refused by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from duolog.log import open_log
from duolog.log.model import Record
from tests.support.host_server import TOKEN, ManyHosts, host_app

PARENT = """
import os, sys, warnings
from pathlib import Path
from duolog.errors import LogForked
from duolog.log import open_log
from duolog.log.model import Mode, Op, Record, Retention, TopicSettings, Writer

warnings.simplefilter("ignore")
folder = Path({folder!r})
log = open_log(folder)
log.create_topic("orders")
publish = lambda: log.publish("orders", [Record(b"x" * 100_000)] * 4)
for _ in range(40):
    publish()
documents = log.schema_documents
child = os.fork()
if child:
    for _ in range(120):  # new files, which a child that closes RocksDB would delete
        publish()
    _, status = os.waitpid(child, 0)
    log.close()
    sys.exit(os.waitstatus_to_exitcode(status))
"""

CALLS = """
calls = {
    name: getattr(type(log), name)
    for name in dir(type(log))
    if not name.startswith("_") and callable(getattr(type(log), name))
}
spared = {"close", "attend", "limit_partitions", "call_when_closed", "leave_to_parent"}
arguments = {
    "append": (Writer(Mode.BATCH, "w", "t"), 0, []),
    "last_epoch": (Writer(Mode.BATCH, "w", "t"),),
    "forget_writer": (Writer(Mode.BATCH, "w", "t"),),
    "staging": (Writer(Mode.BATCH, "w", "t"), 0),
    "staging_folder": (Writer(Mode.BATCH, "w", "t"), 0),
    "publish_rows": ("t", Op.INSERT, [{"id": 1}], ["id"]),
    "publish": ("orders", Record(b"v")),
    "publish_then": ("orders", [Record(b"v")], print),
    "wait_for_append": ({("orders", 0): 0},),
    "group_members": (),
    "record_times": ([("orders", 0, 0)],),
    "backup": (folder / "copy",),
}
import inspect
wrong = []
for name, call in calls.items():
    if name in spared:
        continue
    given = arguments.get(name)
    if given is None:
        wanted = [
            p for p in inspect.signature(call).parameters.values()
            if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
        ][1:]
        given = tuple("orders" if p.name == "reference" else "x" for p in wanted)
    keywords = {
        p.name: 0 for p in inspect.signature(call).parameters.values()
        if p.default is p.empty and p.kind is p.KEYWORD_ONLY
    }
    try:
        answered = call(log, *given, **keywords)
    except LogForked:
        continue
    except BaseException as error:
        wrong.append(f"{name}: {error!r}")
    else:
        wrong.append(f"{name} answered {answered!r}")
for use in (lambda: documents.store({b"k": b"v"}), documents.load, lambda: log.folder):
    try:
        use()
    except LogForked:
        continue
    wrong.append(f"{use} answered")
if wrong:
    sys.exit("; ".join(wrong))
"""

CHILDREN = {
    "calls": CALLS,
    "closes": "log.close(); log.close(); assert log.closed",
    "leaves": "with log: pass",
    "drops": "import gc; del log, publish; gc.collect()",
    "ends": "",
}


def run(folder: Path, child: str) -> subprocess.CompletedProcess[str]:
    code = PARENT.format(folder=str(folder)) + "else:\n" + _indented(child) + "\n    sys.exit(0)\n"
    return subprocess.run(
        [sys.executable, "-c", code], timeout=120, capture_output=True, text=True, check=False
    )


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in (code or "pass").splitlines())


@pytest.mark.parametrize("child", CHILDREN)
def test_a_forked_child_is_refused_and_harms_nothing(tmp_path: Path, child: str) -> None:
    done = run(tmp_path / "log", CHILDREN[child])
    assert (done.returncode, done.stderr) == (0, "")
    with open_log(tmp_path / "log") as log:
        assert log.offsets("orders")[0].next_offset == 640
        log.check_whole()
        assert log.publish("orders", Record(b"v"))[0].offset == 640


def test_a_child_keeps_its_own_exit_code_and_says_what_it_has_to(tmp_path: Path) -> None:
    done = run(tmp_path / "log", "print('from the child'); sys.exit(7)")
    assert (done.returncode, done.stdout, done.stderr) == (7, "from the child\n", "")


def test_no_log_is_opened_in_a_child_of_a_process_that_had_one_open(tmp_path: Path) -> None:
    code = f"""
import os, sys, warnings
from duolog.errors import LogForked
from duolog.log import open_log
warnings.simplefilter("ignore")
open_log({str(tmp_path / "one")!r}).close()
if os.fork() == 0:
    try:
        open_log({str(tmp_path / "two")!r})
    except LogForked as error:
        sys.exit(0 if "spawn" in str(error) else 1)
    sys.exit(1)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    open_log(tmp_path / "two").close()


def test_a_child_that_is_forked_before_the_first_log_opens_its_own(tmp_path: Path) -> None:
    code = f"""
import os, sys, warnings
from duolog.log import open_log
from duolog.log.model import Record
warnings.simplefilter("ignore")
child = os.fork()
with open_log({str(tmp_path)!r} + ("/parent" if child else "/child")) as log:
    log.create_topic("orders")
    for _ in range(100):
        log.publish("orders", [Record(b"x" * 100_000)] * 4)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]) if child else 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_log_at_a_host_goes_on_in_parent_and_child(tmp_path: Path) -> None:
    hosts = ManyHosts()
    try:
        with open_log(tmp_path / "log") as log:
            log.create_topic("orders")
            code = f"""
import os, sys, warnings
from duolog.log.model import Record
from duolog.reach import reach
warnings.simplefilter("ignore")
log = reach(url={hosts.add(host_app(log))!r}, token={TOKEN!r})
log.publish("orders", Record(b"before"))  # its connection is kept for what comes next
child = os.fork()
name = b"parent" if child else b"child"
for number in range(100):
    placed = log.publish("orders", Record(b"%s-%d" % (name, number)))[0].offset
    (record,) = log.fetch("orders", 0, placed, max_records=1)
    assert record.value == b"%s-%d" % (name, number)
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
log.close()
"""
            done = subprocess.run(
                [sys.executable, "-c", code],
                timeout=60,
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, "")
            assert log.offsets("orders")[0].next_offset == 201
    finally:
        hosts.stop()
