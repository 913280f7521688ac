"""The Phoronix Test Suite: what is asked of it, and what its results become."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from nephoscope.catalog.adapters import ADAPTERS, Output, ToolError
from nephoscope.core.errors import UsageError

PHORONIX = ADAPTERS["phoronix"]
HEAD = '<?xml version="1.0"?><PhoronixTestSuite>'


@pytest.mark.parametrize(
    "params",
    [
        {"profile": "pts/c-ray"},
        {"profile": "pts/c-ray-2.0.0; reboot"},
        {"profile": "../../etc-1.0"},
        {"options": "$(reboot)"},
        {"data": "--help"},
    ],
)
def test_nothing_reaches_the_shell_of_the_suite(params: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        PHORONIX.build_command(params)


def test_it_runs_without_rights_and_without_a_network() -> None:
    for command in (PHORONIX.version_command, PHORONIX.build_command({})):
        assert command.user == "nobody"
        assert command.environment["NO_EXTERNAL_DEPENDENCIES"] == "TRUE"
        configurations = [step.input for step in command.prepare if step.input]
        (root,) = (ElementTree.fromstring(text) for text in configurations)
        assert root.findtext(".//NoInternetCommunication") == "TRUE"
        assert root.findtext(".//UploadResults") == "FALSE"


@pytest.mark.parametrize(("options", "every"), [("", "TRUE"), ("c-ray.size=1", "FALSE")])
def test_a_choice_of_options_runs_only_these(options: str, every: str) -> None:
    command = PHORONIX.build_command({"options": options})
    (text,) = (step.input for step in command.prepare if step.input)
    assert ElementTree.fromstring(text).findtext(".//RunAllTestCombinations") == every
    assert command.environment.get("PRESET_OPTIONS", "") == options


def test_runs_are_averaged_and_directions_kept() -> None:
    results = "".join(
        f"<Result><Identifier>{name}</Identifier><Scale>{scale}</Scale>"
        f"<Proportion>{proportion}</Proportion><Data><Entry><Identifier>here</Identifier>"
        f"<Value>2</Value><RawString>{raw}</RawString></Entry></Data></Result>"
        for name, scale, proportion, raw in (
            ("pts/a-1.0", "MB/s", "HIB", "1:2:3"),
            ("pts/b-1.0", "Seconds", "LIB", "4"),
        )
    )
    samples = PHORONIX.parse(Output(f"Average: 2\n{HEAD}{results}</PhoronixTestSuite>"))
    assert [(sample.metric, sample.value) for sample in samples] == [
        ("higher_is_better_score", 2.0),
        ("lower_is_better_score", 4.0),
    ]
    assert samples[1].factors == {"test": "pts/b-1.0", "arguments": "", "unit": "Seconds"}


def test_a_test_without_a_result_is_an_error_in_the_suite_s_words() -> None:
    entry = '<Entry><Identifier>here</Identifier><JSON>{"error":"It broke."}</JSON></Entry>'
    result = f"<Result><Identifier>pts/a-1.0</Identifier><Data>{entry}</Data></Result>"
    with pytest.raises(ToolError, match="It broke"):
        PHORONIX.parse(Output(f"{HEAD}{result}</PhoronixTestSuite>"))
