"""Models that an engine elsewhere serves, behind the `Engine` Protocol: vLLM, SGLang, llama.cpp, another of ours.

`UpstreamEngine` prepares the body of a request where `LocalEngine` makes tokens, and reads an answer that is parsed
already; what is above the engine records, resumes, cancels and counts both alike (decision 0125).
"""
