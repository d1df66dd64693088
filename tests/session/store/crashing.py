"""Processes that commit to a store and are killed: run by `test_crash`.

    python -m tests.session.store.crashing DIRECTORY steps
    python -m tests.session.store.crashing DIRECTORY moments

For each step, a copy of a store is opened in a child process, which dies just before its n-th call of the
operating system that opens, makes, links, renames or removes something in the store. For each moment, a child
commits until its parent kills it. No child can clean up. What is found afterwards is printed: the
version, and whether all is well.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from tidelog import Database

PROGRAM = """
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
EVENTS = ("open", "os.mkdir", "os.link", "os.rename", "os.remove", "os.rmdir", "os.truncate")
MOMENTS = 8
VERSION = 8  # of the template; the commit that is killed also writes several files as one


def opened(place: Path) -> Database:
    return Database(PROGRAM, store=place, engine="substitution")


def commit(database: Database) -> None:
    """A commit of everything: rows that come and go, explicit facts, a rule."""
    database.commit(
        insert={"edge": [(50, 51)], "path": [(7, 7)]},
        delete={"edge": [(3, 4)]},
        add_rules="path(y, x) :- edge(x, y), x > 49.",
    )


def state(database: Database) -> object:
    return {name: list(database[name]) for name in database}, database.rules, database.version


def die_at(step: int, place: Path) -> None:
    """Die at a step of what follows, as by a power cut: SIGKILL."""
    count = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        if event in EVENTS and any(str(place) in str(argument) for argument in arguments):
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def steps(directory: Path) -> None:
    template = directory / "template"
    with opened(template) as database:
        for i in range(VERSION):
            database.commit(insert={"edge": [(i, i + 1)]})
        before, path = state(database), list(database["path"])
    complete = directory / "complete"
    shutil.copytree(template, complete)
    with opened(complete) as database:
        commit(database)
        after = state(database)
    step, killed = 0, True
    while killed:
        step += 1
        place = directory / f"step{step}"
        shutil.copytree(template, place)
        child = os.fork()
        if not child:
            try:
                database = opened(place)
                database.report  # noqa: B018  (loads what there is)
                die_at(step, place)
                commit(database)
            finally:
                os._exit(0)
        killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        with opened(place) as database:
            found = state(database)
            version, old = database.version, list(database.as_of(VERSION)["path"])
            whole = found in (before, after) and old == path
            if found == before:  # and the commit can be made now
                commit(database)
                whole = whole and state(database) == after
            database.vacuum(keep=1)
            whole = whole and clean(place) and state(database) == after
        told(version, whole)


def moments(directory: Path) -> None:
    place, draw, count = directory / "store", random.Random(3), 0
    for _ in range(MOMENTS):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            database = opened(place)
            while True:
                database.commit(insert={"edge": [(database.version, database.version + 1)]})
                os.write(writer, b".")
        os.close(writer)
        os.read(reader, 1)
        time.sleep(draw.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        count += 1
        while acknowledged := os.read(reader, 1000):
            count += len(acknowledged)
        os.close(reader)
        with opened(place) as database:
            told(database.version, count <= database.version <= count + 1 and chain(database))
            count = database.version


def chain(database: Database) -> bool:
    """Whether a database is what so many of the commits above make."""
    nodes = range(database.version + 1)
    return list(database["path"]) == [(x, y) for x in nodes for y in nodes if x < y]


def told(version: int, whole: bool) -> None:
    sys.stdout.write(f"{version} {'whole' if whole else 'broken'}\n")


def clean(place: Path) -> bool:
    """Whether nothing is left that no manifest names."""
    manifest = max(place.glob("manifests/*")).read_text()
    files = [path for path in place.rglob("*") if path.is_file() and path.parent.name != "manifests"]
    return all(path.name == "lock" or str(path.relative_to(place)) in manifest for path in files)


if __name__ == "__main__":
    {"steps": steps, "moments": moments}[sys.argv[2]](Path(sys.argv[1]))
