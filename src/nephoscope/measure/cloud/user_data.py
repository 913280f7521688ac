"""The script that a rented machine runs when it starts: its host key, one login, its lease.

The controller makes the host key, so that it is known before the first login. The machine powers
itself off when its lease ends; the controller moves the end as long as it lives. The end is a value
of the machine's own uptime: no clock has to agree with another.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

import asyncssh

LEASE_FILE = "/run/nephoscope-lease"
"""Uptime in whole seconds at which the machine powers itself off."""

_SCRIPT = Template(
    """#!/bin/sh
# Written by nephoscope. The machine ends when $lease_file, an uptime in seconds, has passed.
umask 077
read up rest < /proc/uptime
echo $$(($${up%%.*} + $lease_s)) > $lease_file
(
  trap '' HUP
  while :; do
    sleep 5
    read up rest < /proc/uptime
    end=$$(cat $lease_file 2>/dev/null) || end=0
    if [ "$${up%%.*}" -ge "$${end:-0}" ]; then
      sync
      poweroff || shutdown -h now || poweroff -f || echo o > /proc/sysrq-trigger
    fi
  done
) < /dev/null > /dev/null 2>&1 &
mkdir -p /etc/ssh /root/.ssh
cat > /etc/ssh/ssh_host_ed25519_key <<'END'
$host_key
END
cat > /etc/ssh/ssh_host_ed25519_key.pub <<'END'
$host_key_public
END
cat > /root/.ssh/authorized_keys <<'END'
$login
END
chmod 700 /root/.ssh
chmod 600 /root/.ssh/authorized_keys /etc/ssh/ssh_host_ed25519_key
for unit in ssh sshd; do
  systemctl restart "$$unit" 2>/dev/null || service "$$unit" restart 2>/dev/null || true
done
"""
)


@dataclass(frozen=True, slots=True)
class MachineKeys:
    """Keys of one rental, made for it alone. private, host_private: OpenSSH's text."""

    private: str
    public: str
    host_private: str
    host_public: str

    @classmethod
    def generate(cls) -> MachineKeys:
        """Returns new keys."""
        login = asyncssh.generate_private_key("ssh-ed25519", comment="nephoscope")
        host = asyncssh.generate_private_key("ssh-ed25519", comment="nephoscope")
        texts = [
            text.decode().strip()
            for key in (login, host)
            for text in (key.export_private_key("openssh"), key.export_public_key("openssh"))
        ]
        return cls(*texts)


def script(keys: MachineKeys, lease_s: int) -> str:
    """Returns the script. It needs a POSIX shell and nothing else of the image."""
    return _SCRIPT.substitute(
        lease_file=LEASE_FILE,
        lease_s=lease_s,
        host_key=keys.host_private,
        host_key_public=keys.host_public,
        login=keys.public,
    )


def renewal(lease_s: int) -> str:
    """Returns the shell command that moves the end of the lease to so many seconds from now."""
    return (
        f"read up rest < /proc/uptime && echo $((${{up%%.*}} + {lease_s})) > {LEASE_FILE}.new "
        f"&& mv {LEASE_FILE}.new {LEASE_FILE}"
    )
