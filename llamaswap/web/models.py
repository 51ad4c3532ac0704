"""`/v1/models` and `/running`: what there is, and what is loaded.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from llamaswap.config.launch import fingerprints
from llamaswap.config.model import NO_MAPPING, Capabilities, Config, ModelConfig
from llamaswap.config.urls import without_user

_RESERVED = frozenset({"architecture", "capabilities", "supported_parameters", "context_length"})

JsonObject = dict[str, Any]


def list_models(
    config: Config, states: Mapping[str, str], now: int, pins: Mapping[str, str] = NO_MAPPING
) -> JsonObject:
    """Return the answer of `/v1/models`, sorted by id.

    Args:
        states: model id to state; anything but "stopped" counts as loaded.
        now: unix seconds, the `created` of every record.
        pins: of the active profile, name to target; '' for a disabled one.
    """
    records = [
        *_local_records(config, states, now),
        *_peer_records(config, now),
        *_selector_records(config, states, now),
        *_pin_records(config, pins, now),
    ]
    return {"object": "list", "data": sorted(records, key=lambda record: record["id"].encode())}


def _is_loaded(state: str) -> bool:
    return state not in ("stopped", "shutdown")


def _local_records(config: Config, states: Mapping[str, str], now: int) -> Iterator[JsonObject]:
    for model in config.models.values():
        if model.unlisted:
            continue
        record = model_record(model, loaded=_is_loaded(states.get(model.id, "stopped")), now=now)
        yield record
        if config.include_aliases_in_list:
            yield from _alias_records(model, record)


def _peer_records(config: Config, now: int) -> Iterator[JsonObject]:
    for peer in config.peers.values():
        for model in dict.fromkeys(peer.models):
            about = {"type": "peer", "peerID": peer.id}
            yield _bare_record(f"{peer.id}/{model}", now, about, name=f"{peer.id}: {model}")


def _selector_records(config: Config, states: Mapping[str, str], now: int) -> Iterator[JsonObject]:
    for selector in config.selectors.values():
        if selector.unlisted:
            continue
        about = {
            **selector.metadata,
            "type": "selector",
            "strategy": selector.strategy,
            "targets": list(selector.targets),
        }
        if selector.strategy == "spillover":
            about["spillover"] = selector.spillover
        asked = selector.targets[:1] if selector.strategy == "pin" else selector.targets
        ids = [target if target in config.models else config.names.get(target, target) for target in asked]
        record = _bare_record(
            selector.id, now, about, name=selector.name.strip(), description=selector.description.strip()
        )
        if any(states.get(model) in ("ready", "starting") for model in ids):
            record["status"] = {"value": "loaded"}
        yield record


def _pin_records(config: Config, pins: Mapping[str, str], now: int) -> Iterator[JsonObject]:
    """Pins that shadow nothing: their names are not to be found otherwise."""
    bare = Counter(model for peer in config.peers.values() for model in dict.fromkeys(peer.models))
    taken = {
        *config.models,
        *config.names,
        *config.selectors,
        *(f"{peer.id}/{model}" for peer in config.peers.values() for model in peer.models),
        *(model for model, offers in bare.items() if offers == 1),
    }
    for name, target in pins.items():
        if target and name not in taken:
            yield _bare_record(name, now, {"type": "profile"})


def _bare_record(
    record_id: str, now: int, about: JsonObject, *, name: str = "", description: str = ""
) -> JsonObject:
    """Return the record of something that is no model of this daemon."""
    record: JsonObject = {"id": record_id, "object": "model", "created": now, "owned_by": "llama-swap"}
    record.update({key: words for key, words in (("name", name), ("description", description)) if words})
    record["meta"] = {"llamaswap": about}
    record["status"] = {"value": "unloaded"}
    return record


def model_record(model: ModelConfig, *, loaded: bool, now: int) -> JsonObject:
    """Return one model as `/v1/models` shows it."""
    record: JsonObject = {"id": model.id, "object": "model", "created": now, "owned_by": "llama-swap"}
    record.update({key: text for key, text in _texts(model) if text})
    record.update(_capabilities(model.capabilities))
    record["meta"] = _meta(model)
    record["status"] = {"value": "loaded" if loaded else "unloaded"}
    return record


def list_running(config: Config, states: Mapping[str, str]) -> JsonObject:
    """Return the answer of `/running`: every model whose process is not stopped, sorted by id."""
    return {
        "running": [
            {
                "model": model.id,
                "state": states[model.id],
                "cmd": model.cmd,
                "proxy": without_user(model.proxy),
                "ttl": model.ttl,
                "name": model.name,
                "description": model.description,
            }
            for model in config.models.values()
            if _is_loaded(states[model.id])
        ]
    }


def list_launches(config: Config, states: Mapping[str, str]) -> JsonObject:
    """Return the answer of `/api/launches`: digests of what decides whether a reload restarts a model."""
    return {
        "models": {
            model.id: {"state": states[model.id], "port": model.port, "fingerprints": fingerprints(model)}
            for model in config.models.values()
        }
    }


def _texts(model: ModelConfig) -> Iterator[tuple[str, str]]:
    yield "name", model.name.strip()
    yield "description", model.description.strip()


def _alias_records(model: ModelConfig, record: JsonObject) -> Iterator[JsonObject]:
    for alias in model.aliases:
        if alias.strip():
            internal = {**record["meta"]["llamaswap"], "type": "alias", "modelID": model.id}
            internal.pop("aliases", None)
            yield {**record, "id": alias, "meta": {**record["meta"], "llamaswap": internal}}


def _meta(model: ModelConfig) -> JsonObject:
    configured = model.capabilities != Capabilities()
    internal = {key: value for key, value in model.metadata.items() if not (configured and key in _RESERVED)}
    internal["type"] = "model"
    if model.aliases:
        internal["aliases"] = list(model.aliases)
    meta: JsonObject = {"llamaswap": internal}
    if model.capabilities.context > 0:
        meta["n_ctx"] = model.capabilities.context
    return meta


def _capabilities(able: Capabilities) -> JsonObject:
    """Return the keys that say what a model can do; none when nothing is configured."""
    found: JsonObject = {}
    architecture = _architecture(able)
    if architecture:
        found["architecture"] = architecture
    flags = {
        "vision": "image" in able.inputs,
        "audio_transcriptions": "audio" in able.inputs and "text" in able.outputs,
        "audio_speech": "text" in able.inputs and "audio" in able.outputs,
        "image_generation": "text" in able.inputs and "image" in able.outputs,
        "image_to_image": "image" in able.inputs and "image" in able.outputs,
        "function_calling": able.tools,
        "reranker": able.reranker,
    }
    on = {name: True for name, is_on in flags.items() if is_on}
    if on:
        found["capabilities"] = on
    if able.tools:
        found["supported_parameters"] = ["tools", "tool_choice"]
    if able.context > 0:
        found["context_length"] = able.context
    return found


def _architecture(able: Capabilities) -> JsonObject:
    found: JsonObject = {}
    if able.inputs:
        found["input_modalities"] = list(able.inputs)
    if able.outputs:
        found["output_modalities"] = list(able.outputs)
    if able.inputs and able.outputs:
        found["modality"] = f"{'+'.join(able.inputs)}->{'+'.join(able.outputs)}"
    return found
