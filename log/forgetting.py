"""Writers that will never come again leave nothing behind."""

from __future__ import annotations

from duolog.log.commits import Committer, Job
from duolog.log.epochs import load_epoch
from duolog.log.keys import epoch_key
from duolog.log.model import Writer
from duolog.log.names import check_writer
from duolog.log.rounds import Round
from duolog.log.state import State


def forget_writer(state: State, committer: Committer, writer: Writer) -> bool:
    """Forget a writer's last epoch, durably; False when there was none. What it wrote stays."""
    check_writer(writer)
    with state.writers.hold(frozenset({str(writer)})):
        if state.store.in_doubt:
            state.ensure_writable()
        if load_epoch(state.store, writer) is None:
            return False
        committer.run(_Forget(writer))
        return True


class _Forget(Job):
    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer

    def prepare(self, round_: Round) -> None:
        round_.batch.delete("epochs", epoch_key(str(self._writer)))
