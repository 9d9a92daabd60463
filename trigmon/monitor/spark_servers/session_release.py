"""Release of sessions on Spark Connect servers when their runs have ended."""

from __future__ import annotations

from trigmon.keeper.protocol import Message
from trigmon.launch.spark.warm.attendant import Attendant
from trigmon.monitor.spark_servers.session_admission import Release, SessionAdmission

RELEASE_S = 10.0


class SessionReleases:
    """Sends the releases that are due, through the attendant; only the servers' thread uses it."""

    def __init__(self, warm: SessionAdmission, attendant: Attendant) -> None:
        self._warm = warm
        self._attendant = attendant
        self._under_way = 0
        self._next_at = 0.0

    @property
    def is_done(self) -> bool:
        """Whether no session waits for its release."""
        return not (self._under_way or self._next_at)

    def look(self, now: float) -> None:
        """Releases the sessions that are due."""
        due, self._next_at = self._warm.to_release(now)
        shelf = self._warm.shelf
        for release in due:
            server = shelf.server(release.given.server_id) if release.given.server_id else None
            url = release.given.remote or (server.url if server else "")
            if url:
                self._release(release, url)
            else:
                shelf.drop_session(release.given.run_id)

    def _release(self, release: Release, url: str) -> None:
        self._under_way += 1

        def answered(answer: Message) -> None:
            self._under_way -= 1
            self._warm.released(release, str(answer.get("error", "")))

        given = release.given
        fields = {"url": url, "user_id": given.user_id, "session_id": given.session_id}
        self._attendant.ask("release", answered, RELEASE_S, **fields)
