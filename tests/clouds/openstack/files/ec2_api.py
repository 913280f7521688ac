"""Starts the EC2 API on Debian's libraries.

Keystone has become stricter than this program: whoever asks it to check an EC2 signature has to
show a token of a service now, so each such request gets one here.
"""

# ruff: noqa: E402 (its libraries are in a folder of their own, and are patched before they are used)

import sys

sys.path.insert(0, "/opt/ec2api")

import eventlet

eventlet.monkey_patch()

import json
from pathlib import Path

import requests
from keystoneauth1 import session
from keystoneauth1.identity import v3

SITE = json.loads(Path("/etc/cloud.json").read_text(encoding="utf-8"))
SESSION = session.Session(
    auth=v3.Password(
        SITE["identity"],
        username="svc",
        password=SITE["service"],
        project_name="service",
        user_domain_id="default",
        project_domain_id="default",
    )
)
request = requests.request


def with_token(method, url, **options):
    if url.endswith("/ec2tokens"):
        options.setdefault("headers", {})["X-Auth-Token"] = SESSION.get_token()
    return request(method, url, **options)


requests.request = with_token

if __name__ == "__main__":
    from ec2api.cmd.api import main

    main()
