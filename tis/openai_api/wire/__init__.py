"""The schemas of OpenAI's API: requests into plain objects, runs into events, chunks and items."""
