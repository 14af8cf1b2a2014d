"""``migrator rehearse``: a user's own project on throw-away servers, there, back and there again under writes.

``schema`` asks a server for its tables, ``rows`` makes rows of them. ``sides`` are the
servers with their logins, ``copied`` the copy of the project that points at them. ``ladder`` is what one client of
the application does, as both sides have it, ``scout`` finds it out, ``clients`` play it on the side that is open.
``rehearsal`` is the order of all, ``account`` what came of it.
"""
