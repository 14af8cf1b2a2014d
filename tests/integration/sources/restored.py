"""Servers that are put back to a copy of their disk, as a snapshot of a volume does it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from migrator.embedded.server import EmbeddedServer


class Snapshots:
    """Copies of a server's whole folder. The server stands still while one is taken or put back.

    Args:
        server: started.
        folder: what it was made with: its data directory lies in there, or is it.
    """

    def __init__(self, server: EmbeddedServer, folder: Path):
        self.server = server
        self._folder = folder
        self._copy = folder.with_name(f"{folder.name}-snapshot")

    def take(self, running: bool = False) -> None:
        """Remembers what is on the disk now; ``running``: while the server goes on, as after a power cut."""
        if not running:
            self.server.stop()
        shutil.rmtree(self._copy, ignore_errors=True)
        subprocess.run(["cp", "-a", str(self._folder), str(self._copy)], check=True)
        if not running:
            self.server.start()

    def restore(self) -> None:
        """Puts it back, and starts the server."""
        self.server.stop()
        for path in self._folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        subprocess.run(["cp", "-a", f"{self._copy}/.", str(self._folder)], check=True)
        self.server.start()
