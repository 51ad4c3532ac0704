from __future__ import annotations

from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest

from llamaswap.telemetry.resources import Resources
from llamaswap.telemetry.sampler import Sample
from support.telemetry_sources import GPU, HOST


def printed(sample: Sample | None) -> list[str]:
    """Return the lines of a registry with nothing but the machine in it."""
    registry = CollectorRegistry()
    registry.register(Resources(lambda: sample))
    return generate_latest(registry).decode().splitlines()


def test_the_machine_is_printed_with_the_names_and_labels_of_llama_swap() -> None:
    lines = [line for line in printed(Sample(at_us=0, host=HOST, gpus=())) if not line.startswith("# HELP")]

    assert lines == [
        "# TYPE llamaswap_cpu_util_percent gauge",
        'llamaswap_cpu_util_percent{core="0"} 12.5',
        'llamaswap_cpu_util_percent{core="1"} 7.25',
        "# TYPE llamaswap_memory_total_bytes gauge",
        "llamaswap_memory_total_bytes 2.5769803776e+10",
        "# TYPE llamaswap_memory_used_bytes gauge",
        "llamaswap_memory_used_bytes 5.36870912e+09",
        "# TYPE llamaswap_memory_free_bytes gauge",
        "llamaswap_memory_free_bytes 3.221225472e+09",
        "# TYPE llamaswap_swap_total_bytes gauge",
        "llamaswap_swap_total_bytes 1.073741824e+09",
        "# TYPE llamaswap_swap_used_bytes gauge",
        "llamaswap_swap_used_bytes 1.048576e+06",
        "# TYPE llamaswap_load_average gauge",
        'llamaswap_load_average{interval="1m"} 0.5',
        'llamaswap_load_average{interval="5m"} 0.25',
        'llamaswap_load_average{interval="15m"} 0.1',
        "# TYPE llamaswap_network_bytes_total counter",
        'llamaswap_network_bytes_total{direction="recv",interface="eth0"} 20.0',
        'llamaswap_network_bytes_total{direction="sent",interface="eth0"} 10.0',
    ]


def test_graphics_processors_are_printed_in_the_order_of_their_numbers() -> None:
    second = replace(GPU, id=1, name='B "x"\\\n', uuid="")
    lines = printed(Sample(at_us=0, host=None, gpus=(second, replace(GPU, memory_celsius=55))))

    first = '{id="0",name="GPU",uuid="GPU-1"}'
    other = '{id="1",name="B \\"x\\"\\\\\\n"}'
    for name, value in (
        ("temperature_celsius", "40.0"),
        ("util_percent", "3.0"),
        ("memory_util_percent", "1.5"),
        ("memory_used_bytes", "3.145728e+08"),
        ("memory_total_bytes", "2.097152e+10"),
        ("fan_speed_percent", "30.0"),
        ("power_draw_watts", "60.5"),
    ):
        at = lines.index(f"llamaswap_gpu_{name}{first} {value}")
        assert lines[at + 1] == f"llamaswap_gpu_{name}{other} {value}"
        assert f"# TYPE llamaswap_gpu_{name} gauge" in lines
    assert f"llamaswap_gpu_vram_temperature_celsius{first} 55.0" in lines
    assert f"llamaswap_gpu_vram_temperature_celsius{other} 0.0" in lines


def test_what_is_not_known_of_a_processor_is_not_printed() -> None:
    unknown = replace(GPU, fan_percent=None, power_watts=None, memory_used_mib=None)
    lines = printed(Sample(at_us=0, host=None, gpus=(unknown,)))

    for name in ("fan_speed_percent", "power_draw_watts", "memory_used_bytes", "memory_util_percent"):
        assert not any(line.startswith(f"llamaswap_gpu_{name}{{") for line in lines)


def test_a_machine_without_a_network_prints_no_counter() -> None:
    for traffic in ((), None):
        lines = printed(Sample(at_us=0, host=replace(HOST, traffic=traffic), gpus=()))
        assert not any("network" in line for line in lines)


def test_without_a_fresh_sample_nothing_is_printed() -> None:
    assert printed(None) == []
