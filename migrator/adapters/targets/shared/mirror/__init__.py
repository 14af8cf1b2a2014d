"""What the mirrors of all targets share: how rows move, how changes are followed, how mapped rows are gathered.

A target's adapter adds its dialect of SQL (``Mirrored``), and how rows come and go (``MirrorStore``).
"""
