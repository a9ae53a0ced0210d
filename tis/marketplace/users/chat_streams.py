"""Recorded answers of the assistant: whose they are, and how they go with the conversations that they belong to."""

from collections.abc import Iterable

from tis.streaming.sessions import Sessions


def stream_owner(user_id: int) -> str:
    """No API key has such a name."""
    return f"marketplace user {user_id}"


async def delete_streams(sessions: Sessions, user_id: int, session_ids: Iterable[str]) -> None:
    """Those of these conversations, at whichever server they are. What is being answered is cancelled."""
    owner = stream_owner(user_id)
    for session_id in session_ids:
        await sessions.refresh(owner, session_id)
        if session := sessions.peek(owner, session_id):
            await sessions.delete(session)


async def delete_all_streams(sessions: Sessions, user_id: int, session_ids: Iterable[str]) -> None:
    """Those of these conversations, and what this server has of the user besides."""
    owner = stream_owner(user_id)
    await delete_streams(sessions, user_id, {*session_ids, *(one.id for one in sessions if one.owner == owner)})
