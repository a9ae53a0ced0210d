from server.engine.random_stream import new_seed, uniform


def test_a_draw_depends_on_seed_choice_and_position_only() -> None:
    draws = {(s, c, p): uniform(s, c, p) for s in (0, 1, -1, 2**63) for c in (0, 1) for p in (0, 1, 2)}
    assert len(set(draws.values())) == len(draws)
    assert all(uniform(*key) == draw for key, draw in draws.items())


def test_draws_are_spread_evenly() -> None:
    draws = [uniform(7, 0, position) for position in range(20_000)]
    tenths = [sum(low <= draw * 10 < low + 1 for draw in draws) for low in range(10)]
    assert all(0 <= draw < 1 for draw in draws)
    assert all(1800 < count < 2200 for count in tenths)


def test_seeds_made_here_differ() -> None:
    assert len({new_seed() for _ in range(100)}) == 100
