"""Factories: from the settings of a training to the objects that it uses.

pools      the pool and its variations
questions  tasks as assignments
models     weights, tokenizer, codec
learners   what is trained, and how it samples

Torch is imported by the functions that need it.
"""
