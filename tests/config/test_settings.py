"""Global settings and the small sections."""

from __future__ import annotations

import pytest

from llamaswap.config.model import Config, GroupConfig, PerformanceConfig
from llamaswap.config.settings import LAYOUTS
from llamaswap.telemetry import logstamps
from support.config_checks import TWO_MODELS, loaded, rejected, warnings_of


def test_an_empty_file_means_all_defaults() -> None:
    assert loaded("") == Config(groups=(GroupConfig(id="(default)"),))


@pytest.mark.parametrize(("given", "effective"), [(1, 15), (-5, 15), (15, 15), (600, 600)])
def test_a_health_check_takes_at_least_fifteen_seconds(given: int, effective: int) -> None:
    assert loaded(f"healthCheckTimeout: {given}").health_check_timeout == effective


def test_null_and_zero_mean_the_default_where_that_is_so() -> None:
    config = loaded("startPort: ~\nlogToStdout: ~\nunloadTimeout: 0\nperformance: {every: 0s}")
    assert (config.start_port, config.log_to_stdout, config.unload_timeout) == (5800, "proxy", 10)
    assert config.performance == PerformanceConfig()


def test_session_headers_are_cleaned_and_can_be_switched_off() -> None:
    assert loaded('ui: {activity: {session_id: [" X-A ", x-a, ""]}}').session_headers == ("X-A",)
    assert loaded("ui: {activity: {session_id: ~}}").session_headers == ()
    assert loaded("ui: {}").session_headers == ("X-Session-ID", "X-Litellm-Session-Id")


def test_case_027_preload_names_resolve_and_what_means_nothing_is_dropped_with_a_warning() -> None:
    text = f'{TWO_MODELS}\nhooks: {{on_startup: {{preload: [" a ", "", ghost, bee]}}}}'
    assert loaded(text).preload == ("a", "b")
    assert warnings_of(text) == [
        "2:43: hooks.on_startup.preload[2]: 'ghost' is no model or alias, so nothing is loaded for it"
    ]


def test_case_027_a_group_is_not_preloaded_and_the_warning_says_what_to_list_instead() -> None:
    groups = "groups: {both: {members: [a, b]}}"
    text = f"{TWO_MODELS}\n{groups}\nhooks: {{on_startup: {{preload: [both, bee]}}}}"
    assert loaded(text).preload == ("b",)
    (warning,) = warnings_of(text)
    assert warning.startswith(
        "3:32: hooks.on_startup.preload[0]: 'both' is a group, whose members have to be "
    )


def test_durations_are_read_in_milliseconds() -> None:
    assert loaded("performance: {every: 1m30s, disabled: yes}").performance == PerformanceConfig(
        disabled=True, every_ms=90_000
    )


def test_an_unknown_log_level_is_taken_for_info_with_a_warning() -> None:
    assert loaded("logLevel: verbose").log_level == "verbose"
    assert warnings_of("logLevel: wran") == [
        "1:11: logLevel: 'wran' is no level, so it is taken for 'info'; did you mean 'warn'?"
    ]


@pytest.mark.parametrize("name", ["", " ", *LAYOUTS, " RFC3339 "])
def test_a_time_format_that_has_a_name_is_taken(name: str) -> None:
    assert warnings_of(f"logTimeFormat: '{name}'") == []


@pytest.mark.parametrize(
    ("name", "guess"), [("rfc-3339", "; did you mean 'rfc3339'?"), ("2006-01-02 15:04:05", "")]
)
def test_a_time_format_without_a_name_is_none_with_a_warning(name: str, guess: str) -> None:
    (warning,) = warnings_of(f"logTimeFormat: '{name}'")

    assert warning.endswith(f"logTimeFormat: '{name}' is the name of no format, so lines have no time{guess}")


def test_the_time_formats_are_those_that_the_log_knows() -> None:
    assert set(LAYOUTS) == set(logstamps.LAYOUTS)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("globalTTL: -1", "globalTTL: expected seconds from 0, got -1"),
        ("unloadTimeout: -1", "unloadTimeout: expected seconds from 0, got -1"),
        ("startPort: 0", "startPort: expected a port from 1, got 0"),
        ("startPort: '5800'", "startPort: expected a port, got '5800'"),
        ("logToStdout: Both", "logToStdout: expected one of proxy, upstream, both, none, got 'Both'"),
        ("performance: {every: 10}", "performance.every: expected a duration like 10s or 1m30s, got 10"),
        ("performance: {every: 4999ms}", "performance.every: expected at least 5s, got '4999ms'"),
        ("store: {path: ' '}", "store.path: expected the path of a file"),
        ("store: x.db", "store: expected a mapping, got 'x.db'"),
        (
            "upstream: {ignorePaths: ['(?=a)']}",
            "upstream.ignorePaths[0]: expected a regular expression (RE2)",
        ),
        (
            "hooks: {on_startup: {preload: a}}",
            "hooks.on_startup.preload: expected a list, got a single value",
        ),
    ],
)
def test_a_bad_setting_is_refused(text: str, complaint: str) -> None:
    (line,) = rejected(text)
    assert line.partition(": ")[2].startswith(complaint)


@pytest.mark.parametrize("text", ["apiKeys: [a, 'my secret']", "apiKeys: secret"])
def test_no_complaint_repeats_a_key(text: str) -> None:
    (line,) = rejected(text)
    assert line.partition(": ")[2].startswith("apiKeys")
    assert "secret" not in line


def test_keys_are_kept_as_written_and_not_shown() -> None:
    config = loaded("apiKeys: [~, 12345, k, k]")
    assert config.api_keys == ("12345", "k", "k")
    assert "12345" not in repr(config)
