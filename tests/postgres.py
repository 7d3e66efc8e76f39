"""A PostgreSQL server of the tests' own, in a folder that goes away with it."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

USER = "f2a"


def program_folder() -> Path | None:
    """Where the server's programs are, if they are anywhere."""
    found = shutil.which("postgres")
    if found is not None:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders else None


class PostgresServer:
    """Started when made; stop and start it again at will."""

    def __init__(self) -> None:
        programs = program_folder()
        assert programs is not None
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="f2a-postgres-"))
        self._data = self.folder / "data"
        self._owner = {}
        self._count = 0
        if os.getuid() == 0:  # the server refuses to be run by root
            names = {entry.pw_name for entry in pwd.getpwall()}
            user = "postgres" if "postgres" in names else "nobody"
            entry = pwd.getpwnam(user)
            self._owner = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        self._run("initdb", "-D", self._data, "-U", USER, "-A", "trust", "--no-sync")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -h 127.0.0.1 -k {self.folder} -F"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self._data, "-o", options, "-l", log, "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")

    def new_database(self) -> str:
        """The URL of an empty one."""
        self._count += 1
        name = f"test{self._count}"
        self._run("createdb", "-h", "127.0.0.1", "-p", self.port, "-U", USER, name)
        return self.url.removesuffix("postgres") + name

    def close(self) -> None:
        self.stop()
        for _ in range(10):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                return
            time.sleep(0.1)

    def _run(self, program: str, *args: object) -> None:
        command = [str(self._programs / program), *map(str, args)]
        # A server inherits what it is given: a pipe would stay open as long as it lives.
        output = subprocess.DEVNULL if program == "pg_ctl" else subprocess.PIPE
        done = subprocess.run(
            command, cwd="/", stdout=output, stderr=subprocess.STDOUT, **self._owner
        )
        assert done.returncode == 0, (command, done.stdout)
