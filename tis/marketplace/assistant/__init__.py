"""The shopping assistant: understands a sentence, finds products, and answers with nothing that is not so.

A question comes in at `chat_routes`, which stores it in `conversations` and starts a turn. `turn` records the stages as
events, and goes on with those of another process. Each stage is a method of `shopping_assistant`:

understand   rules (`reading`) fill in a query, `extraction` lets a model add to it
find         `finding` decides what is looked for, `goods_search` asks the search, `ranking` orders, `goods` are cards
answer       `picking` lets a model choose ids; `verifier` drops what the cards do not prove (`name_claims`,
             `number_claims`, `offer_claims`, by the words of `card_words`); `answer_texts` and `limit_texts` write

`viewers` know who asks, `wording` has the templates and words of both languages. `catalogue_tools` are the same search
for models and, through `mcp_access`, for MCP clients.
"""
