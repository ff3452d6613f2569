"""The plots of a results page, by Matplotlib: SVG with text as text, the same bytes for the same input."""
import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "kiln", "font.size": 9, "font.family": "sans-serif",
                            "axes.spines.top": False, "axes.spines.right": False})
from matplotlib import pyplot  # noqa: E402

# Told apart by people who see few colours, too: each has a marker of its own.
STYLES = {"kiln": ("#d55e00", "o"), "torch": ("#999999", "s"), "torch.compile": ("#0072b2", "^"),
          "triton": ("#009e73", "v"), "flashinfer": ("#cc79a7", "D"), "liger": ("#e69f00", "P"), "copy": ("#444444", "x")}
SPARE = [("#56b4e9", "<"), ("#8c564b", ">"), ("#000000", "*")]


def style_of(name, names):
    if name in STYLES:
        return STYLES[name]
    others = [n for n in names if n not in STYLES]
    return SPARE[others.index(name) % len(SPARE)]


def provenance(document):
    m = document["machine"]
    toolkit = m.get("toolkit", 0)
    return (f"{document['date'][:10]} · {m.get('device')} · driver {m.get('driver')} · CUDA {toolkit // 1000}."
            f"{toolkit % 1000 // 10} · commit {document['commit']} · {program_of(document['command'])}")


def program_of(command):
    """The programs and options that matter: no paths of one machine."""
    words = [w.rsplit("/", 1)[-1] for w in command.split()]
    return " ".join(words[:2] if words[0].startswith("python") else words[:1]) + " --family " + (
        words[words.index("--family") + 1] if "--family" in words else "all")


def save(figure, path, document):
    figure.text(0.01, 0.004, provenance(document), fontsize=7, color="#555555", va="bottom")
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "bench/report.py"})
    pyplot.close(figure)
    with open(path, encoding="utf-8") as file:  # no blanks at the ends of lines
        text = "\n".join(line.rstrip() for line in file.read().split("\n"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def roofline(document, family, rows, path):
    figure, axes = pyplot.subplots(figsize=(9, 5.4))
    names = list(dict.fromkeys(n for r in rows for n in ["kiln", *r.peers]))
    for name in reversed(names):  # Kiln last, on top
        points = [(r.workload["bytes"], r.workload["bytes"] / r.all[name]["us"]["median"] * 1e-6)
                  for r in rows if name in r.all]
        colour, marker = style_of(name, names)
        axes.scatter(*zip(*points), s=26 if name == "kiln" else 16, c=colour, marker=marker, label=name,
                     alpha=1 if name == "kiln" else 0.65, linewidths=0, zorder=4 if name == "kiln" else 3)
    sizes = sorted(r.workload["bytes"] for r in rows)
    rate, least = document["floor"]["bytes_per_second"], document["floor"]["empty_kernel_us"]["median"]
    low, high = sizes[0] / 1.5, sizes[-1] * 1.5
    knee = rate * least * 1e-6
    line = [s for s in (low, knee, high) if low <= s <= high]
    axes.plot(line, [s / max(s / rate * 1e6, least) * 1e-6 for s in line], color="#444444", lw=1.2, zorder=2,
              label=f"floor: copy rate {rate * 1e-12:.2f} TB/s, empty kernel {least:.2f} us")
    axes.set(xscale="log", yscale="log", xlim=(low, high), xlabel="bytes that must move, one call",
             ylabel="bytes / time, TB/s",
             title=f"{family}: rate over bytes moved, {len(rows)} workloads")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(True, which="major", color="#dddddd", lw=0.6)
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: (labels[i] != "kiln", labels[i].startswith("floor"), labels[i]))
    axes.legend([handles[i] for i in order], [labels[i] for i in order], loc="lower right", frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    save(figure, path, document)


def ratios(document, family, rows, path):
    """A bar a workload: the fastest peer's time over Kiln's; where the floor and every other peer lie is marked."""
    names = list(dict.fromkeys(n for r in rows for n in r.peers))
    figure, axes = pyplot.subplots(figsize=(10, 1.4 + 0.2 * len(rows)))
    limit = 3.0
    at = range(len(rows))
    values = [r.best_ratio() or 0 for r in rows]
    axes.barh(list(at), [min(v, limit) for v in values], height=0.62, zorder=2,
              color=["#d55e00" if r.behind() else "#9ecae1" for r in rows])
    for name in names:
        colour, marker = style_of(name, names)
        points = [(r.peers[name]["us"]["median"] / r.us, i) for i, r in enumerate(rows) if name in r.peers]
        inside = [p for p in points if p[0] <= limit]
        axes.scatter([p[0] for p in inside], [p[1] for p in inside], s=12, c=colour, marker=marker, linewidths=0,
                     zorder=3, label=name)
    axes.scatter([r.floor / r.us for r in rows], list(at), marker="|", s=70, c="black", linewidths=1.6, zorder=4,
                 label="floor")
    goals = [(r.published["goal_us"] / r.us, i) for i, r in enumerate(rows) if r.published]
    if goals:
        axes.scatter(*zip(*goals), marker="o", s=26, facecolors="none", edgecolors="black", linewidths=0.8, zorder=4,
                     label="goal, set from figures that others published")
    axes.axvline(1, color="black", lw=1, zorder=1)
    axes.set(yticks=list(at), xlim=(0, limit), ylim=(len(rows) - 0.4, -0.6),
             xlabel="time / Kiln's time; right of 1: Kiln is faster")
    axes.set_yticklabels([r.name.replace("FwdOp", "") for r in rows], fontsize=7)
    axes.set_title(f"{family}: the fastest peer's time over Kiln's (orange: Kiln is slower, beyond noise); "
                   f"peers beyond {limit:g} are off the plot", fontsize=9, loc="right")
    axes.grid(True, axis="x", color="#dddddd", lw=0.6, zorder=0)
    inches = figure.get_figheight()
    figure.legend(loc="lower center", bbox_to_anchor=(0.5, 0.2 / inches), frameon=False, ncol=8, fontsize=8)
    figure.tight_layout(rect=(0, 0.45 / inches, 1, 1))
    save(figure, path, document)


def draw(document, family, rows, stem):
    """Writes the family's plots; [(path, what it shows)]."""
    paths = [(f"{stem}-roofline.svg", f"{family}: rate over bytes moved"),
             (f"{stem}-ratios.svg", f"{family}: times over Kiln's, with the floor")]
    roofline(document, family, rows, paths[0][0])
    ratios(document, family, rows, paths[1][0])
    return paths
