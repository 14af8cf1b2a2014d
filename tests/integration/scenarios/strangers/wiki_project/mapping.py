"""Pages become articles; an edit names its author; each tag knows how often it was given."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


def text(name: str) -> Column:
    """A text, which MySQL and MariaDB keep as bytes there: shown by its hexadecimal digits, whatever they are."""
    return F.upper(F.hex(F.col(name).cast("binary")))


@mapping.target("article", key="article_id")
def article(page: DataFrame) -> DataFrame:
    """Each row from one page."""
    return page.select(
        F.col("page_id").cast("bigint").alias("article_id"),
        F.col("page_namespace").alias("namespace"),
        text("page_title").alias("title"),
        (F.col("page_is_redirect").cast("int") != 0).alias("redirect"),
        F.col("page_len").cast("bigint").alias("bytes"),
    )


@mapping.target("edit", key="edit_id", grain="revision.rev_id", links=["actor.actor_id = revision.rev_actor"])
def edit(revision: DataFrame, actor: DataFrame) -> DataFrame:
    """A join without a foreign key: the author may be unknown."""
    authors = actor.select(F.col("actor_id").alias("rev_actor"), text("actor_name").alias("author"))
    return revision.join(authors, "rev_actor", "left").select(
        F.col("rev_id").cast("bigint").alias("edit_id"),
        F.col("rev_page").cast("bigint").alias("article_id"),
        "author",
        (F.col("rev_minor_edit").cast("int") != 0).alias("minor"),
    )


@mapping.target("tag_use", key="tag_id", grain="change_tag.ct_tag_id")
def tag_use(change_tag: DataFrame) -> DataFrame:
    """A count over the rows of each tag."""
    found = change_tag.groupBy(F.col("ct_tag_id").cast("bigint").alias("tag_id"))
    return found.agg(F.count("*").alias("uses"), F.count("ct_params").alias("with_parameters"))
