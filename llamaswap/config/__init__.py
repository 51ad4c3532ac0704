"""File text to a frozen `Config`, or every mistake in it with file, line and column.

`llamaswap.config.load` is the door, `llamaswap.config.model` what comes out of it.
The steps between them, each in its module, in the order in which they run:

    source       which files, what they hold, and whether they are still as they were
    environment  `${env.NAME}` in the text
    document     text to nodes that know their place (dialect in `scalars`, and in
                 `block_scalars` what writing a text out again does to its line breaks)
    merging      several files to one tree
    expanding    aliases and merge keys resolved
    macros       `${NAME}` in values: `macro_scopes` applies them, `model_macros` per model,
                 `ports` gives each its port
    reading      the readers that the sections use: `settings`, `models`, `filters`,
                 `routing`, `matrix_sets`, `peers`, `selectors`, `profiles`
    names        what every name means, across sections

`launch` tells what of a model takes another child if it changes.
"""
