"""The table of a comparison: medians of the rounds, and ratios of the same round each."""

from benchmarks.comparison_table import Speed, speed_table


def test_a_row_of_medians_for_each_server_and_ratios_round_by_round() -> None:
    speeds = {
        "this server": {1: [Speed(10, 0.2), Speed(30, 0.1), Speed(20, 0.3)], 16: [Speed(66, 0.5)]},
        "vLLM": {1: [Speed(5, 0.4), Speed(20, 0.4), Speed(20, None)], 16: [Speed(60, 2.0)]},
    }

    assert speed_table(speeds, [1, 16], ours="this server").splitlines() == [
        "| tok/s (first token, s) | 1 client | 16 clients |",
        "|---|---|---|",
        "| this server | 20.0 (0.20) | 66.0 (0.50) |",
        "| vLLM | 20.0 (0.40) | 60.0 (2.00) |",
        "| this server / vLLM | 1.50 (1.00 to 2.00) | 1.10 |",
    ]


def test_servers_without_ours_have_no_ratios() -> None:
    assert speed_table({"vLLM": {1: [Speed(5, None)]}}, [1], ours="this server").splitlines()[2:] == [
        "| vLLM | 5.0 (-) |"
    ]


def test_a_server_that_made_no_token_has_no_ratio() -> None:
    speeds = {"this server": {1: [Speed(5, 1)]}, "vLLM": {1: [Speed(0, None)]}}

    assert speed_table(speeds, [1], ours="this server").splitlines()[-1] == "| this server / vLLM | - |"
