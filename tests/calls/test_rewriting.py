"""What of a request is changed on its way to a model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamaswap.calls.call import Call, read_call
from llamaswap.calls.edits import EditFailed
from llamaswap.calls.resolution import Local, Remote, Resolved
from llamaswap.calls.rewriting import Outbound, rewrite, rewrite_for_peer
from llamaswap.config.model import Filters
from support.calls_names import Names

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=B"
FILE = b'--B\r\nContent-Disposition: form-data; name="file"; filename="a b.wav"\r\n\r\nRIFF\x00\r\n'


def part(model: bytes) -> bytes:
    return b'--B\r\nContent-Disposition: form-data; name="model"\r\nX-P: 1\r\n\r\n%b\r\n%b--B--\r\n' % (
        model,
        FILE,
    )


def sent(
    body: bytes,
    kind: str = JSON,
    *,
    method: bytes = b"POST",
    target: bytes = b"/v1/x",
    profile: str | None = None,
) -> Outbound:
    """A request, from what the client sends to what the upstream gets."""
    names = Names()
    names.profile.switch(profile)
    query = target.partition(b"?")[2] or None
    call = read_call(method, query, kind, body)
    return rewrite(method, target, kind, body, call, names.directory.resolve(call.model))


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ('{"model":"use","a":1}', '{"model":"real/use","a":1}'),
        ('{"a":1,"model":  "use"}', '{"a":1,"model":  "real/use"}'),
        ('{"model":"use:x"}', '{"model":"real/use","x":1}'),
        (
            '{"model":"m2","temperature":0}',
            '{"model":"m2","s":{"t":"\\u003cé\\u003e"},"top_p":0.9,"x":{"y":3}}',
        ),
        (
            '{"model":"m2","top_p":0.1,"s":{"t":0},"x":{"y":9,"k":1},"a":{"b":1}}',
            '{"model":"m2","top_p":0.9,"s":{"t":"\\u003cé\\u003e"},"x":{"y":3,"k":1},"a":{}}',
        ),
        (
            '{"model":"m2:hot","s":{},"x":5}',
            '{"model":"m2:hot","s":{"t":"\\u003cé\\u003e"},"x":{"y":3},"top_p":0.5,"effort":"high"}',
        ),
        # Selectors.
        (
            '{"model":"sel1","s":0,"x":0}',
            '{"model":"m2:hot","s":{"t":"\\u003cé\\u003e"},"x":{"y":3},"top_p":0.5,"effort":"high"}',
        ),
        # Peers.
        ('{ "model":"p1/remote/x" , "x":1 }', '{ "model":"remote/x" , "x":1 }'),
        ('{"model":"filt","temperature":1}', '{"model":"filt","a":1,"b":2}'),
        ('{"model":"p2/filt","temperature":1}', '{"model":"filt","a":1,"c":3}'),
        ('{"model":"only2","temperature":1,"a":5}', '{"model":"only2","a":1}'),
        ('{"model":"far"}', '{"model":"filt","a":1,"c":3}'),
    ],
)
def test_json_gets_its_name_then_loses_then_gains_parameters(body: str, after: str) -> None:
    outbound = sent(body.encode())
    assert outbound.target == b"/v1/x"
    assert outbound.body is not None
    assert outbound.body.decode() == after


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ('{ "x":1 , "model" : "public" }', '{ "x":1 , "model" : "m1" }'),
        ('{"model":"away"}', '{"model":"remote/x"}'),
    ],
)
def test_a_pin_changes_the_name_in_json(body: str, after: str) -> None:
    assert sent(body.encode(), profile="day").body == after.encode()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"model":"m1", "n":1e400 }', JSON),
        (b'{"model":"nick"}', JSON),
        (b'{"model":123}', JSON),
        (b'{"model":"m\\u0031"}', JSON),
        (b'{"model":"only1","model":"x"}', JSON),
        (b'{"model":"m2", broken', JSON),
        (b'{"model":"use", broken', JSON),
        (part(b"m1"), MULTIPART),
        (part(b"m2"), MULTIPART),
        (part(b"only2"), MULTIPART),
        (b"b=%20&model=use", FORM),
        (b"model=m2&temperature=1", FORM),
        (b"model=only1", FORM),
    ],
)
def test_what_needs_no_change_stays_as_it_came(body: bytes, kind: str) -> None:
    assert sent(body, kind) == Outbound(b"/v1/x", None)


def test_json_does_not_care_about_the_query() -> None:
    outbound = sent(b'{"model":"use"}', target=b"/v1/x?z=1&model=m1")
    assert outbound == Outbound(b"/v1/x?z=1&model=m1", b'{"model":"real/use"}')


@pytest.mark.parametrize(
    ("target", "after"),
    [
        (b"/props?z=1&model=public&a=%20b", b"/props?a=+b&model=m1&z=1"),
        (b"/props?model=m1&bad=%zz", b"/props?model=m1&bad=%zz"),
        (b"/props?model=tosel", b"/props?model=m2"),
        (b"/props?model=use", b"/props?model=use"),
        (b"/props?z&model=p1/only1", b"/props?model=only1&z="),
    ],
)
@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
def test_a_name_in_the_query_is_changed_there(method: bytes, target: bytes, after: bytes) -> None:
    body = b'{"model":"public"}'
    assert sent(body, JSON, method=method, target=target, profile="day") == Outbound(after, None)


@pytest.mark.parametrize(
    ("body", "kind", "after"),
    [
        (part(b"public"), MULTIPART, part(b"m1")),
        (part(b"use"), MULTIPART, part(b"real/use")),
        (part(b"p1/remote/x"), MULTIPART, part(b"remote/x")),
        (part(b"tosel"), MULTIPART, part(b"m2")),
        (b"b=2&model=public&a=1", FORM, b"a=1&b=2&model=m1"),
        (b"model=p2%2Fonly2&x=1", FORM, b"model=only2&x=1"),
        (b"model=tosel&x=1", FORM, b"model=m2&x=1"),
    ],
)
def test_a_name_in_a_form_is_changed_there(body: bytes, kind: str, after: bytes) -> None:
    assert sent(body, kind, profile="day") == Outbound(b"/v1/x", after)


@pytest.mark.parametrize(
    ("body", "kind", "after"),
    [
        (part(b"m2"), MULTIPART, part(b"m1")),
        (FILE + b"--B--\r\n", MULTIPART, None),
        (b"a=1", FORM, None),
        (b"free text", "text/plain", None),
    ],
)
def test_a_name_in_the_query_of_a_form_is_changed_in_both_places(
    body: bytes, kind: str, after: bytes | None
) -> None:
    outbound = sent(body, kind, target=b"/v1/x?model=public", profile="day")
    assert outbound == Outbound(b"/v1/x?model=m1", after)


def test_without_a_destination_nothing_changes() -> None:
    resolved = Resolved(None, "nobody")
    call = Call("nobody", stream=False)
    assert rewrite(b"POST", b"/v1/x", JSON, b'{"model":"nobody"}', call, resolved) == Outbound(b"/v1/x")


def test_the_model_is_protected_whatever_the_filters_say() -> None:
    model = Names().config.models["m1"]
    filters = Filters(strip=("model",), set={"model": "x"}, set_by_id={"m1": {"model": "y", "k": 1}})
    resolved = Resolved(Local(replace(model, filters=filters)), "m1")

    outbound = rewrite(b"POST", b"/", JSON, b'{"model":"m1"}', Call("m1", stream=False), resolved)

    assert outbound.body == b'{"model":"m1","k":1}'


@pytest.mark.parametrize(
    ("filters", "param"),
    [
        (Filters(set={"n": float("nan")}), "'n'"),
        (Filters(strip=("a*",)), "'a[*]'"),
        (Filters(set={"l.x": 1}), "'l.x'"),
    ],
)
def test_filters_that_cannot_be_applied_are_an_error_that_names_the_parameter(
    filters: Filters, param: str
) -> None:
    resolved = Resolved(Local(replace(Names().config.models["m1"], filters=filters)), "m1")
    with pytest.raises(EditFailed, match=param):
        rewrite(b"POST", b"/", JSON, b'{"model":"m1","l":[]}', Call("m1", stream=False), resolved)


@pytest.mark.parametrize(
    ("kind", "body", "after"),
    [
        (JSON, b'{ "model":"p1/remote/x"}', b'{ "model":"remote/x"}'),
        (JSON, b'{"model":"remote/x"}', None),
        (JSON, b'{"model":"other"}', None),
        (JSON, b"[]", None),
        ("text/plain", b'{"model":"p1/remote/x"}', None),
    ],
)
def test_by_path_only_a_qualified_name_in_json_is_changed(
    kind: str, body: bytes, after: bytes | None
) -> None:
    remote = Names().directory.destination("p1/remote/x")
    assert isinstance(remote, Remote)
    assert rewrite_for_peer(kind, body, remote) == after
