"""The script that a rented machine runs when it starts: its host key, one login, its lease.

The controller makes the host key, so that it is known before the first login. The machine powers
itself off when its lease ends; the controller moves the end as long as it lives. The end is a value
of the machine's own uptime, and over a boot what its own clock says has passed: no clock has to
agree with another. A clock that went back makes the lease begin anew.
"""

from __future__ import annotations

import os.path
from string import Template

import asyncssh

from nephoscope.core.records import dataclass

LEASE_FILE = "/run/nephoscope-lease"
"""Uptime in whole seconds at which the machine powers itself off."""

_BOOT_FILE = "/run/nephoscope-boot"
"""A word that is another one after each boot."""

_RECORD = "/var/lib/nephoscope/lease"
"""What outlives a boot: the machine's own time in seconds, and how long the lease was then."""

_LEASE_SCRIPT = "/run/nephoscope-lease.sh"

_HOOK = "/var/lib/cloud/scripts/per-boot/nephoscope-lease"
"""A copy of the script; cloud-init runs what is in this folder at each boot."""

_GRACE_S = 900
"""How long a machine lives at least after a later boot, so that its controller can renew."""

_LEASE = """#!/bin/sh
# Written by nephoscope. The machine ends when the uptime in $lease_file has passed.
umask 077
cat > $script <<'LEASE'
#!/bin/sh
# Written by nephoscope. Powers the machine off when its lease ends; run at each boot.
# $$1: seconds of a new lease; without it, what is left of the one before the boot.
umask 077
read up rest < /proc/uptime
now=$$(date +%s)
left=$${1:-}
if [ -z "$$left" ]; then
  read written left < $record || { written=$$now; left=$grace_s; }
  [ "$$now" -lt "$$written" ] || left=$$((left - now + written))
  [ "$$left" -ge $grace_s ] || left=$grace_s
fi
echo "$$now $$left" > $record
echo $$(($${up%%.*} + left)) > $lease_file
cat /proc/sys/kernel/random/uuid > $boot_file
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
LEASE
mkdir -p $record_folder
sh $script $lease_s
mkdir -p $hook_folder && cp $script $hook && chmod 700 $hook
"""

_LOGIN = Template(
    """mkdir -p /etc/ssh /root/.ssh
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
    """Returns the script. It needs a POSIX shell and nothing else of the image; the lease goes on
    after a boot where the image has cloud-init, else with the next renewal."""
    login = _LOGIN.substitute(
        host_key=keys.host_private, host_key_public=keys.host_public, login=keys.public
    )
    return f"{lease(lease_s)}{login}"


def lease(lease_s: int) -> str:
    """Returns the beginning of a script: the machine powers itself off when its lease ends."""
    return Template(_LEASE).substitute(
        lease_file=LEASE_FILE,
        boot_file=_BOOT_FILE,
        record=_RECORD,
        record_folder=os.path.dirname(_RECORD),
        script=_LEASE_SCRIPT,
        hook=_HOOK,
        hook_folder=os.path.dirname(_HOOK),
        grace_s=_GRACE_S,
        lease_s=lease_s,
    )


def renewal(lease_s: int) -> str:
    """Returns the shell command that moves the end of the lease to so many seconds from now.

    It prints a word that is another one after each boot; nothing where there is none.
    """
    return (
        f"umask 077; [ -e {LEASE_FILE} ] || [ ! -e {_HOOK} ] || sh {_HOOK}; "
        f'[ ! -e {_RECORD} ] || echo "$(date +%s) {lease_s}" > {_RECORD}; '
        f"read up rest < /proc/uptime && "
        f"echo $((${{up%%.*}} + {lease_s})) > {LEASE_FILE}.new "
        f"&& mv {LEASE_FILE}.new {LEASE_FILE} && {{ cat {_BOOT_FILE} 2>/dev/null || :; }}"
    )
