"""Analysis of a mapping's plan: grains, keys, lineage, row-wise parts."""
