"""Modes of samples whose number is planted."""

from __future__ import annotations

import numpy as np

from nephoscope.stats import modes


def normal(*centres: float, count: int = 40, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([centre + 0.05 * rng.standard_normal(count) for centre in centres])


def test_the_gaps_lie_between_the_planted_modes() -> None:
    for centres in ((0.0,), (0.0, 1.0), (0.0, 1.0, 2.5)):
        cuts, p = modes.gaps(normal(*centres))
        assert len(cuts) == len(centres) - 1
        for cut, low, high in zip(cuts, centres, centres[1:], strict=False):
            assert low + 0.1 < cut < high - 0.1
        assert p is not None
        assert (p < 0.05) == (len(centres) > 1)


def test_few_or_equal_values_have_no_test() -> None:
    assert modes.gaps(np.ones(50))[1] is None
    assert modes.gaps(normal(0.0, 1.0, count=5))[1] is None


def test_a_wider_band_has_no_more_modes() -> None:
    values = normal(0.0, 1.0, 2.0)
    counts = [modes.modes_at(values, width)[0] for width in (0.05, 0.2, 1.0, 3.0)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] >= 3
    assert counts[-1] == 1
