"""Texts in, one vector or one score each: embeddings, and the relevance of documents to a query.

`load_pooling` reads a repository of sentence-transformers or of Transformers and makes a `LoadedPooling`. The worker of
the model steps a `PoolingRunner`, which computes the rows of many requests in one forward pass. `Encoder` lays the rows
end to end (`packed_attention`), so that no row is padded, or pads them where the model cannot be computed so.
`pooling_head` makes the vector or the score of what comes out. `VectorCache` remembers the newest vectors.
"""
