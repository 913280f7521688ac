"""Settings of a sweep as a tree: outer parameters group, levels are aligned and in their order."""

from __future__ import annotations

from nephoscope.core.setting_tree import tree_of


def drawn(*settings: dict[str, object]) -> list[tuple[str, int | None]]:
    return [(line.label, line.index) for line in tree_of(settings)]


def test_the_parameter_with_the_fewest_levels_is_the_outermost_and_levels_are_aligned() -> None:
    settings = [
        {"threads": 2, "noise_ratio": ratio, "value": value}
        for value in (100.0, 5.0, 20.0)
        for ratio in (0.1, 0.01)
    ]
    assert drawn(*settings) == [
        ("noise ratio 0.01", None),
        ("  value   5", 3),
        ("  value  20", 5),
        ("  value 100", 1),
        ("noise ratio  0.1", None),
        ("  value   5", 2),
        ("  value  20", 4),
        ("  value 100", 0),
    ]


def test_one_parameter_needs_no_group() -> None:
    assert drawn({"pages": "small"}, {"pages": "huge"}) == [("huge pages", 1), ("small pages", 0)]


def test_a_setting_without_a_parameter_stands_beside_those_that_have_it() -> None:
    lines = drawn({"queue_depth": 1}, {"queue_depth": 16}, {})
    assert sorted(index for _, index in lines if index is not None) == [0, 1, 2]
    labels = {index: label for label, index in lines}
    assert labels[0].split() == ["queue", "depth", "1"]
    assert len(labels[0]) == len(labels[1])


def test_settings_that_nothing_tells_apart_keep_a_line_each() -> None:
    assert [index for _, index in drawn({"a": 1}, {"a": 1})] == [0, 1]
