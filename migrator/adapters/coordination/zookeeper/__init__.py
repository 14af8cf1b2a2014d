"""Leadership, dump requests and progress hints in ZooKeeper, for processes on several machines.

::

    <path>/<migration>/epoch            highest epoch granted; its version is that grant's
    <path>/<migration>/leader           ephemeral: owner and epoch of the leader
    <path>/<migration>/standbys/<n>     ephemeral: who stands by
    <path>/<migration>/requests         the book of dump requests
    <path>/<migration>/progress         the leader's progress hint
"""
