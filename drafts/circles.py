"""Import graph of a tree and circles among the members of each folder."""
import ast, sys, pathlib, collections
root = pathlib.Path(sys.argv[1])
TOPS = ("migrator", "transforms", "verify", "scenarios")
def modules(root):
    out = {}
    for top in TOPS:
        for f in (root/top).rglob("*.py"):
            rel = f.relative_to(root)
            if "alembic" in rel.parts and rel.name != "__init__.py": continue
            parts = list(rel.with_suffix("").parts)
            if parts[-1] == "__init__": parts.pop()
            out[".".join(parts)] = rel
    return out
MODS = modules(root)
def imports(rel, type_checking=False):
    tree = ast.parse((root/rel).read_text())
    skip = set()
    for n in ast.walk(tree):
        if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test):
            for m in ast.walk(n): skip.add(id(m))
    for n in ast.walk(tree):
        if id(n) in skip: continue
        if isinstance(n, ast.Import):
            for a in n.names:
                if a.name in MODS: yield a.name
        elif isinstance(n, ast.ImportFrom) and n.module and n.level == 0:
            for a in n.names:
                full = n.module + "." + a.name
                if full in MODS: yield full
                elif n.module in MODS: yield n.module
def edges():
    for m, rel in MODS.items():
        for i in imports(rel):
            if i != m: yield m, i
def scc(nodes, adj):
    idx, low, st, on, out, c = {}, {}, [], set(), [], [0]
    sys.setrecursionlimit(10000)
    def go(v):
        idx[v]=low[v]=c[0]; c[0]+=1; st.append(v); on.add(v)
        for w in adj.get(v,()):
            if w not in idx: go(w); low[v]=min(low[v],low[w])
            elif w in on: low[v]=min(low[v],idx[w])
        if low[v]==idx[v]:
            comp=[]
            while True:
                w=st.pop(); on.discard(w); comp.append(w)
                if w==v: break
            if len(comp)>1: out.append(comp)
    for v in nodes:
        if v not in idx: go(v)
    return out
def main():
    E = list(edges())
    folders = collections.defaultdict(set)
    for m, rel in MODS.items():
        p = rel.parent
        while True:
            folders[str(p)].add(m)
            if p == p.parent or str(p)==".": break
            p = p.parent
    for folder in sorted(folders):
        def member(m):
            rel = MODS[m]
            s = str(rel)
            if folder != "." and not s.startswith(folder+"/"): return None
            rest = s if folder=="." else s[len(folder)+1:]
            return rest.split("/")[0]
        adj = collections.defaultdict(lambda: collections.defaultdict(list))
        for a,b in E:
            x,y = member(a), member(b)
            if x and y and x!=y and x!="__init__.py" and y!="__init__.py": adj[x][y].append((a,b))
        for comp in scc(list(adj), {k:list(v) for k,v in adj.items()}):
            print("CIRCLE in", folder, sorted(comp))
            for x in comp:
                for y in comp:
                    if y in adj[x]:
                        l=adj[x][y]; print("   ", x,"->",y, len(l), "; ".join(f"{a.split('.')[-1]}>{b.split('.')[-1]}" for a,b in l[:4]))
    for folder in sorted(folders):
        p = root/folder
        n = len([f for f in p.iterdir() if f.suffix==".py" and f.name!="__init__.py"])
        if n>20: print("FULL", folder, n)
if __name__ == "__main__": main()
