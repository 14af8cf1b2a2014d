"""One scripted commit of moves alone: files to their rooms, and every name of them, in code, strings, settings, documents.

Usage: rooms.py TREE MOVES.TXT CONTRACTS.TOML, in a clean checkout; then `ruff check --fix`, `ruff format`, mypy, lint-imports.
Where it was tried (branch ``rooms``, on the main of that hour): ten contracts kept, mypy clean, no circle in a folder.
Entry points move too: install the checkout again. Not run on the result: integration tests.
"""
import ast, os, pathlib, re, subprocess, sys

root = pathlib.Path(sys.argv[1]); os.chdir(root)
LIST, CONTRACTS = sys.argv[2:4]
files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
files = [f for f in files if f]
MOVE = {}
for line in open(LIST):
    m = re.match(r"\s+(\S+) moves to (\S+)$", line)
    if m: MOVE[m[1]] = m[2]
# -- what the list is silent on, or has elsewhere
OWN = {
 "migrator/lineage.py": "migrator/model/lineage.py",
 "migrator/same_server.py": "migrator/connections/same_server.py",
 "migrator/mysql_session.py": "migrator/connections/mysql/session.py",
 "migrator/postgres_session.py": "migrator/connections/postgres/session.py",
 "migrator/binlog/settings.py": "migrator/connections/mysql/settings.py",
 "migrator/mysql_connection.py": "migrator/connections/mysql/connection.py",
 "migrator/binlog/sql.py": "migrator/connections/mysql/sql.py",
 "migrator/binlog/sequences.py": "migrator/connections/mysql/sequences.py",
 "migrator/binlog/packet_buffer.py": "migrator/connections/mysql/packet_buffer.py",
 "migrator/binlog/result_set.py": "migrator/connections/mysql/result_set.py",
 "migrator/binlog/statements.py": "migrator/adapters/sources/binlog/statements/statements.py",
 "migrator/binlog/altered.py": "migrator/adapters/sources/binlog/statements/altered.py",
 "migrator/binlog/alter_clauses.py": "migrator/adapters/sources/binlog/statements/alter_clauses.py",
 "migrator/binlog/definitions.py": "migrator/adapters/sources/binlog/statements/definitions.py",
 "migrator/binlog/query_event.py": "migrator/adapters/sources/binlog/statements/query_event.py",
 "migrator/binlog/sql_words.py": "migrator/adapters/sources/binlog/statements/sql_words.py",
 "migrator/binlog/statement_reader.py": "migrator/adapters/sources/binlog/statements/statement_reader.py",
 "migrator/binlog/foreign_keys.py": "migrator/adapters/sources/binlog/statements/foreign_keys.py",
 "migrator/binlog/refusals.py": "migrator/adapters/sources/binlog/statements/refusals.py",
 "migrator/binlog/proof.py": "migrator/adapters/sources/binlog/transactions/proof.py",
 "migrator/mirror/refused.py": "migrator/adapters/targets/shared/mirror/refused.py",
 "migrator/sqltarget/lost_row.py": "migrator/adapters/targets/shared/lost_row.py",
 "migrator/sqltarget/unchanged.py": "migrator/adapters/targets/shared/unchanged.py",
 "migrator/adapters/postgres/identity.py": "migrator/adapters/sources/postgres/log/identity.py",
 "migrator/adapters/postgres/same_log.py": "migrator/adapters/sources/postgres/log/same_log.py",
 "migrator/model/codec.py": "migrator/model/codecs/codec.py",
 "migrator/model/fed_codec.py": "migrator/model/codecs/fed_codec.py",
 "migrator/model/hint_codec.py": "migrator/model/codecs/hint_codec.py",
 "migrator/model/ledger_codec.py": "migrator/model/codecs/ledger_codec.py",
 "migrator/run/between.py": "migrator/run/lead/between.py",
 "migrator/run/carried.py": "migrator/run/lead/carried.py",
 "migrator/run/grain_proof.py": "migrator/run/commands/grain_proof.py",
 "migrator/run/trial_map.py": "migrator/run/commands/trial_map.py",
 "verify/as_printed.py": "verify/readers/as_printed.py",
 "migrator/binlog/keyset.py": "migrator/adapters/sources/binlog/keyset.py",
 "migrator/binlog/check_scope.py": "migrator/adapters/sources/binlog/check_scope.py",
 "scenarios/faults/proxy.py": "scenarios/proxy/proxy.py",
 "scenarios/faults/link.py": "scenarios/proxy/link.py",
 "scenarios/faults/triggers.py": "scenarios/proxy/triggers.py",
 "scenarios/faults/wire.py": "scenarios/proxy/wire.py",
 "verify/postgres_printed.py": "verify/readers/postgres/printed.py",
 "verify/mariadb_printed.py": "verify/readers/mysql/printed.py",
 "migrator/model/request.py": "migrator/model/requests/request.py",
 "migrator/model/predicate.py": "migrator/model/requests/predicate.py",
 "verify/hexadecimal.py": "verify/readers/mysql/hexadecimal.py",
 "verify/mysql_pins.py": "verify/readers/mysql/pins.py",
 "verify/mysql_warnings.py": "verify/readers/mysql/warnings.py",
 "verify/postgres_operators.py": "verify/readers/postgres/operators.py",
 "verify/postgres_session.py": "verify/readers/postgres/pins.py",
 "transforms/link_equality.py": "transforms/analysis/link_equality.py",
 "transforms/apart.py": "transforms/on_spark/apart.py",
 "transforms/surroundings.py": "transforms/on_spark/surroundings.py",
 "transforms/unstarted.py": "transforms/on_spark/unstarted.py",
 "migrator/cli/repair.py": "migrator/cli/repair/repair.py",
 "migrator/cli/repair_choice.py": "migrator/cli/repair/choice.py",
 "migrator/cli/repair_forms.py": "migrator/cli/repair/forms.py",
 "migrator/cli/repair_html.py": "migrator/cli/repair/html.py",
 "migrator/cli/repair_report.py": "migrator/cli/repair/report.py",
 "migrator/cli/run.py": "migrator/cli/run/run.py",
 "migrator/cli/display.py": "migrator/cli/run/display.py",
 "migrator/cli/verifier.py": "migrator/cli/run/verifier.py",
 "migrator/cli/init.py": "migrator/cli/init/init.py",
 "migrator/cli/project_text.py": "migrator/cli/init/project_text.py",
}
MOVE.update(OWN)
def room(folder, names, into):
    for n in names.split():
        old, _, new = n.partition(">")
        MOVE[f"{folder}/{old}.py"] = f"{into}/{new or old}.py"
for e in ("mysql", "postgres"):
    s, d = f"migrator/adapters/target_{e}", f"migrator/adapters/targets/{e}"
    room(s, "mirror mirror_keeper>keeper mirror_keys>keys mirror_sql>sql mirror_tables>tables joined_writer", d + "/mirror")
    room(s, "encode explain merge prepared scratch staging writer", d + "/rows")
    room(s, "preflight grants", d + "/checks")
room("migrator/adapters/target_mysql", "mirror_names>names mirror_values>values", "migrator/adapters/targets/mysql/mirror")
room("migrator/adapters/target_mysql", "json_numbers", "migrator/adapters/targets/mysql/rows")
room("migrator/adapters/target_mysql", "preflight_rights", "migrator/adapters/targets/mysql/checks")
room("migrator/adapters/target_postgres", "executor_staging order kept", "migrator/adapters/targets/postgres/rows")
room("migrator/adapters/target_postgres", "tied", "migrator/adapters/targets/postgres/checks")
# -- what is left in a folder moves with it
FOLDERS = [
 ("migrator/adapters/local/", "migrator/adapters/coordination/local/"),
 ("migrator/adapters/zookeeper/", "migrator/adapters/coordination/zookeeper/"),
 ("migrator/adapters/files/", "migrator/adapters/event_log/files/"),
 ("migrator/adapters/json_lines/", "migrator/adapters/outputs/json_lines/"),
 ("migrator/adapters/parquet_events/", "migrator/adapters/outputs/parquet_events/"),
 ("migrator/adapters/executors/", "migrator/adapters/sources/executors/"),
 ("migrator/adapters/mariadb/", "migrator/adapters/sources/mariadb/"),
 ("migrator/adapters/mysql/", "migrator/adapters/sources/mysql/"),
 ("migrator/adapters/postgres/", "migrator/adapters/sources/postgres/"),
 ("migrator/adapters/target_mysql/", "migrator/adapters/targets/mysql/"),
 ("migrator/adapters/target_postgres/", "migrator/adapters/targets/postgres/"),
 ("migrator/binlog/", "migrator/adapters/sources/binlog/"),
 ("migrator/mirror/", "migrator/adapters/targets/shared/mirror/"),
 ("migrator/sqltarget/", "migrator/adapters/targets/shared/"),
 ("migrator/cli/template/", "migrator/cli/init/template/"),
 ("scenarios/capturebench/", "scenarios/bench/capture/"),
 ("scenarios/orders/", "scenarios/bench/orders/"),
 ("scenarios/shapes/", "scenarios/bench/shapes/"),
 ("scenarios/employees/", "scenarios/stories/employees/"),
 ("scenarios/sakila/", "scenarios/stories/sakila/"),
]
for f in files:
    if f not in MOVE:
        for old, new in FOLDERS:
            if f.startswith(old): MOVE[f] = new + f[len(old):]; break
MOVE = {a: b for a, b in MOVE.items() if a in files and a != b}
assert len(set(MOVE.values())) == len(MOVE), [b for b in MOVE.values() if list(MOVE.values()).count(b) > 1]

def dotted(path):
    parts = list(pathlib.PurePosixPath(path).with_suffix("").parts)
    if parts[-1] == "__init__": parts.pop()
    return ".".join(parts)
MODULE = {dotted(a): dotted(b) for a, b in MOVE.items() if a.endswith(".py")}
KNOWN = {dotted(f) for f in files if f.endswith(".py")}
FOLDER_NAMES = {old.rstrip("/"): new.rstrip("/") for old, new in FOLDERS}

BODY = {}
SYMBOL = {
 ("verify.result", "Verdict"): "verify.verdict",
 ("verify.result", "overall_verdict"): "verify.verdict",
 ("verify.target_reader", "target_reader"): "verify.readers.target",
}
def rewrite_import(node, lines):
    """New text of an import statement, or None."""
    if isinstance(node, ast.Import):
        if not any(a.name in MODULE for a in node.names): return None
        return "\n".join(f"import {MODULE.get(a.name, a.name)}" + (f" as {a.asname}" if a.asname else "") for a in node.names)
    groups = {}
    for a in node.names:
        full = f"{node.module}.{a.name}"
        if full in KNOWN:
            new = MODULE.get(full, full)
            package, _, name = new.rpartition(".")
            bound = a.asname or a.name
            groups.setdefault(package, []).append(name if bound == name else f"{name} as {bound}")
        else:
            mod = SYMBOL.get((node.module, a.name)) or MODULE.get(node.module, node.module)
            groups.setdefault(mod, []).append(a.name + (f" as {a.asname}" if a.asname else ""))
    if list(groups) == [node.module] and all(
        (a.name + (f" as {a.asname}" if a.asname else "")) in groups[node.module] for a in node.names): return None
    indent = " " * node.col_offset
    out = []
    for mod, names in groups.items():
        one = f"from {mod} import {', '.join(names)}"
        out.append(one if len(one) < 100 else f"from {mod} import (\n{indent}    " + f",\n{indent}    ".join(names) + f",\n{indent})")
    return ("\n" + indent).join(out)

def python(text):
    tree = ast.parse(text)
    lines = text.split("\n")
    edits = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and getattr(node, "level", 0) == 0:
            if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(("migrator", "transforms", "verify", "scenarios")): continue
            new = rewrite_import(node, lines)
            if new is not None:
                tail = lines[node.end_lineno - 1][node.end_col_offset:]
                edits.append((node.lineno, node.end_lineno, " " * node.col_offset + new + tail))
    real = {n for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)) for n in range(node.lineno, node.end_lineno + 1)}
    # programs that stand in strings
    for number, line in enumerate(lines, 1):
        m = re.match(r"(\s*)((?:from|import) (?:migrator|transforms|verify|scenarios)\b[^;#]*)$", line)
        if m and number not in real:
            try: node = ast.parse(m[2].strip()).body[0]
            except SyntaxError: continue
            if isinstance(node, (ast.Import, ast.ImportFrom)) and (new := rewrite_import(node, lines)) is not None:
                edits.append((number, number, "\n".join(m[1] + x for x in new.split("\n"))))
    for start, end, new in sorted(edits, reverse=True):
        lines[start - 1:end] = new.split("\n")
    return "\n".join(lines)

DOTTED = re.compile(r"(?<![\w./-])(migrator|transforms|verify|scenarios)((?:\.\w+)+)")
def names(text, is_python):
    """Dotted names and paths wherever else they stand."""
    def dot(m):
        parts = (m[1] + m[2]).split(".")
        for n in range(len(parts), 1, -1):
            key = ".".join(parts[:n])
            if key in MODULE: return ".".join([MODULE[key], *parts[n:]])
            if key in KNOWN: return m[0]
        return m[0]
    out = []
    for line in text.split("\n"):
        if not (is_python and re.match(r"\s*(from|import) ", line)): line = DOTTED.sub(dot, line)
        out.append(line)
    text = "\n".join(out)
    def path(m):
        p = m[0]
        if p in MOVE: return MOVE[p]
        return p
    text = re.sub(r"(?<![\w.-])(?:migrator|transforms|verify|scenarios)(?:/[\w.-]+)+", lambda m: path(m), text)
    def short(m):
        p = "migrator/" + m[0]
        if p in MOVE: return MOVE[p].removeprefix("migrator/")
        p = "migrator/adapters/" + m[0]
        if p in MOVE: return MOVE[p].removeprefix("migrator/adapters/")
        return m[0]
    text = re.sub(r"(?<![\w/.-])(?:adapters|binlog|mirror|sqltarget|run|target_mysql|target_postgres)/[\w/]+\.py", short, text)
    def folder(m):
        p = m[0].rstrip("/")
        if p in FOLDER_NAMES: return FOLDER_NAMES[p] + m[0][len(p):]
        return m[0]
    text = re.sub(r"(?<![\w.-])(?:migrator|scenarios)(?:/\w+)+/?(?![\w/.-]*\.\w)", folder, text)
    return text

SKIP = ("tests/formats/", ".git/")
for f in files:
    if f.startswith(SKIP): continue
    p = pathlib.Path(f)
    if not p.is_file(): continue
    try: text = p.read_text()
    except UnicodeDecodeError: continue
    if text.count("\n") > 20000: continue
    new = text
    if f.endswith(".py"):
        new = python(new)
    if p.suffix in {".py", ".toml", ".md", ".yaml", ".yml", ".txt", ".ini", ".mako", ""} or p.name in {"Makefile"}:
        new = names(new, f.endswith(".py"))
    # paths in docs that leave out the top folder are left as they are
    if new != text: p.write_text(new)
# relative links of documents that move
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)")
for old, new in MOVE.items():
    if old.endswith(".md"):
        here, there = os.path.dirname(old), os.path.dirname(new)
        def link(m):
            target = os.path.normpath(os.path.join(here, m[1]))
            target = MOVE.get(target, target)
            for a, b in FOLDERS:
                if (target + "/").startswith(a) and target not in MOVE.values(): target = (b + (target + "/")[len(a):]).rstrip("/")
            return f"]({os.path.relpath(target, there)}{m[2] or ''})"
        text = pathlib.Path(old).read_text()
        pathlib.Path(old).write_text(LINK.sub(link, text))
for old, new in MOVE.items():
    pathlib.Path(new).parent.mkdir(parents=True, exist_ok=True)
# names that are a file and a folder at once: two steps
for i, old in enumerate(MOVE): subprocess.run(["git", "mv", old, f".moving-{i}"], check=True)
for i, new in enumerate(MOVE.values()):
    pathlib.Path(new).parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "mv", f".moving-{i}", new], check=True)
for d in sorted({*root.rglob("*")} , reverse=True):
    if d.is_dir() and d.name == "__pycache__" and ".venv" not in d.parts:
        import shutil; shutil.rmtree(d, ignore_errors=True)
for top in ("migrator", "transforms", "verify", "scenarios"):
    for d in sorted((root / top).rglob("*"), reverse=True):
        if d.is_dir() and not any(d.iterdir()): d.rmdir()
DOC = {
 "migrator/adapters/sources": "Old databases: one folder an engine, and the binlog that two of them share.",
 "migrator/adapters/targets": "New databases: one folder an engine, and what they share.",
 "migrator/adapters/event_log": "Where captured segments rest.",
 "migrator/adapters/coordination": "Who leads, and what is asked of the leader.",
 "migrator/adapters/outputs": "Where mapped changes go besides a target.",
 "migrator/config": "Settings of a project: read, checked, and handed on as values.",
 "migrator/connections": "How servers are connected to: settings, sessions, patience. Sources, targets and the judge use it.",
 "migrator/connections/mysql": "MySQL and MariaDB, as sources, targets and the judge connect to them.",
 "migrator/connections/postgres": "PostgreSQL, as sources, targets and the judge connect to it.",
 "migrator/wiring": "The only place that chooses adapters.",
 "migrator/run/capture": "The loop that turns a source's log and chunks into segments.",
 "migrator/run/apply": "The loop that maps segments and commits batches.",
 "migrator/run/lead": "What who leads does before the loops: the epoch, the place to go on from, what was changed since.",
 "migrator/run/commands": "What commands do besides a run: try, repair, ask for dumps, stream events.",
 "migrator/cli/repair": "The command that repairs a target.",
 "migrator/cli/run": "The command that runs a migration.",
 "migrator/cli/init": "The command that begins a project.",
 "migrator/model/codecs": "Values as JSON and back.",
 "migrator/model/requests": "What an operator asks of a run: dumps, and the predicates that say of which rows.",
 "migrator/adapters/sources/binlog/chunks": "Chunks of MySQL's and MariaDB's tables.",
 "migrator/adapters/sources/binlog/events": "Events of a binlog: their frames and fields.",
 "migrator/adapters/sources/binlog/rows": "Rows of a binlog's events.",
 "migrator/adapters/sources/binlog/statements": "Statements in a binlog, read as their clients wrote them.",
 "migrator/adapters/sources/binlog/transactions": "Transactions of a binlog, whole and in order.",
 "migrator/adapters/sources/binlog/wire": "Packets between MySQL's or MariaDB's server and us.",
 "migrator/adapters/sources/postgres/chunks": "Chunks of PostgreSQL's tables.",
 "migrator/adapters/sources/postgres/log": "PostgreSQL's logical log.",
 "scenarios/bench": "Benchmarks.",
 "scenarios/proxy": "A proxy between a run and its servers that delays, cuts and changes what passes.",
 "scenarios/play": "Playing a scenario: the stage, the faults, the run, what came of it.",
 "scenarios/stories": "Whole migrations of well-known databases.",
 "transforms/analysis": "What a mapping's plan tells: grains, keys, lineage, row-wise parts.",
 "transforms/on_spark": "Spark sessions, and jobs that run a mapping.",
 "verify/readers": "The judge's own readers of both sides.",
 "verify/readers/mysql": "The judge's readers of MySQL and MariaDB.",
 "verify/readers/postgres": "The judge's readers of PostgreSQL.",
 "verify/report": "Pages and files of a report.",
 "verify/tables": "Comparing tables: mapping(source) with the target.",
 "verify/tables/compare": "Two frames, compared value by value.",
 "verify/tables/findings": "What differs, why, and what mends it.",
 "verify/tables/hashed_by_servers": "Hashes of rows that servers compute.",
 "verify/tables/rounds": "Rounds of a verification under live writes.",
 "verify/tables/sweeps": "Walks through a table or its grains, chunk by chunk.",
}
for e, n in (("mysql", "MySQL and MariaDB"), ("postgres", "PostgreSQL")):
    DOC[f"migrator/adapters/targets/{e}/mirror"] = f"The mirror of joined tables in {n}."
    DOC[f"migrator/adapters/targets/{e}/rows"] = f"Rows on their way into a table of {n}: encoded, staged, merged."
    DOC[f"migrator/adapters/targets/{e}/checks"] = f"What is looked at in {n} before a run."
made = []
for top in ("migrator", "transforms", "verify", "scenarios"):
    for py in (root / top).rglob("*.py"):
        d = py.parent
        rel = d.relative_to(root).as_posix()
        if "alembic" in rel.split("/") or rel.endswith("/tests") or rel == "scenarios/flights/tests": continue
        while rel:
            i = root / rel / "__init__.py"
            if not i.exists():
                i.write_text(f'"""{DOC[rel]}"""\n'); made.append(rel)
            rel = rel.rpartition("/")[0]

# -- lines that became too long: the paragraph is wrapped anew
import textwrap
BULLET = re.compile(r"([-*|#>]|\d+\.|\w+: |``|>>>|\.\.\.|Args:|Attributes:|Raises:|Returns:)")
for path in [f for top in ("migrator", "transforms", "verify", "scenarios", "tests") for f in (root / top).rglob("*.py")]:
    if ".venv" in path.parts or "formats" in path.parts: continue
    lines = path.read_text().split("\n"); changed = False
    i = 0
    while i < len(lines):
        line = lines[i]
        if len(line) > 116 and not re.search(r"^\s*(from|import) |noqa", line):
            s = line.strip()
            indent = line[: len(line) - len(line.lstrip())]
            comment = s.startswith("#")
            opens = re.match(r'(\s*)(r?""")', line)
            inside = sum(l.count('"""') for l in lines[:i]) % 2 == 1
            if not (comment or opens or inside): i += 1; continue
            mark = "# " if comment else ""
            end = i + 1
            closed = s.endswith('"""') and not (opens and s == '"""')
            while end < len(lines) and not closed:
                n = lines[end]; ns = n.strip()
                if not ns or ns == '"""' or n[: len(n) - len(n.lstrip())] != indent: break
                if comment and not ns.startswith("# "): break
                if BULLET.match(ns.removeprefix(mark)): break
                closed = ns.endswith('"""'); end += 1
            body = " ".join(l.strip().removeprefix(mark) for l in lines[i:end])
            hang = indent
            if not comment and not opens and re.match(r"\w+: ", s): hang = indent + "    "
            lines[i:end] = textwrap.wrap(body, 110, initial_indent=indent + mark, subsequent_indent=hang + mark, break_long_words=False, break_on_hyphens=False)
            changed = True
        i += 1
    if changed: path.write_text("\n".join(lines))
# -- a verdict's words and the choice of a target's reader stand where both who read them and who write them may see them
r = root / "verify/tables/result.py"; c = r.read_text()
lines = c.split("\n"); tree = ast.parse(c)
def cut(name):
    node = next(n for n in tree.body if getattr(n, "name", None) == name)
    start = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
    text = "\n".join(lines[start:node.end_lineno])
    for i in range(start, node.end_lineno): lines[i] = None
    return text
enum, overall = cut("Verdict"), cut("overall_verdict")
c = "\n".join(l for l in lines if l is not None).rstrip() + "\n"
c = c.replace("from enum import Enum\n", "")
names_used = [n for n in ("Verdict", "overall_verdict") if re.search(rf"\b{n}\b", c)]
c = c.replace("\nfrom verify.tables.compare.compare import", f"\nfrom verify.verdict import {', '.join(names_used)}\nfrom verify.tables.compare.compare import", 1)
assert "verify.verdict" in c
c = re.sub(r"\n{4,}", "\n\n\n", c); r.write_text(c)
(root / "verify/verdict.py").write_text('"""What a comparison comes to: equal, different or unknown."""\n\nfrom __future__ import annotations\n\nfrom collections.abc import Iterable\nfrom enum import Enum\n\n\n' + enum + "\n\n\n" + overall + "\n")
r = root / "verify/readers/postgres/target.py"; c = r.read_text()
lines = c.split("\n"); tree = ast.parse(c); choose = cut("target_reader")
c = "\n".join(l for l in lines if l is not None).rstrip() + "\n"
c = c.replace("from verify.readers.mysql.target import MySQLTarget\n", ""); r.write_text(c)
(root / "verify/readers/target.py").write_text('"""The reader of a target, by the target\'s kind."""\n\nfrom __future__ import annotations\n\nfrom verify.readers.mysql.target import MySQLTarget\nfrom verify.readers.postgres.target import PostgresTarget\nfrom verify.settings import ServerSettings\n\n\n' + choose + "\n")
print("moved", len(MOVE), "rooms made", len(made)); print([m for m in made if m not in DOC])
# packages in pyproject
py = root / "pyproject.toml"; t = py.read_text()
t = t[:t.index("[[tool.importlinter.contracts]]")] + open(CONTRACTS).read()
cli = root / "migrator/cli/__init__.py"; c = cli.read_text()
for name in ("init", "repair", "run"): c = c.replace(f'"{name}": "{name}",', f'"{name}": "{name}.{name}",')
cli.write_text(c)
r = root / "scenarios/play/catalog_files.py"; c = r.read_text()
assert 'Path(__file__).parent / "catalog"' in c
r.write_text(c.replace('Path(__file__).parent / "catalog"', 'Path(__file__).parents[1] / "catalog"'))
r = root / "verify/tables/result.py"; c = r.read_text()
c = c.replace('"A difference that the listed equivalences call none (see verify/tables/compare/normalise.py), such as 1.50 and 1.5.",', '"A difference that the listed equivalences call none (see verify/tables/compare/normalise.py), such as 1.50"\n    " and 1.5.",')
r.write_text(c)
found = sorted(".".join(p.parent.relative_to(root).parts) for top in ("migrator", "transforms", "verify", "scenarios") for p in (root / top).rglob("__init__.py"))
t = re.sub(r'packages = \[\n.*?\n\]', "packages = [\n" + "".join(f'    "{x}",\n' for x in found) + "]", t, count=1, flags=re.S)
py.write_text(t)
