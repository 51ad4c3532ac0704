"""An upstream without a model, for tests of what stands in front of one: `python -m llamaswap.stub --help`.

It imports nothing else of llamaswap and nothing but the standard library: it
is started hundreds of times in one run, and has to be there at once.
"""
