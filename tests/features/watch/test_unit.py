"""The systemd unit: its text, what systemd says of it, and its life in a user's folder."""

from __future__ import annotations

import configparser
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.features.watch.made import plan_file
from tests.tools import needs

from nephoscope import command_line
from nephoscope.features.watch import unit

HOSTILE = ['a b"c', "50%", "$HOME", "back\\slash", "new\nline", "tab\t", "ü", "'", ";", "x" * 300]


def text_of(scope: unit.Scope, *, lab: bool = False, store: Path = Path("/var/lib/store")) -> str:
    command = ["/usr/bin/env", "watch", *HOSTILE]
    return unit.unit_text("web", command, store, scope, lab=lab)


@pytest.mark.parametrize("scope", ["user", "system"])
@pytest.mark.parametrize("lab", [False, True])
@needs("systemd-analyze")
def test_systemd_accepts_the_unit(scope: unit.Scope, lab: bool, tmp_path: Path) -> None:
    file = tmp_path / unit.unit_name("web")
    file.write_text(text_of(scope, lab=lab, store=tmp_path / "a store 50%"))
    words = ["systemd-analyze", "verify", "--recursive-errors=no", str(file)]
    checked = subprocess.run(words, capture_output=True, text=True, timeout=120)
    mine = [line for line in checked.stderr.splitlines() if file.name in line]
    assert (checked.returncode, mine) == (0, [])


def test_a_system_unit_is_hardened_and_a_lab_keeps_its_privileges() -> None:
    system, lab, user = text_of("system"), text_of("system", lab=True), text_of("user")
    assert "ProtectSystem=strict\n" in system
    assert "ReadWritePaths=/var/lib/store -/dev/shm\n" in system
    assert all("NoNewPrivileges=yes\n" in text for text in (system, lab, user))
    assert all("ProtectSystem" not in text for text in (lab, user))
    assert "WantedBy=multi-user.target\n" in system
    assert "WantedBy=default.target\n" in user
    assert "sh -c" not in system


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_an_argument_stays_on_its_line_and_comes_back(text: str) -> None:
    quoted = unit.quoted_argument(text)
    assert "\n" not in quoted
    assert unquoted(quoted) == text


def unquoted(text: str) -> str:
    """What systemd makes of one quoted word (systemd.syntax(7), systemd.service(5))."""
    if not text.startswith('"'):
        return text
    out, at, inner = bytearray(), 0, text[1:-1]
    while at < len(inner):
        pair = inner[at : at + 2]
        if pair in ("%%", "$$", '\\"', "\\\\"):
            out += pair[1].encode()
            at += 2
        elif pair == "\\x":
            out.append(int(inner[at + 2 : at + 4], 16))
            at += 4
        else:
            assert inner[at] not in '%$"\\'
            out += inner[at].encode()
            at += 1
    return out.decode()


def test_install_and_uninstall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    plan_file(tmp_path / "plan.yaml")
    words = ["watch", "plan.yaml", "--every", "5min", "--keep-raw", "3d", "--label", "env=a b"]
    assert command_line.main([*words, "--set", "seed=3", "--install", "--scope", "user"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    file = Path(line)
    assert file == tmp_path / "config/systemd/user/nephoscope-watch-web.service"
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read_string(file.read_text())
    command = parser["Service"]["ExecStart"]
    assert f" -m nephoscope watch {tmp_path}/plan.yaml --name=web " in command
    for option in ("--every=5min", "--keep-raw=3d", '"--label=env=a b"', "--set=seed=3"):
        assert f" {option}" in command
    assert "--install" not in command
    assert "--scope" not in command
    assert command_line.main(["watch", "--uninstall", "web", "--scope", "user"]) == 0
    assert not file.exists()
    assert command_line.main(["watch", "--uninstall", "web", "--scope", "user"]) == 2
    assert "There is no unit" in capsys.readouterr().err
    assert command_line.main(["watch", "--uninstall", "../../x", "--scope", "user"]) == 2
