"""Writers that will never come again leave nothing behind."""

from __future__ import annotations

from collections.abc import Sequence

from duolog.log.commits import Committer, Job
from duolog.log.epochs import find_epochs
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
        known = [key for key, _ in find_epochs(state.store, writer)]
        if not known:
            return False
        committer.run(ForgetEpochs(known))
        return True


class ForgetEpochs(Job):
    def __init__(self, keys: Sequence[bytes]) -> None:
        super().__init__()
        self._keys = keys

    def prepare(self, round_: Round) -> None:
        for key in self._keys:
            round_.batch.delete("epochs", key)
