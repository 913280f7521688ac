"""How places are written, and what they are called."""

from __future__ import annotations

import pytest

from nephoscope.core.errors import UsageError
from nephoscope.features.cloud.places import check_distinct, labels_of, place_of

SHARED = {"provider": "ec2", "type": "t", "image": "i", "endpoint": "http://x", "profile": "p"}


def test_a_place_has_what_it_states_and_shares_the_rest() -> None:
    here = place_of("us-east-1/us-east-1a", SHARED)
    assert (here.provider, here.region, here.zone) == (("ec2",), ("us-east-1",), ("us-east-1a",))
    assert (here.endpoint, here.profile, here.name) == ("http://x", "p", "us-east-1a")
    # Endpoint and credentials are those of one cloud.
    there = place_of("openstack:RegionOne,type=m1,per_gib_out=0.02,market=spot", SHARED)
    assert (there.provider, there.endpoint, there.profile) == (("openstack",), "", "")
    assert (there.type, there.image, there.per_gib_out) == (("m1",), ("i",), 0.02)
    assert there.name == "openstack-regionone"
    again = place_of("ec2:eu-west-1,endpoint=http://y:1/a,name=own", SHARED)
    assert (again.endpoint, again.name, again.zone) == ("http://y:1/a", "own", ("any",))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' names no place"),
        (":x", "':x' names no place"),
        ("x/", "'x/' names no place"),
        ("x,typ=1", "'typ=1', which states nothing of it"),
        ("x,type=", "'type=', which states nothing of it"),
        ("x,market=free", "cannot be read: market"),
        ("x,per_gib_out=-1", "cannot be read: per_gib_out"),
    ],
)
def test_what_is_no_place_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        place_of(text, SHARED)
    assert "\n" not in caught.value.message


def test_a_place_without_a_type_says_so() -> None:
    with pytest.raises(UsageError, match="The place 'r' has no image") as caught:
        place_of("r", {"provider": "ec2", "type": "t"})
    assert "--image" in caught.value.hint


def test_a_place_that_stands_there_twice_is_refused() -> None:
    one = place_of("r/a", SHARED)
    with pytest.raises(UsageError, match="r/a of ec2 is named twice"):
        check_distinct([one, place_of("ec2:r/a,name=b", SHARED)])
    with pytest.raises(UsageError, match="Two places are called a"):
        check_distinct([one, place_of("s/a", SHARED)])
    check_distinct([one, place_of("r/a,endpoint=http://z,name=b", SHARED)])


def test_places_are_called_by_zone_region_cloud_or_name() -> None:
    texts = ["r/a", "s", "lxd:s,name=c", "ec2:s,profile=q,name=d"]
    one_cloud = [place_of(text, SHARED) for text in texts[:2]]
    assert labels_of(one_cloud) == {"a": "a", "s": "s"}
    every = [place_of(text, SHARED) for text in texts]
    # Two accounts of one cloud have a region of the same name.
    assert labels_of(every) == {"a": "ec2:a", "s": "s", "c": "lxd:s", "d": "d"}
