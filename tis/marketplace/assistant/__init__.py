"""The shopping assistant: understands a sentence, finds products, and answers with nothing that is not so."""
