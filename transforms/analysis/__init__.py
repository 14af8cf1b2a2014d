"""What a mapping's plan tells: grains, keys, lineage, row-wise parts."""
