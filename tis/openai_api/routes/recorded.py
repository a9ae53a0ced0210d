"""A request whose answer is recorded: finds the answer that a cursor or a session names, or begins one."""

from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Protocol

from fastapi import Request, Response

from tis.cancellation import race_draining
from tis.engine.engine import Engine
from tis.errors import BadRequest
from tis.http.event_stream import (
    CLIENT_CLOSED_REQUEST,
    ClientGone,
    failing_once,
    is_long,
    parse_cursor,
    session_headers,
    whole_turn,
)
from tis.http.scanned_route import in_thread_if, is_large_body
from tis.openai_api.wire.chat_request import StreamOptions
from tis.openai_api.wire.sse import UsageView, follow, require_dialect, turn_behind
from tis.streaming.errors import SessionConflict
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.turn import Turn

_MAX_HEAD_BYTES = 200  # the beginning of a chunk: its id and `object`
Fold = Callable[[Iterable[bytes], bytes], bytes]


class RecordedRequest(Protocol):
    session_id: str | None
    stream: bool | None
    stream_options: StreamOptions | None

    @property
    def has_prompt(self) -> bool:
        """Without one it resumes a session."""
        ...

    @property
    def wants_usage(self) -> bool: ...

    def fingerprint(self) -> str: ...


class RecordedAnswer:
    """`prompt_field`: the name of the prompt, in errors. `chunk_object`: the `object` of the chunks of its answers."""

    def __init__(
        self,
        body: RecordedRequest,
        request: Request,
        sessions: Sessions,
        owner: str,
        *,
        dialect: str,
        prompt_field: str,
        chunk_object: str,
        last_event_id: str | None,
        last_event_id_query: str | None,
    ) -> None:
        self._body = body
        self._request = request
        self._sessions = sessions
        self._owner = owner
        self._dialect = dialect
        self._prompt_field = prompt_field
        self._mark = b'","object":"%b",' % chunk_object.encode()
        self._is_large = is_large_body(request)
        self._cursor = parse_cursor(last_event_id, last_event_id_query, body.session_id)
        self._view = UsageView(body.wants_usage if body.stream_options else None)

    async def find_or_begin(
        self, engine: Engine, begin: Callable[[SessionRequest], Coroutine[Any, Any, tuple[Session, Turn]]]
    ) -> tuple[Session, Turn]:
        body, sessions = self._body, self._sessions
        if self._cursor or not body.has_prompt:
            named = self._cursor[0] if self._cursor else body.session_id
            await sessions.refresh(self._owner, named, is_required=True)
        else:
            await sessions.refresh(self._owner, body.session_id)
        if self._cursor:
            session = sessions.find(self._owner, self._cursor[0])
            if not body.has_prompt:
                return session, await turn_behind(session, self._cursor[1], self._view)
            return session, await self._turn_of_prompt(session, self._cursor[1])
        if not body.has_prompt:
            session = self._named_session()
            return session, session.latest
        fingerprint = await in_thread_if(self._is_large, body.fingerprint)
        resumable = bool(body.stream or body.session_id)
        wanted = SessionRequest(self._owner, body.session_id, fingerprint, resumable=resumable)
        if found := sessions.find_turn(wanted):
            return found
        return await race_draining(engine.until_draining(), begin(wanted))

    async def response(self, session: Session, turn: Turn, fold: Fold) -> Response:
        require_dialect(turn, self._dialect)
        if self._body.stream:
            after = self._cursor[1] if self._cursor else turn.first_index - 1
            return await follow(session, turn, after, self._view)
        return await self._folded(session, turn, fold)

    async def _turn_of_prompt(self, session: Session, index: int) -> Turn:
        """The turn that continues after a cursor. Raises if neither it nor a later one answers the request."""
        turn = session.turn_with(await in_thread_if(self._is_large, self._body.fingerprint))
        last_index = self._view.last_index(turn) if turn else None
        if (
            turn
            and not turn.was_abandoned
            and last_index is not None
            and last_index <= index <= (self._view.max_index(turn) or 0)
        ):
            return turn  # the client has all of it, and does not want the one that began after it
        continuing = await turn_behind(session, index, self._view)
        if turn is None or turn.record.number < continuing.record.number:
            name = self._prompt_field
            these = f"These {name} are" if name.endswith("s") else f"This {name} is"
            raise SessionConflict(
                f"{these} answered neither at event {index} of session {session.id!r} nor after it. "
                f"Send the {name} of that answer, or none.",
                param=name,
            )
        return continuing

    def _named_session(self) -> Session:
        if self._body.session_id is None:
            name = self._prompt_field
            raise BadRequest(f"{name}: Field required", param=name, code="missing_required_parameter")
        return self._sessions.find(self._owner, self._body.session_id)

    def _require_own(self, session: Session, first_event: bytes) -> None:
        """A session may have answers of several endpoints. An error has one form for all."""
        if self._mark not in first_event[:_MAX_HEAD_BYTES] and not first_event.startswith(b'{"error":'):
            raise SessionConflict(
                f"Another endpoint has begun the answer of session {session.id!r}. Read it there, or as a stream.",
                param="session_id",
            )

    async def _folded(self, session: Session, turn: Turn, fold: Fold) -> Response:
        await session.recording.require(turn.first_index - 1)
        try:
            with failing_once(turn):
                events = await whole_turn(self._request, session, turn)
                self._require_own(session, events[0])
                answer = await in_thread_if(is_long(events), partial(fold, events, turn.summary))
        except ClientGone:
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        return Response(answer, media_type="application/json", headers=session_headers(session))
