"""Command lines that people had trouble with, and their words."""

from __future__ import annotations

QUOTING: list[tuple[str, list[str]]] = [
    ('srv --x "a b"', ["srv", "--x", "a b"]),
    ("srv --x 'a b'", ["srv", "--x", "a b"]),
    ('srv --kw \'{"a":"b c"}\'', ["srv", "--kw", '{"a":"b c"}']),
    (r'srv --kw "{\"a\":1}"', ["srv", "--kw", '{"a":1}']),
    ('srv --kw {"a":1}', ["srv", "--kw", "{a:1}"]),
    ('srv --s "top_k;top_p" # note', ["srv", "--s", "top_k;top_p", "#", "note"]),
    ("srv a#b", ["srv", "a#b"]),
    ("srv \\\n  --a 1 \\\n  --b 2", ["srv", "--a", "1", "--b", "2"]),
    ("srv \\  \n  --a 1", ["srv", "--a", "1"]),
    ("srv --a 1\n# --b 2\n  # --c 3\n--d 4", ["srv", "--a", "1", "--d", "4"]),
    ("srv --a 1 \\\n# --b 2\n--c 3", ["srv", "--a", "1", "--c", "3"]),
    ('srv "C:\\models\\a b.gguf"', ["srv", "C:\\models\\a b.gguf"]),
    ("srv 'C:\\models\\new'", ["srv", "C:\\models\\new"]),
    ("srv C:\\models\\new", ["srv", "C:modelsnew"]),
    ("srv --empty \"\" '' end", ["srv", "--empty", "", "", "end"]),
    ("srv\t--a\t\t1", ["srv", "--a", "1"]),
    ("srv a\"b c\"'d e'f", ["srv", "ab cd ef"]),
    ('srv "it\'s" \'say "x"\'', ["srv", "it's", 'say "x"']),
    (r"srv it\'s a\ b", ["srv", "it's", "a b"]),
    ('srv "open to the end', ["srv", "open to the end"]),
    ("srv 'open # too", ["srv", "open # too"]),
    ("srv $HOME ~ *.gguf | tee && x; > z", ["srv", "$HOME", "~", "*.gguf", "|", "tee", "&&", "x;", ">", "z"]),
    ('srv "$HOME `id` \\$x \\n"', ["srv", "$HOME `id` $x \\n"]),
    ("srv 'two\nlines'", ["srv", "two\nlines"]),
    ("srv --t '\n# gone\nleft'", ["srv", "--t", "\nleft"]),
]
"""Text of a `cmd` to its words, as llama-swap splits it."""
