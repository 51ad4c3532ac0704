"""The programs that people use: OpenAI's and Anthropic's own clients against the demonstration."""

from __future__ import annotations

from collections.abc import Iterator

import anthropic
import openai
import pytest
from anthropic import Anthropic
from anthropic.types import TextBlock
from openai import OpenAI

from support.real_daemon import Daemon, started
from support.real_daemon_demo import CHAT, EMBED, WRITER, demo_config, demo_environ

pytestmark = pytest.mark.integration

PRIORITY = "X-LlamaSwap-Priority"

GREEDY = {"temperature": 0}
"""Always the same answer: one that begins with an emoji makes this llama-server forget `message_start`."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for all: what is tested is what clients make of it."""
    folder = tmp_path_factory.mktemp("clients")
    with started(folder, demo_config(), environ=demo_environ()) as daemon:
        yield daemon


@pytest.fixture
def client(daemon: Daemon) -> Iterator[OpenAI]:
    base = f"http://127.0.0.1:{daemon.port}/v1"
    with OpenAI(base_url=base, api_key="none", max_retries=0, timeout=60) as client:
        yield client


@pytest.fixture
def claude(daemon: Daemon) -> Iterator[Anthropic]:
    base = f"http://127.0.0.1:{daemon.port}"
    with Anthropic(base_url=base, api_key="none", max_retries=0, timeout=60) as client:
        yield client


def last_priority(daemon: Daemon) -> str:
    """What the newest row says of its request's priority."""
    priority: str = daemon.rows()[-1]["metadata"]["serial_priority"]
    return priority


def rows_after(daemon: Daemon, before: int) -> None:
    """Wait for the row of the one request made since."""
    daemon.rows(before + 1)


def test_models_are_listed(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [CHAT, EMBED, WRITER]


def test_a_chat_completion_with_a_priority_of_its_own(client: OpenAI, daemon: Daemon) -> None:
    before = len(daemon.rows())

    told = client.chat.completions.create(
        model="qwen3",
        messages=[{"role": "user", "content": "Say hello."}],
        max_tokens=8,
        temperature=0,
        extra_headers={PRIORITY: "-98"},
    )

    assert told.choices[0].message.content
    assert told.usage is not None
    assert told.usage.completion_tokens > 0
    rows_after(daemon, before)
    assert last_priority(daemon) == "-98"


def test_a_streamed_chat_completion_with_a_default_priority(client: OpenAI, daemon: Daemon) -> None:
    before = len(daemon.rows())
    urgent = client.with_options(default_headers={PRIORITY: "interactive"})

    stream = urgent.chat.completions.create(
        model=CHAT,
        messages=[{"role": "user", "content": "Count to five."}],
        max_tokens=12,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert chunks[-1].usage is not None
    rows_after(daemon, before)
    assert last_priority(daemon) == "100"
    assert daemon.rows()[-1]["tokens"]["output_tokens"] == chunks[-1].usage.completion_tokens


def test_completions_plain_and_streamed(client: OpenAI) -> None:
    whole = client.completions.create(model=CHAT, prompt="Once upon", max_tokens=8, temperature=0)
    pieces = list(
        client.completions.create(model=CHAT, prompt="Once upon", max_tokens=8, temperature=0, stream=True)
    )

    assert whole.choices[0].text
    assert "".join(piece.choices[0].text for piece in pieces if piece.choices)


def test_embeddings(client: OpenAI) -> None:
    told = client.embeddings.create(model="embed", input=["one", "two"])

    assert len(told.data) == 2
    assert len(told.data[0].embedding) == len(told.data[1].embedding) > 100


def test_responses_plain_and_streamed(client: OpenAI) -> None:
    whole = client.responses.create(model=CHAT, input="Say hello.", max_output_tokens=16, temperature=0)
    events = list(
        client.responses.create(model=CHAT, input="Say hi.", max_output_tokens=16, temperature=0, stream=True)
    )

    assert whole.output_text
    assert events[0].type == "response.created"
    assert events[-1].type == "response.completed"


def test_a_model_that_is_not_there_is_the_error_clients_expect(client: OpenAI, claude: Anthropic) -> None:
    with pytest.raises(openai.NotFoundError) as told:
        client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "hi"}])
    assert told.value.code == "not_found"
    assert told.value.type == "invalid_request_error"
    assert "no router for requested model" in told.value.message

    with pytest.raises(anthropic.NotFoundError):
        claude.messages.create(model="claude-9", max_tokens=5, messages=[{"role": "user", "content": "hi"}])


def test_messages_plain_and_streamed(claude: Anthropic, daemon: Daemon) -> None:
    before = len(daemon.rows())
    told = claude.messages.create(
        model=CHAT,
        max_tokens=8,
        messages=[{"role": "user", "content": "Say hello."}],
        extra_headers={PRIORITY: "normal"},
        extra_body=GREEDY,
    )
    (block,) = told.content
    assert isinstance(block, TextBlock)
    assert block.text
    assert told.usage.output_tokens > 0
    rows_after(daemon, before)
    assert last_priority(daemon) == "0"

    with claude.messages.stream(
        model=CHAT,
        max_tokens=8,
        messages=[{"role": "user", "content": "Say hello."}],
        extra_body=GREEDY,
    ) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text
    assert final.usage.output_tokens > 0


def test_counting_tokens_is_no_job_of_a_resident_model(claude: Anthropic, daemon: Daemon) -> None:
    assert daemon.chat(CHAT, max_tokens=1).status == 200
    before = daemon.total("llamaswap_scheduler_dispatched_total")

    told = claude.messages.count_tokens(model=CHAT, messages=[{"role": "user", "content": "How long?"}])

    assert told.input_tokens > 3
    assert daemon.total("llamaswap_scheduler_dispatched_total") == before
