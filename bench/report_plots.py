"""The plots of a results page, by Matplotlib: SVG with text as text, the same bytes for the same input."""
import re

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "kiln", "font.size": 9, "font.family": "sans-serif",
                            "axes.spines.top": False, "axes.spines.right": False})
from matplotlib import pyplot  # noqa: E402

# Told apart by people who see few colours, too: each has a marker of its own.
STYLES = {"kiln": ("#d55e00", "o"), "torch": ("#999999", "s"), "torch.compile": ("#0072b2", "^"),
          "triton": ("#009e73", "v"), "flashinfer": ("#cc79a7", "D"), "liger": ("#e69f00", "P"),
          "cublaslt": ("#56b4e9", "<"), "fla": ("#009e73", "v"), "torch packed": ("#8c564b", ">"), "copy": ("#444444", "x")}
SPARE = [("#bcbd22", "h"), ("#17becf", "X"), ("#000000", "*")]


def style_of(name, names):
    if name in STYLES:
        return STYLES[name]
    others = [n for n in names if n not in STYLES]
    return SPARE[others.index(name) % len(SPARE)]


def provenance(document):
    m, facts = document["machine"], [document["date"][:10]]
    if m.get("device"):
        facts += [m["device"], f"driver {m.get('driver')}"]
        facts += [f"CUDA {m['toolkit'] // 1000}.{m['toolkit'] % 1000 // 10}"] if m.get("toolkit") else []
    else:
        facts += [m.get("host", "no device")]
    return " · ".join([*facts, f"commit {document['commit'] or 'not given'}", program_of(document["command"])])


def program_of(command):
    """The programs and options that matter: no paths of one machine, and not where the results went."""
    words = " ".join(w.rsplit("/", 1)[-1] for w in command.split())
    return re.sub(r" --(json|commit|library|prewarm|deadline|peer-limit)[ =]\S+", "", words)


def save(figure, path, document):
    figure.text(0.01, 0.004, provenance(document), fontsize=7, color="#555555", va="bottom")
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "bench/report.py"})
    pyplot.close(figure)
    with open(path, encoding="utf-8") as file:  # no blanks at the ends of lines
        text = "\n".join(line.rstrip() for line in file.read().split("\n"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def scatter(axes, rows, x_of, y_of):
    names = list(dict.fromkeys(n for r in rows for n in ["kiln", *r.peers]))
    for name in [*names[1:], "kiln"]:  # Kiln last, on top
        points = [(x_of(r), y_of(r, r.all[name]["us"]["median"])) for r in rows if name in r.all]
        colour, marker = style_of(name, names)
        axes.scatter(*zip(*points), s=26 if name in ("kiln", "torch") else 16, c=colour, marker=marker, label=name,
                     alpha=1 if name == "kiln" else 0.65, linewidths=0, zorder=4 if name == "kiln" else 3)


def roofline(document, family, rows, path, product_rate):
    """Rate over bytes moved; of products operations a second over operations a byte."""
    figure, axes = pyplot.subplots(figsize=(9, 5.4))
    rate, least = document["floor"]["bytes_per_second"], document["floor"]["empty_kernel_us"]["median"]
    if family == "gemm" and product_rate:
        x_of, y_of = (lambda r: r.workload["flops"] / r.workload["bytes"]), (lambda r, us: r.workload["flops"] / us * 1e-6)
        knee = product_rate / rate
        roof = lambda x: min(x * rate, product_rate) * 1e-12
        label = f"roof: copy rate {rate * 1e-12:.2f} TB/s, this run's fastest product {product_rate * 1e-12:.0f} TFLOP/s"
        words = {"xlabel": "operations for each byte that must move", "ylabel": "TFLOP/s",
                 "title": f"{family}: operations a second over operations a byte, {len(rows)} workloads"}
    else:
        x_of, y_of = (lambda r: r.workload["bytes"]), (lambda r, us: r.workload["bytes"] / us * 1e-6)
        knee = rate * least * 1e-6
        roof = lambda x: x / max(x / rate * 1e6, least) * 1e-6
        label = f"floor: copy rate {rate * 1e-12:.2f} TB/s, empty kernel {least:.2f} us"
        words = {"xlabel": "bytes that must move, one call", "ylabel": "bytes / time, TB/s",
                 "title": f"{family}: rate over bytes moved, {len(rows)} workloads"}
    scatter(axes, rows, x_of, y_of)
    xs = sorted(map(x_of, rows))
    low, high = xs[0] / 1.5, xs[-1] * 1.5
    line = [x for x in (low, knee, high) if low <= x <= high]
    axes.plot(line, [roof(x) for x in line], color="#444444", lw=1.2, zorder=2, label=label)
    axes.set(xscale="log", yscale="log", xlim=(low, high), **words)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(True, which="major", color="#dddddd", lw=0.6)
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: (labels[i] != "kiln", labels[i].startswith(("floor", "roof")), labels[i]))
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.legend([handles[i] for i in order], [labels[i] for i in order], loc="lower center", frameon=False, fontsize=8,
                  ncol=min(5, len(order)), bbox_to_anchor=(0.5, 0.035))
    save(figure, path, document)


def ratio_axis(axes, rows, limit):
    """Linear up to `limit`, or logarithmic where Kiln is several times behind somewhere."""
    lowest = min((r.best_ratio() for r in rows if r.best), default=1)
    floors = min((r.floor / r.us for r in rows if r.floor), default=1)
    if lowest > 0.25:
        axes.set(xlim=(0, limit))
        return 0
    left = min(lowest, floors) / 1.6
    axes.set(xscale="log", xlim=(left, limit))
    axes.xaxis.set_major_formatter("{x:g}")
    return left


def ratios(document, family, rows, path):
    """A bar a workload: the fastest peer's time over Kiln's; where the floor and every other peer lie is marked."""
    names = list(dict.fromkeys(n for r in rows for n in r.peers))
    figure, axes = pyplot.subplots(figsize=(10, 1.6 + 0.2 * len(rows)))
    limit, at = 3.0, range(len(rows))
    values = [min(r.best_ratio() or 0, limit) for r in rows]
    left = ratio_axis(axes, rows, limit)
    axes.barh(list(at), [max(0, v - left) for v in values], left=left, height=0.62, zorder=2,
              color=["#d55e00" if r.behind() else "#9ecae1" for r in rows])
    for name in names:
        colour, marker = style_of(name, names)
        points = [(r.peers[name]["us"]["median"] / r.us, i) for i, r in enumerate(rows) if name in r.peers]
        inside = [p for p in points if p[0] <= limit]
        axes.scatter([p[0] for p in inside], [p[1] for p in inside], s=20 if name == "torch" else 12, c=colour, marker=marker, linewidths=0,
                     zorder=3, label=name)
    with_floor = [(r.floor / r.us, i) for i, r in enumerate(rows) if r.floor]
    if with_floor:
        axes.scatter(*zip(*with_floor), marker="|", s=70, c="black", linewidths=1.6, zorder=4, label="floor")
    goals = [(r.published["goal_us"] / r.us, i) for i, r in enumerate(rows) if r.published]
    if goals:
        axes.scatter(*zip(*goals), marker="o", s=26, facecolors="none", edgecolors="black", linewidths=0.8, zorder=4,
                     label="goal, set from figures that others published")
    axes.axvline(1, color="black", lw=1, zorder=1)
    axes.set(yticks=list(at), ylim=(len(rows) - 0.4, -0.6), xlabel="time / Kiln's time; right of 1: Kiln is faster")
    axes.set_yticklabels([r.name.replace("FwdOp", "").replace(f"{family}: ", "") for r in rows], fontsize=7)
    axes.grid(True, axis="x", color="#dddddd", lw=0.6, zorder=0)
    inches = figure.get_figheight()
    figure.suptitle(f"{family}: the fastest peer's time over Kiln's (orange: Kiln is slower, beyond noise); "
                    f"peers beyond {limit:g} are off the plot", fontsize=9, y=1 - 0.12 / inches)
    figure.legend(loc="lower center", bbox_to_anchor=(0.5, 0.2 / inches), frameon=False, ncol=8, fontsize=8)
    figure.tight_layout(rect=(0, 0.45 / inches, 1, 1 - 0.2 / inches))
    save(figure, path, document)


def latencies(document, family, rows, path):
    """Latency over percentile, both axes logarithmic, so that the tail has room."""
    figure, axes = pyplot.subplots(figsize=(9, 5.4))
    colours = ["#d55e00", "#e69f00", "#0072b2", "#009e73", "#cc79a7"]
    for i, r in enumerate(rows):
        curve = [(p, us) for p, us in r.kiln["curve_us"] if p < 1]
        axes.plot([1 / (1 - p) for p, _ in curve], [us * 1e-3 for _, us in curve], lw=1.6, color=colours[i % 5],
                  ls=("-", "--", "-.", ":", "-")[i % 5], label=r.name.replace(f"{family}: ", ""))
    marks = [0, 0.5, 0.9, 0.99, 0.999, 0.9999]
    last = max(p for r in rows for p, _ in r.kiln["curve_us"] if p < 1)
    marks = [m for m in marks if m <= last]
    axes.set(xscale="log", yscale="log", xlabel="percentile of requests", ylabel="ms from the moment a request was due",
             title=f"{family}: latency over percentile")
    axes.set_xticks([1 / (1 - m) for m in marks], [f"{m * 100:g}" for m in marks])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(True, which="major", color="#dddddd", lw=0.6)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.legend(loc="lower center", frameon=False, fontsize=8, ncol=5, bbox_to_anchor=(0.5, 0.035))
    save(figure, path, document)


def draw(document, family, rows, stem, product_rate=None):
    """Writes the family's plots; [(path, what it shows)]."""
    plots = []

    def plot(kind, means, function, of, *more):
        if of:
            plots.append((f"{stem}-{kind}.svg", f"{family}: {means}"))
            function(document, family, of, plots[-1][0], *more)
    plot("roofline", "rate, with the roof", roofline, [r for r in rows if r.floor and r.workload.get("bytes")], product_rate)
    plot("ratios", "times over Kiln's, with the floor", ratios, [r for r in rows if r.best])
    plot("latencies", "latency over percentile", latencies, [r for r in rows if r.kiln.get("curve_us")])
    return plots
