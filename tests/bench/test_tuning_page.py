"""The page about tuning can be written anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.tuning_page import rewritten
from support.replays import REQUESTS

PAGE = """\
Before.

```sh
llama-swap simulate --trace few.csv \\
  --load 15
```

```text
what it said once
```

```sh
llama-swap validate c.yaml
```

```text
good
```
"""


def test_answers_are_replaced_and_everything_else_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "few.csv").write_text(REQUESTS)
    monkeypatch.chdir(tmp_path)

    page = rewritten(PAGE)

    before, after = PAGE.split("what it said once\n")
    assert page.startswith(before + "6 requests; a load takes: ")
    assert page.endswith(after)
    assert rewritten(page) == page


def test_a_command_that_fails_leaves_the_page_alone() -> None:
    with pytest.raises(RuntimeError, match="No such file"):
        rewritten(PAGE)
