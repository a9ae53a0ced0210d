"""HTTP middleware and helpers that all APIs share: API keys, body limits, error responses, CORS origins.

Before them, `transport` limits what a connection may send.

The middlewares, from the outside in (`tis/middlewares.py` adds them):

1. `RequestLogMiddleware`: request id and log line.
2. `CORSMiddleware`: preflights pass without a key, whatever headers they list; no credentials.
3. `UnhandledErrorMiddleware`: an unexpected exception becomes a 500 with the request id and nothing else.
4. `HostMiddleware`, on a loopback `HOST` only: foreign Host headers are a 403
   (`docs/decisions/0015-who-may-do-what.md`).
5. `BodySizeLimitMiddleware`: bytes of bodies under `/api`, and of all.
6. `ApiKeyMiddleware`: keys and read tokens, before any body is read.
7. `AdmissionMiddleware`: the ticket of a request, before its body is read
   (`docs/decisions/0050-a-ticket-for-every-request.md`).
8. `BodyDeadlineMiddleware`: a body that comes too slowly.
9. `JsonScanMiddleware`: text, values and levels of JSON under `/v1`, counted as it arrives; media are set aside
   (`docs/decisions/0020-what-a-request-may-cost.md`).
10. `LazyMarketplaceMiddleware`: `/api` waits while `LazyMarketplace` imports the marketplace
   (`docs/decisions/0022-start.md`).
11. `TrailingSlashMiddleware`: paths below `/v1` may end with a slash.
"""
