"""The main job, through Spark: who may reach what in a company's network, and what a change does to it.

Writes facts to build/demo/facts, runs network_access/program.dl over them, writes the answers to
build/demo/answers. Then the same program is kept current in process (`keep_current`): facts are deleted and
inserted, a rule comes and goes. Always the same company: nothing here is random.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import tidelog

EXAMPLES = Path(__file__).parent
PROGRAM = EXAMPLES / "network_access" / "program.dl"
OUTPUT = EXAMPLES.parent / "build" / "demo"
ANSWERS = ("MayReach", "Exposure", "Unused", "Alarm", "Reach")

ON_CALL = 'MayReach(who, service) :- Member(who, "platform-osaka"), Service(service, 3).'

Row = tuple[object, ...]
Facts = dict[str, list[Row]]

FIRST = (
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eva",
    "Finn",
    "Gwen",
    "Hugo",
    "Iris",
    "Jan",
    "Kim",
    "Leo",
    "Mia",
    "Noor",
)
LAST = (
    *("Abel", "Berg", "Cruz", "Diaz", "Eder", "Fox", "Gray", "Hahn", "Ito", "Jung", "Kern", "Lund", "Moor"),
    *("Nagy", "Olsen", "Pohl", "Ruiz", "Sato", "Toth", "Ueda", "Vogel", "Wong", "Xu", "Yilmaz", "Zhou"),
    *("Arnold", "Bauer", "Chen", "Dunn", "Evans", "Frank", "Gomez", "Haas", "Ivanov", "Jones", "Klein"),
    *("Lopez", "Mann", "Novak", "Ortiz", "Petit", "Quist", "Rossi", "Silva", "Tanaka", "Urban", "Vega"),
)
DIVISIONS = {
    "engineering": ("backend", "frontend", "data", "mobile", "platform", "security"),
    "finance": ("payroll", "billing", "audit", "treasury"),
    "people": ("recruiting", "benefits", "training"),
    "sales": ("north", "south", "west", "partners", "support"),
}
REGIONS = ("berlin", "lima", "osaka")
TIERS = ("web", "app", "core", "store")  # a service calls services of the next tier
PER_TIER = 45


def dice(*parts: object) -> Callable[[int], int]:
    """Numbers that look random and are the same in every run (a linear congruential generator)."""
    state = sum((i + 1) * ord(c) for i, c in enumerate("/".join(map(str, parts))))

    def roll(sides: int) -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % sides

    return roll


def company() -> Facts:
    """The facts about the company, by relation."""
    teams = [f"{team}-{region}" for names in DIVISIONS.values() for team in names for region in REGIONS]
    members: list[Row] = []
    for division, names in DIVISIONS.items():
        members += [(division, "staff"), *((team, division) for team in names)]
        members += [(f"{team}-{region}", team) for team in names for region in REGIONS]
    members += [(f"contractors-{region}", "contractors") for region in REGIONS] + [("contractors", "guests")]

    people: list[Row] = []
    for number, name in enumerate(f"{first} {last}" for last in LAST for first in FIRST):
        roll = dice("person", name)
        contractor = number % 9 == 4
        people.append((name, "contractor" if contractor else "employee"))
        members.append((name, teams[roll(len(teams))]))
        if contractor:
            members.append((name, f"contractors-{REGIONS[roll(len(REGIONS))]}"))
        elif roll(5) == 0:  # some work for two teams
            members.append((name, teams[roll(len(teams))]))

    services: list[Row] = []
    calls: list[Row] = []
    grants: list[Row] = [("staff", "web-00"), ("staff", "web-01"), ("guests", "web-02")]
    for tier, name in enumerate(TIERS):
        for number in range(PER_TIER):
            service, roll = f"{name}-{number:02}", dice(name, number)
            services.append((service, min(3, max(0, tier - 1 + roll(2)))))
            if tier + 1 < len(TIERS):
                behind = (f"{TIERS[tier + 1]}-{roll(PER_TIER - 4):02}" for _ in range(1 + roll(3)))
                calls += [(service, called) for called in dict.fromkeys(behind)]
            if tier < 2 and roll(4) > 0:
                team = teams[roll(len(teams))]
                grants.append((team if tier else team.split("-")[0], service))
    denied: list[Row] = [("contractors", service) for service, secrecy in services if secrecy == 3]
    denied = [row for i, row in enumerate(denied) if i % 8]  # a few were forgotten
    denied += [("sales", "core-07"), ("people", "core-07"), ("frontend", "store-11")]
    return {
        "Member": members,
        "Person": people,
        "Grant": sorted(set(grants), key=str),
        "Denied": denied,
        "Calls": calls,
        "Service": services,
    }


def changes() -> Facts:
    """What happens later: a hire, a broad grant, a new dependency, two denials."""
    return {
        "Person": [("Zoe Wells", "contractor")],
        "Member": [("Zoe Wells", "data-lima"), ("Zoe Wells", "contractors-lima")],
        "Grant": [("billing", "app-12")],
        "Calls": [("web-02", "store-44")],
        "Denied": [("contractors", "store-44"), ("south", "core-20")],
    }


def write_facts(facts: Facts, directory: Path) -> None:
    """One tab-separated file for each relation."""
    directory.mkdir(parents=True, exist_ok=True)
    for relation, rows in facts.items():
        lines = ("\t".join(map(str, row)) + "\n" for row in rows)
        (directory / f"{relation}.facts").write_text("".join(lines), encoding="utf-8")


def show(console: Console, title: str, columns: Sequence[str], rows: Iterable[Row], most: int = 6) -> None:
    """The first rows as a table."""
    kept = list(rows)
    console.print(f"[bold]{title}[/bold] ({len(kept):,} rows)")
    table = Table()
    for name in columns:
        table.add_column(name)
    for row in kept[:most]:
        table.add_row(*map(str, row))
    if len(kept) > most:
        table.add_row(*["..."] * len(columns))
    console.print(table)


def show_changes(console: Console, before: dict[str, set[Row]], after: dict[str, set[Row]]) -> None:
    """What came and what went, by relation."""
    console.print("[bold]What changed in the answers[/bold] (+ new, - gone)")
    table = Table()
    for name in ("relation", "new", "gone", "for example"):
        table.add_column(name, justify="right" if name in ("new", "gone") else "left")
    for name in ANSWERS:
        new, gone = after[name] - before[name], before[name] - after[name]
        examples = [f"+ {', '.join(map(str, row))}" for row in sorted(new, key=str)[:2]]
        examples += [f"- {', '.join(map(str, row))}" for row in sorted(gone, key=str)[:2]]
        table.add_row(name, f"{len(new):,}", f"{len(gone):,}", "\n".join(examples) or "nothing")
    console.print(table)


def answers(db: tidelog.Database) -> dict[str, set[Row]]:
    return {name: set(db[name]) for name in ANSWERS}


def by(column: int) -> Callable[[Row], tuple[float, str]]:
    """Largest first."""
    return lambda row: (-float(str(row[column])), str(row))


def keep_current(console: Console) -> None:
    """The same program in process: facts are deleted and inserted, a rule comes and goes."""
    with tidelog.Database(PROGRAM) as db:
        db.load(OUTPUT / "facts")
        console.print(f"derived everything in {1000 * db.report.seconds:,.0f} ms\n")

        console.print("Someone moves to another team, and a grant is taken back, in one transaction:")
        with db.transaction() as tx:
            tx.delete("Member", [row for row in db["Member"] if row[0] == "Ada Abel"])
            tx.insert("Member", [("Ada Abel", "security-lima")])
            tx.delete("Grant", [("guests", "web-02")])
        show_change_set(console, tx.changes)
        show_report(console, tx.report)

        console.print("\nA rule is added, for people on call:")
        console.print(f"  + {escape(ON_CALL)}", highlight=False, soft_wrap=True)
        show_change_set(console, db.commit(add_rules=[ON_CALL]))
        console.print("... and removed again; facts stay all the time:")
        show_change_set(console, db.commit(remove_rules=[ON_CALL]))


def show_change_set(console: Console, changes: tidelog.ChangeSet) -> None:
    """The numbers of tuples that went and came in each relation, and the first of them."""
    table = Table()
    for name in ("relation", "gone", "new", "for example"):
        table.add_column(name, justify="right" if name in ("new", "gone") else "left")
    for name, changed in changes.items():
        examples = [f"- {', '.join(map(str, row))}" for row in changed.deleted[:1]]
        examples += [f"+ {', '.join(map(str, row))}" for row in changed.inserted[:1]]
        sizes = (f"{len(changed.deleted):,}", f"{len(changed.inserted):,}")
        table.add_row(name, *sizes, "\n".join(examples))
    console.print(table)


def show_report(console: Console, report: tidelog.Report) -> None:
    """What a commit took. Parts of aggregates are strata of their own; they are summed up in a line."""
    console.print("What that took, stratum by stratum:")
    table = Table()
    for name in ("stratum", "algorithm", "ms", "rule instances", "why"):
        table.add_column(name, justify="right" if name == "ms" else "left")
    within = [line for line in report.strata if "(" in line.relations[0]]
    for line in report.strata:
        if line not in within:
            phases = "\n".join(f"{phase.name} {phase.instances:,}" for phase in line.phases)
            time = f"{1000 * line.seconds:,.1f}"
            table.add_row(", ".join(line.relations), line.algorithm, time, phases, line.why)
    time = f"{1000 * sum(line.seconds for line in within):,.1f}"
    table.add_row("parts of aggregates", "", time, f"{sum(line.instances for line in within):,}", "")
    console.print(table)


def main() -> None:
    # A short run: let Java not spend its time on optimising for a long one.
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    console = Console()
    shutil.rmtree(OUTPUT, ignore_errors=True)
    facts = company()
    write_facts(facts, OUTPUT / "facts")
    total = sum(map(len, facts.values()))
    console.print("[bold]Who may reach what in a company's network[/bold]")
    console.print(f"rules: {PROGRAM.relative_to(EXAMPLES.parent)}")
    console.print(f"facts: {OUTPUT.relative_to(EXAMPLES.parent)}/facts, {total:,} of them: ", end="")
    console.print(", ".join(f"{len(rows):,} {name}" for name, rows in facts.items()))
    console.print("Starting Spark and deriving the answers; this takes a while ...")

    started = perf_counter()
    with tidelog.Database(PROGRAM, engine="spark") as db:
        db.load(OUTPUT / "facts")
        first = answers(db)
        console.print(f"done in {perf_counter() - started:.1f} s, Spark's start included\n")
        title = "MayReach: who may use which service, directly or through others"
        show(console, title, ("who", "service"), sorted(first["MayReach"], key=str))
        title = "Exposure: how many people reach a service, most first"
        show(console, title, ("service", "people"), sorted(first["Exposure"], key=by(1)))
        title = "Reach: how many services someone reaches, and their secrecy in all"
        show(console, title, ("who", "services", "secrecy"), sorted(first["Reach"], key=by(1)))
        title = "Unused: services that nobody reaches"
        show(console, title, ("service",), sorted(first["Unused"], key=str), 3)
        title = "Alarm: contractors who reach a secret service"
        show(console, title, ("who", "service"), sorted(first["Alarm"], key=str))

        console.print("\nThen these facts are added, in one transaction:")
        started = perf_counter()
        with db.transaction() as tx:
            for relation, rows in changes().items():
                tx.insert(relation, rows)
                for row in rows:
                    console.print(f"  + {relation}({', '.join(map(str, row))})")
        second = answers(db)
        console.print(f"new answers in {perf_counter() - started:.1f} s\n")
        show_changes(console, first, second)
        written = db.write(OUTPUT / "answers")
    console.print(f"\nAll answers are in {OUTPUT.relative_to(EXAMPLES.parent)}/answers: ", end="")
    console.print(", ".join(path.name for path in written))
    console.print("\n[bold]The same program in process, kept current[/bold]")
    keep_current(Console(quiet=True))  # so that the times below are not those of compiling kernels
    keep_current(console)


if __name__ == "__main__":
    main()
