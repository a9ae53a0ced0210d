"""Modules that are faster on a CPU than those of torch and Transformers.

`fused` merges small operations of a loaded model (decision 0083), then `packed` packs its matrices or turns them into
`int8`.
"""
