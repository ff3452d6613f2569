"""examples/serving: five states of a service, on the CPU. What it prints and draws is what its counters say."""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree


def expect(condition, what):
    if not condition:
        sys.exit(f"must hold: {what}")


def main():
    program, kiln = sys.argv[1:]
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    with tempfile.TemporaryDirectory(prefix="kiln serving ") as folder:
        env["TMPDIR"] = folder
        plot = os.path.join(folder, "plot.svg")
        results = os.path.join(folder, "results.json")
        words = [program, "--kiln", kiln, "--json", results, "--requests", "240", "--rate", "120", "--workers", "3", "--plot", plot]
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=900, check=False)
        expect(done.returncode == 0, f"it succeeds:\n{done.stdout}{done.stderr}")
        rows = {line[:15].strip(): line[15:].split() for line in done.stdout.splitlines()[1:]}
        expect(list(rows) == ["cold, block", "cold, async", "cold, prefetch", "warm, disk", "pack"], done.stdout)
        compiled = {name: int(row[6]) for name, row in rows.items()}
        expect(compiled["cold, block"] > 10 and compiled["cold, prefetch"] >= compiled["cold, block"], compiled)
        expect(compiled["warm, disk"] == compiled["pack"] == 0, f"a warm service compiles nothing: {compiled}")
        stand_ins = {name: int(row[7]) for name, row in rows.items()}
        expect(stand_ins["cold, async"] > 0 and stand_ins["cold, block"] == 0, stand_ins)
        for name, row in rows.items():
            values = [float(value) for value in row[:5]]
            expect(values == sorted(values) and values[0] > 0, f"percentiles of {name} rise: {row}")
        svg = xml.etree.ElementTree.parse(plot).getroot()
        lines = svg.findall("{http://www.w3.org/2000/svg}polyline")
        expect(len(lines) == 5 and all(len(line.get("points").split()) > 100 for line in lines), "a line for each state")
        with open(results, encoding="utf-8") as file:
            kilns = {w["name"]: w["contenders"][0] for w in json.load(file)["workloads"]}
        expect(list(kilns) == [f"serving: {name}, cpu" for name in rows], list(kilns))
        for name, row in rows.items():
            written = kilns[f"serving: {name}, cpu"]
            # Both are rounded, the table to 0.01 ms, the file to six digits.
            apart = [abs(us * 1e-3 - float(cell)) - us * 1e-8 for (_, us), cell in zip(written["percentiles_us"], row[:5])]
            expect(len(apart) == 5 and max(apart) < 0.0051, (written["percentiles_us"], row))
            expect(written["us"]["p10"] <= written["us"]["median"] <= written["us"]["p90"], written)
            expect([us for _, us in written["curve_us"]] == sorted(us for _, us in written["curve_us"]), written)
        expect(sorted(os.listdir(folder)) == ["plot.svg", "results.json"], f"nothing is left behind: {os.listdir(folder)}")
    print(done.stdout)


main()
