"""Anthropic's Messages API: `routes` import `wire`. A dialect of the chats of `openai_api`.

`chat_of_messages` turns a request into the `ChatRequest` that means the same, `begin_chat` makes its run, and
`MessageWriter` makes Anthropic's events of what happens in it. So a message is recorded, resumed, cancelled, counted
and bounded as a chat is. `fold_message` makes a whole message of the same events.

`RequestPlaces` knows which block of the request became which part of the chat: errors name what the client sent.
"""
