"""Calls of EC2's interface by boto3: one account, one endpoint, no retries, errors in our words."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import boto3
import botocore.session
from botocore import loaders
from botocore.config import Config

from nephoscope.measure.cloud.model import Kind
from nephoscope.measure.cloud.provider import (
    CONNECT_S,
    READ_S,
    Cause,
    CloudError,
    CloudSettings,
    CloudTraits,
)
from nephoscope.measure.cloud.providers.ec2_errors import action_of, translating

DEFAULT_REGION = "us-east-1"

_DESCRIPTIONS = loaders.create_loader()
"""Descriptions of the services, read once: EC2's takes a third of a second."""


OLDER_LATE_S = 120.0
"""`late_s` of older clouds, as of OpenStack's own interface."""


class Ec2Calls:
    """One account of EC2, or of a cloud with its interface."""

    traits: CloudTraits

    def __init__(self, settings: CloudSettings) -> None:
        self._endpoint = settings.endpoint or None
        with translating("opening the account"):
            core = botocore.session.get_session()
            core.register_component("data_loader", _DESCRIPTIONS)
            profile = settings.profile or None
            self._session = boto3.Session(botocore_session=core, profile_name=profile)
            core.get_scoped_config()  # A profile that does not exist is refused here.
        self._clients: dict[tuple[str, str], Any] = {}
        self._images: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._tags_at_creation: bool | None = None if self._endpoint else True
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Ec2({self._endpoint or 'Amazon'})"

    @property
    def region(self) -> str:
        """The region for calls that concern none."""
        return self._session.region_name or DEFAULT_REGION

    def client(self, service: str, region: str) -> Any:
        """Returns boto3's client of a service in a region, made once."""
        with self._lock:
            if (service, region) not in self._clients:
                config = Config(
                    connect_timeout=CONNECT_S,
                    read_timeout=READ_S,
                    retries={"total_max_attempts": 1},
                    max_pool_connections=32,
                )
                self._clients[service, region] = self._session.client(
                    service, region_name=region, endpoint_url=self._endpoint, config=config
                )
            return self._clients[service, region]

    def call(self, operation: str, region: str, service: str = "ec2", **parameters: Any) -> Any:
        """Returns the answer of one call, under boto3's name for it. Raises CloudError."""
        with translating(f"{action_of(operation)} in {region}"):
            return getattr(self.client(service, region), operation)(**parameters)

    def pages(
        self, operation: str, region: str, member: str, service: str = "ec2", **parameters: Any
    ) -> list[Any]:
        """Returns a member of all pages of an answer. Raises CloudError."""
        with translating(f"{action_of(operation)} in {region}"):
            client = self.client(service, region)
            if not client.can_paginate(operation):
                return list(getattr(client, operation)(**parameters).get(member, ()))
            listed = client.get_paginator(operation).paginate(**parameters)
            return [each for page in listed for each in page.get(member, ())]

    def is_modern(self, region: str) -> bool:
        """Returns whether the cloud takes tags at creation; asked once, of a cloud that is not
        Amazon's."""
        if self._tags_at_creation is None:
            try:
                self.call("describe_launch_templates", region)
            except CloudError as error:
                if error.cause not in (Cause.REFUSED, Cause.UNKNOWN):
                    raise
                self._tags_at_creation = False
                # Its services are those of a private cloud, in which a call may wait in a queue;
                # one that is restarted in the middle of a call knows neither token nor machine.
                self.traits = replace(
                    self.traits,
                    late_s=OLDER_LATE_S,
                    tokenless=self.traits.tokenless | {Kind.MACHINE, Kind.VOLUME},
                    forgets=True,
                )
            else:
                self._tags_at_creation = True
        return self._tags_at_creation

    def image_details(self, region: str, id: str) -> Mapping[str, Any]:
        """Returns the description of an image, read once."""
        if (region, id) not in self._images:
            listed = self.call("describe_images", region, ImageIds=[id])["Images"]
            if not listed:
                raise CloudError(Cause.UNKNOWN, f"EC2: there is no image '{id}' in {region}.")
            self._images[region, id] = listed[0]
        return self._images[region, id]
