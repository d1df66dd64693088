"""A standalone Spark cluster on this machine: one master and some workers, each a process of its own.

They come from the installed PySpark, listen on 127.0.0.1 only, on ports that are free, and keep their
files in one directory. It is for tests and measurements that need executors elsewhere than in the
driver's process, and executors that can be lost.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

HOST = "127.0.0.1"
PATIENCE = 120.0  # seconds; on a busy machine a JVM is slow to start
JAVA = "-XX:-UsePerfData -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Cluster:
    """A master, and as many workers as are asked for; all end with the `with` block."""

    def __init__(self, directory: Path, workers: int = 2, cores: int = 1, memory: str = "1g") -> None:
        """Each worker offers `cores` and `memory` to executors."""
        self.directory, self.cores, self.memory = directory, cores, memory
        self.url = ""
        self.workers: list[Daemon] = []
        self._first = workers
        self._master: Daemon | None = None

    def __enter__(self) -> Cluster:
        try:
            self._master = Daemon(self.directory, "master", ["--port", "0", "--webui-port", "0"])
            self.url = self._master.said(r"Starting Spark master at (spark://\S+)")
            for _ in range(self._first):
                self.add()
            for worker in self.workers:
                worker.said("(Successfully) registered with master")
        except BaseException:
            self.stop()
            raise
        return self

    def add(self) -> Daemon:
        """Start one more worker; the master learns of it soon."""
        name = f"worker{len(self.workers)}"
        files = ["--work-dir", str(self.directory / name)]
        offers = ["--cores", str(self.cores), "--memory", self.memory, "--webui-port", "0"]
        worker = Daemon(self.directory, "worker", [*files, *offers, self.url], name)
        self.workers.append(worker)
        return worker

    def stop(self) -> None:
        """End all processes, those of executors included."""
        for daemon in [*self.workers, self._master]:
            if daemon is not None:
                daemon.kill()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Daemon:
    """A process of the cluster; what it starts itself is in its process group."""

    def __init__(self, directory: Path, kind: str, arguments: list[str], name: str = "master") -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        self.log = directory / f"{name}.log"
        local = directory / f"{name}-files"
        local.mkdir(parents=True)
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_JAVA_OPTS": f"{JAVA} -Djava.io.tmpdir={local}",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_DIRS": str(local),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_NO_DAEMONIZE": "1",
            "TMPDIR": str(local),
        }
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [home / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}.{kind.title()}",
                 "--host", HOST, *arguments],
                cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def said(self, pattern: str) -> str:
        """Wait until the log has a line like this; what its group matched."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            text = self.log.read_text(encoding="utf-8", errors="replace")
            if found := re.search(pattern, text):
                return found[1]
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.log.stem} ended:\n{text[-2000:]}")
            time.sleep(0.05)
        raise RuntimeError(f"{self.log.stem} does not say {pattern!r}:\n{text[-2000:]}")

    def kill(self) -> None:
        """SIGKILL to the process and to the executors it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
