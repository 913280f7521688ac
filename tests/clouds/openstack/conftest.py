"""The real clouds of this folder's tests."""

from tests.clouds.openstack.fixtures import (  # noqa: F401
    hypervisor,
    openstack_cloud,
    renter,
)
