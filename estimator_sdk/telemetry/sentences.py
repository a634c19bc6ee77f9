"""What the user of a job is told of its events, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimator_container.contract import agent_events, events
from estimator_container.failures.verdict import who_is

from ..values.exhaustive import assert_never
from ..values.naming import size, some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from estimator_container.contract.agent_events import ChannelEvent, CheckpointEvent, OutputEvent
    from estimator_container.contract.event_decoding import AnyEvent


def sentence_about(host: str, event: AnyEvent) -> str | None:
    """What to say of an event of a host; None where nothing is to be said."""
    try:
        return _sentence(host, event)
    except ValueError:  # facts of another version, such as a reason that this one does not know
        return None


def counted(number: int, one: str, many: str) -> str:
    """
    >>> counted(1, "file", "files"), counted(2, "file", "files")
    ('1 file', '2 files')
    """
    return f"{number} {one if number == 1 else many}"


def amount(event: agent_events.ChannelProgress | agent_events.ChannelFetched) -> str:
    """How much of a channel has come."""
    return f"{size(event.bytes)} in {counted(event.objects, 'object', 'objects')}"


def _sentence(host: str, event: AnyEvent) -> str | None:
    match event:
        case events.PhaseStarted() | events.PhaseEnded() | events.Stopping() | events.Ended():
            return None  # how far a host is: see `display`
        case events.HostJoined() | events.WorldStarting() | events.RankStarted() | events.RankEnded():
            return None  # see their `recorded_for`
        case events.TrainingSteps() | events.StepTimes() | events.FailureFound():
            return None  # likewise
        case events.RankFrozen() | events.RankThawed() | events.RanksStand() | events.RanksMove():
            return _of_standing(host, event)
        case (
            events.RanksDiffer()
            | events.RankSlow()
            | events.HorovodStalled()
            | events.StepStarted()
            | events.RanksLate()
        ):
            return _of_training(event)
        case (
            agent_events.ChannelFetching()
            | agent_events.ChannelProgress()
            | agent_events.ChannelFetched()
            | agent_events.ChannelPiped()
        ):
            return _of_channel(event)
        case (
            agent_events.CheckpointRestored()
            | agent_events.CheckpointPublished()
            | agent_events.CheckpointLag()
            | agent_events.CheckpointLeftOut()
            | agent_events.CheckpointFailed()
        ):
            return _of_checkpoints(event)
        case agent_events.OutputsUploaded() | agent_events.OutputsFailed() | agent_events.OutputsLeftOut():
            return _of_outputs(event)
        case events.AttemptFailed():
            return f"attempt {event.attempt} failed: {event.reason}; trying again"
        case events.HostSuspected():
            minutes = f"{event.seconds / 60:g} minutes"
            return f"{event.host} is suspect: it has failed {event.failures} times within {minutes}"
        case events.ServiceStatus():
            return f"{event.status}: {event.message}" if event.message else event.status
        case _:
            return assert_never(event)


def _of_standing(host: str, event: events.RankFrozen | events.RankThawed | events.RanksStand | events.RanksMove) -> str:
    match event:
        case events.RankFrozen():
            return f"{who_is(host, event.rank)} was stopped from outside and will fail unless `kill -CONT` continues it"
        case events.RankThawed():
            return f"{who_is(host, event.rank)} was continued"
        case events.RanksStand(sentence=str(sentence)):
            return sentence
        case events.RanksStand():
            since = "" if event.seconds is None else f" for {event.seconds:g} s"
            return f"no rank on {host} has written anything or moved from its line{since}"
        case events.RanksMove():
            return "the ranks make progress again"
        case _:
            return assert_never(event)


def _of_training(
    event: events.RanksDiffer | events.RankSlow | events.HorovodStalled | events.StepStarted | events.RanksLate,
) -> str:
    # What a job that does well has no need of is imported here.
    match event:
        case events.RanksDiffer():
            from estimator_container.failures import drift

            return drift.sentence(event)
        case events.RankSlow():
            from estimator_container.failures import stragglers

            return stragglers.sentence(event)
        case events.HorovodStalled():
            from estimator_container.failures.horovod_stalls import Stall

            return Stall(event.seconds, {rank: tuple(names) for rank, names in event.missing.items()}).sentence()
        case events.StepStarted():
            return event.sentence
        case events.RanksLate():
            from estimator_container.failures import late_ranks

            return late_ranks.sentence(event)
        case _:
            return assert_never(event)


def _of_channel(event: ChannelEvent) -> str | None:
    match event:
        case agent_events.ChannelFetching():
            return f"fetching {event.channel} from {event.source}"
        case agent_events.ChannelPiped():
            return f"piping {event.channel} from {event.source}"
        case agent_events.ChannelFetched():
            return f"fetched {event.channel}: {amount(event)} in {event.seconds:.1f} s"
        case agent_events.ChannelProgress():
            return None  # a terminal shows it in place
        case _:
            return assert_never(event)


def _of_checkpoints(event: CheckpointEvent) -> str | None:
    match event:
        case agent_events.CheckpointRestored():
            return _restored(event)
        case agent_events.CheckpointPublished():
            return None  # there may be thousands: see `kept`
        case agent_events.CheckpointLag():
            names = _shown(event.open)
            waits = f", waiting for {names}, which is open for writing" if names else ""
            return f"checkpoints: {size(event.bytes)} not uploaded for {event.seconds:.0f} s{waits}"
        case agent_events.CheckpointLeftOut():
            return f"checkpoints: not saved until closed: {_shown(event.files)}"
        case agent_events.CheckpointFailed():
            return f"checkpoints: {event.reason}"
        case _:
            return assert_never(event)


def _restored(event: agent_events.CheckpointRestored) -> str | None:
    if not event.files:
        return None
    passed_over = "".join(f"; incomplete: {each}" for each in event.passed_over)
    where = "the plain tree" if event.base == "plain" else f"snapshot {event.base}"
    return f"checkpoints: {counted(event.files, 'file', 'files')} ({size(event.bytes)}) from {where}{passed_over}"


def _of_outputs(event: OutputEvent) -> str | None:
    match event:
        case agent_events.OutputsUploaded():
            return None  # a script may write one after the other: see `kept`
        case agent_events.OutputsFailed():
            return f"outputs: {event.reason}; trying again"
        case agent_events.OutputsLeftOut():
            return f"outputs: not uploaded: {event.reason}"
        case _:
            return assert_never(event)


def _shown(names: Sequence[str]) -> str:
    """Names of files, which may be anything: one that would not show as it is stands as a literal."""
    return some([name if name.isprintable() else repr(name) for name in names])
