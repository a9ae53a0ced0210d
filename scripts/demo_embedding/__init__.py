"""Makes models/demo-embedding and models/demo-reranker from the words of this repository: `build_demo_embedding.py`."""
