"""The shopping assistant: understands a sentence, finds products, and answers with nothing that is not so.

`ShoppingAssistant` has the steps: `parse_query` and `merge` understand, `find_goods` finds, `ranked` orders, a model
picks among the ids (`picks_schema`), `verify` drops what the cards do not prove, `render_answer` writes.
`AssistantTurn` records the steps as events; `resume_turn` goes on with those of another process. `catalogue_tools` are
the same search for models and, through `CatalogueAccess`, for MCP clients. All that an answer may say is on a
`ProductCard`.
"""
