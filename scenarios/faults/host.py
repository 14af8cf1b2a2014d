"""Faults of the machine that the pipeline runs on: its disk, clock, memory, descriptors and processor."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from scenarios.faults.fault import Fault, Options, impossible, state_folder
from scenarios.faults.process_tree import descendants, send
from scenarios.faults.processes import await_true, running_pid
from scenarios.world import World

_BALLAST = "ballast"
_STEPS_BYTES = (1 << 20, 4096, 1)
_PERIOD_S = 0.1
_CLOCK = "migrator_clock.so"
_CLOCK_SOURCE = Path(__file__).with_name("clock.c")


class DiskFull(Fault):
    """The state folder is on a filesystem of its own, of ``mb`` megabytes (default 64), and it becomes full.

    Healing frees the space. Needs root, to mount a tmpfs before the pipeline starts.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._size_mb = options.whole("mb", 64, least=16)
        self._mounted: Path | None = None
        self._effect = ""

    def prepare(self, world: World) -> None:
        """See ``Fault.prepare``."""
        state = state_folder(world)
        if os.geteuid() != 0:
            raise impossible(self.name, "only root can mount a filesystem", "run the scenario as root")
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(state.iterdir()):
            raise impossible(self.name, f"the state folder {state} isn't empty: the pipeline has run already")
        options = f"size={self._size_mb}m,mode=0700"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(state)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise impossible(self.name, done.stderr.strip(), "allow mounting (CAP_SYS_ADMIN)")
        self._mounted = state

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        if self._mounted is None:
            raise impossible(self.name, "the state folder has no filesystem of its own: it wasn't prepared")
        written = 0
        with (self._mounted / _BALLAST).open("wb", buffering=0) as ballast:
            for size in _STEPS_BYTES:
                try:
                    while True:
                        written += ballast.write(b"\0" * size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
        self._effect = f"no byte left of {self._size_mb} MB, {written} taken"

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        if self._mounted is not None:
            (self._mounted / _BALLAST).unlink(missing_ok=True)

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect

    def close(self) -> None:
        """Unmounts; lazily, because somebody may still look at it. What was in the folder is gone."""
        mounted, self._mounted = self._mounted, None
        if mounted is not None:
            subprocess.run(["umount", "-l", str(mounted)], check=True, capture_output=True)


class FsyncError(Fault):
    """``fsync`` and ``fdatasync`` of the pipeline's own process fail with EIO until healed (by ``strace``)."""

    def __init__(self, options: Options):
        super().__init__(options)
        self._tracer: subprocess.Popen[bytes] | None = None
        self._report = Path()

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        if shutil.which("strace") is None:
            raise impossible(self.name, "this machine has no strace", "apt-get install strace")
        pid = running_pid(world, self.name)
        self._report = world.folder / "fsync_error.strace"
        errors = world.folder / "fsync_error.stderr"
        inject = "inject=fsync,fdatasync:error=EIO"
        command = ["strace", "-f", "-p", str(pid), "-e", "trace=fsync,fdatasync", "-e", inject]
        with errors.open("wb") as output:
            self._tracer = subprocess.Popen([*command, "-o", str(self._report)], stderr=output)
        tracer = self._tracer

        def attached() -> bool:
            return tracer.poll() is not None or b"attached" in errors.read_bytes()

        await_true(attached, "strace attaches to the pipeline")
        if tracer.poll() is not None:
            raise impossible(
                self.name, errors.read_text(errors="replace").strip(), "allow ptrace (CAP_SYS_PTRACE)"
            )

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        self.close()

    def effect(self) -> str:
        """See ``Fault.effect``."""
        if not self._report.is_file():
            return ""
        count = self._report.read_bytes().count(b"(INJECTED)")
        return f"{count} fsyncs refused" if count else ""

    def close(self) -> None:
        """See ``Fault.close``."""
        tracer, self._tracer = self._tracer, None
        if tracer is not None and tracer.poll() is None:
            tracer.send_signal(signal.SIGINT)  # detaches
            tracer.wait(timeout=30)


class Clock(Fault):
    """The pipeline's wall clock is ``offset_s`` seconds off once it fires; monotonic clocks stay right.

    Needs a C compiler: ``clock.c`` is compiled and preloaded.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._offset_s = options.number("offset_s", least=-1e9)
        self._library: Path | None = None
        self._file: Path | None = None
        self._effect = ""

    def environment(self, world: World) -> Mapping[str, str]:
        """See ``Fault.environment``."""
        if self._library is None:
            self._library, self._file = self._compiled(world.folder), world.folder / "clock"
            self._set(0.0)
        return {"LD_PRELOAD": str(self._library), "MIGRATOR_CLOCK": str(self._file)}

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        prepared = self._file is not None
        if world.pipeline.running:
            prepared = prepared and _CLOCK in Path(f"/proc/{world.pipeline.pid}/maps").read_text()
        if not prepared:
            raise impossible(self.name, "the pipeline wasn't started with the clock's environment")
        self._set(self._offset_s)
        self._effect = f"the clock is {self._offset_s:+g} s off"

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        if self._file is not None:
            self._set(0.0)

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect

    def _set(self, offset_s: float) -> None:
        if self._file is not None:
            # In place: the processes have this very file mapped.
            handle = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(handle, int(offset_s * 1e9).to_bytes(8, sys.byteorder, signed=True))
            os.close(handle)

    def _compiled(self, folder: Path) -> Path:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise impossible(self.name, "this machine has no C compiler", "apt-get install gcc libc6-dev")
        library = folder / _CLOCK
        command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(_CLOCK_SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise impossible(self.name, done.stderr.strip(), "apt-get install libc6-dev")
        return library


class LimitFault(Fault):
    """A resource limit of the pipeline's own process, lowered until healed (prlimit(2))."""

    limit = 0

    def __init__(self, options: Options):
        super().__init__(options)
        self._before: tuple[int, tuple[int, int]] | None = None
        self._effect = ""

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        pid = running_pid(world, self.name)
        value = self._value(pid)
        before = resource.prlimit(pid, self.limit)
        resource.prlimit(pid, self.limit, (value, before[1]))
        self._before = (pid, before)

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        if self._before is not None:
            pid, before = self._before
            with contextlib.suppress(ProcessLookupError):  # its limit went with it
                resource.prlimit(pid, self.limit, before)

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect

    def _value(self, pid: int) -> int:
        raise AssertionError(f"{self.name} limits nothing")


class Descriptors(LimitFault):
    """A limit on file descriptors: none with a number from ``limit`` on can be opened; open ones stay open.

    All numbers below must be in use, or the next files would be opened under those.
    """

    limit = resource.RLIMIT_NOFILE

    def __init__(self, options: Options):
        super().__init__(options)
        self._most = options.whole("limit", least=1)

    def _value(self, pid: int) -> int:
        opened = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
        free = len(set(range(self._most)) - opened)
        if free:
            raise impossible(
                self.name,
                f"{len(opened)} descriptors are open, and {free} more can be: the limit is {self._most}",
                "lower it: 3 leaves input, output and errors",
            )
        self._effect = f"{len(opened)} descriptors open, none from {self._most} on may be opened"
        return self._most


class OutOfMemory(LimitFault):
    """The pipeline's own process gets at most ``mb`` megabytes (default 0) of address space beside what it has."""

    limit = resource.RLIMIT_AS

    def __init__(self, options: Options):
        super().__init__(options)
        self._spare_mb = options.whole("mb", 0)

    def _value(self, pid: int) -> int:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
        size_bytes = pages * resource.getpagesize()
        self._effect = f"{size_bytes >> 20} MB of address space, {self._spare_mb} MB more at most"
        return size_bytes + (self._spare_mb << 20)


class StarveCpu(Fault):
    """The pipeline and all below it get only ``percent`` (default 5) of the time, for ``seconds``.

    They are stopped and continued ten times a second: it needs no rights and works inside containers, where a
    control group may not be made.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._seconds = options.number("seconds", least=0.1)
        self._percent = options.number("percent", 5.0, least=1.0)
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._effect = ""

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        pid = running_pid(world, self.name)
        self._thread = threading.Thread(target=self._starve, args=(pid,), name="starve", daemon=True)
        self._thread.start()

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        self.close()

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect

    def close(self) -> None:
        """See ``Fault.close``."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _starve(self, pid: int) -> None:
        turns = 0
        pids = [pid]
        try:
            while turns * _PERIOD_S < self._seconds and not self._ending.is_set():
                pids = [pid, *descendants(pid)]
                if not send(pids, signal.SIGSTOP):
                    return
                self._ending.wait(_PERIOD_S * (1 - self._percent / 100))
                send(pids, signal.SIGCONT)
                self._ending.wait(_PERIOD_S * self._percent / 100)
                turns += 1
                self._effect = f"stopped {turns} times, {self._percent:g} % of the time left"
        finally:
            send(pids, signal.SIGCONT)


FAULTS: dict[str, type[Fault]] = {
    "disk_full": DiskFull,
    "fsync_error": FsyncError,
    "clock": Clock,
    "descriptors": Descriptors,
    "out_of_memory": OutOfMemory,
    "starve_cpu": StarveCpu,
}
