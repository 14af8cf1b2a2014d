"""Open keys and the buckets that own them, in groups that are read in one view each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verify.tables.sweeps.bucket_look import packed, together
from verify.tables.sweeps.grain_buckets import Bucket
from verify.tables.sweeps.target_keys import CellTexts

BUCKETS = st.builds(Bucket, st.integers(0, 1), st.integers(0, 7))
OWNERS = st.dictionaries(
    st.tuples(st.sampled_from("abcdefghij")), st.lists(BUCKETS, min_size=1, max_size=3, unique=True)
)


@given(OWNERS)
def test_a_key_is_looked_at_with_all_the_buckets_that_may_own_it(
    owners: dict[CellTexts, list[Bucket]],
) -> None:
    groups = together(owners)
    for key, buckets in owners.items():
        (group,) = [each for each in groups if key in each.keys]
        assert set(buckets) <= group.buckets
    every = [bucket for group in groups for bucket in group.buckets]
    assert len(every) == len(set(every)), "no bucket is read twice"


@given(OWNERS, st.dictionaries(BUCKETS, st.integers(0, 9)), st.integers(1, 20))
def test_no_view_has_more_rows_than_a_chunk_and_none_is_left_out_that_fits(
    owners: dict[CellTexts, list[Bucket]], known: dict[Bucket, int], most: int
) -> None:
    groups = together(owners)
    sizes = {bucket: known.get(bucket, 1) for group in groups for bucket in group.buckets}
    shared = packed(groups, sizes, most)
    assert all(sum(sizes[bucket] for bucket in group.buckets) <= most for group in shared)
    fit = [group for group in groups if sum(sizes[bucket] for bucket in group.buckets) <= most]
    assert {key for group in shared for key in group.keys} == {key for group in fit for key in group.keys}
    for group in fit:
        assert any(group.keys <= each.keys and group.buckets <= each.buckets for each in shared)
