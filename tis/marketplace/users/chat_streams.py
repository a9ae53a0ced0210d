"""Recorded answers of the assistant: whose they are, and how they go with the conversations that they belong to."""

from tis.streaming.sessions import Sessions


def stream_owner(user_id: int) -> str:
    """No API key has such a name."""
    return f"marketplace user {user_id}"


async def delete_streams(sessions: Sessions, user_id: int, session_id: str | None = None) -> None:
    """Those of one conversation, or all of the user. What is being answered is cancelled."""
    owner = stream_owner(user_id)
    await sessions.refresh(owner, session_id)
    for session in sessions:
        if session.owner == owner and session_id in (None, session.id):
            await sessions.delete(session)
