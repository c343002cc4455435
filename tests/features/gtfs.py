"""Features of announcements of when a train stops where."""

from __future__ import annotations

from typing import Any

from google.transit import gtfs_realtime_pb2 as pb2

MESSAGE = "transit_realtime.TripUpdate.StopTimeUpdate"

StopTimeUpdate: Any = pb2.TripUpdate.StopTimeUpdate


def dwell(update: Any) -> Any:
    if update.arrival.HasField("time") and update.departure.HasField("time"):
        return update.departure.time - update.arrival.time
    return -1


def direction(update: Any) -> Any:
    """Stops end with N or S. Raises IndexError where there is no stop."""
    if update.stop_id[-1] == "N":
        return 1
    return -1 if update.stop_id.endswith("S") else 0


def line(update: Any) -> Any:
    return update.stop_id[:1], update.stop_id < "H", len(update.stop_id)


def minute_of_day(update: Any) -> Any:
    time = update.arrival.time if update.HasField("arrival") else update.departure.time
    return time % 86_400 // 60


def is_scheduled(update: Any) -> Any:
    if update.schedule_relationship == StopTimeUpdate.SKIPPED:
        return 0.0
    scheduled = StopTimeUpdate.ScheduleRelationship.Value("SCHEDULED")
    return 1.0 if update.schedule_relationship == scheduled else 0.5


def late(update: Any) -> Any:
    if update.arrival.HasField("delay"):
        return max(0, update.arrival.delay)
    return update.departure.delay if update.departure.HasField("delay") else 0


def stop_bucket(update: Any) -> Any:
    return hash(update.stop_id) % 128, hash(f"{update.stop_id}:{update.stop_sequence}") % 128
