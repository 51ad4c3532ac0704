"""What names mean, and which clash."""

from __future__ import annotations

from support.config_checks import loaded, rejected, warnings_of


def model(settings: str = "") -> str:
    return f"{{cmd: s, proxy: 'http://h', {settings}}}"


def test_aliases_and_keys_of_set_params_by_id_are_names_of_their_model() -> None:
    config = loaded(
        f"models: {{m: {model('aliases: [q], filters: {setParamsByID: {r: {}, m: {}, q: {}}}')}}}"
    )
    assert dict(config.names) == {"q": "m", "r": "m"}


def test_an_alias_may_come_once_even_within_one_model() -> None:
    assert rejected(f"models: {{m: {model('aliases: [q, q]')}}}") == [
        "1:54: models.m.aliases[1]: alias 'q' is already used at config.yaml:1:51"
    ]


def test_an_alias_that_is_a_model_id_is_dead_and_warned_about() -> None:
    text = f"models: {{a: {model('aliases: [b]')}, b: {model()}}}"
    assert "never used" in warnings_of(text)[0]


def test_a_key_of_set_params_by_id_must_not_be_another_models_name() -> None:
    first = "filters: {setParamsByID: {n: {}}}"
    assert "is another model's id" in rejected(f"models: {{m: {model(first)}, n: {model()}}}")[0]
    assert "is an alias of 'o'" in rejected(f"models: {{m: {model(first)}, o: {model('aliases: [n]')}}}")[0]


def test_a_qualified_peer_name_belongs_to_the_peer() -> None:
    peers = "peers: {p: {proxy: 'http://h', models: [q]}}\n"
    assert "is already a peer's model" in rejected(peers + f"models: {{p/q: {model()}}}")[0]
    assert "is already a peer's model" in rejected(peers + f"models: {{a: {model('aliases: [p/q]')}}}")[0]


def test_two_peers_must_not_own_one_qualified_name() -> None:
    text = "peers: {p: {proxy: 'http://h', models: [q/m]}, p/q: {proxy: 'http://h', models: [m]}}"
    assert [line.partition(": ")[2] for line in rejected(text)] == [
        "peers.p/q.models[0]: 'p/q/m' is already offered by 'p'"
    ]


def test_a_model_listed_twice_by_one_peer_is_one_model() -> None:
    text = "peers: {p: {proxy: 'http://h', models: [q, q]}}\nselectors: {s: {strategy: pin, targets: [q]}}"
    assert loaded(text).selectors["s"].targets == ("q",)
