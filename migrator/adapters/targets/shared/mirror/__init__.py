"""Code that all targets' mirrors share: it moves rows, follows changes and gathers mapped rows.

A target's adapter adds its dialect of SQL (``Mirrored``), and how rows come and go (``MirrorStore``).
"""
