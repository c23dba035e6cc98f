"""Which metrics and labels a PromQL expression names, and which of them a scrape has."""
import re

# What Prometheus adds to what it scrapes, and gives by itself.
TARGET_LABELS = {"job", "instance", "namespace", "pod"}
BUILT_IN = {"up": set(), "ALERTS": {"alertname", "alertstate", "severity"}}
KEYWORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}
GROUPING = r"\b(by|without|on|ignoring|group_left|group_right)\b\s*(\(([^()]*)\))?"


class Scrape:
    """The names of a scrape, with type and labels."""

    def __init__(self, text):
        self.labels = {}
        types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
        for name, type_ in types.items():
            for each in [name + end for end in ("_bucket", "_sum", "_count")] if type_ == "histogram" else [name]:
                self.labels[each] = set()
        for name, labels in re.findall(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+", text, re.M):
            if name in self.labels:
                self.labels[name] |= set(re.findall(r'(\w+)="', labels))
        self.types = types


def named(expression):
    """(metric, labels that are asked of it) for each metric, and the labels that results are grouped by."""
    text = re.sub(r"\$__rate_interval|\$__interval|\$__range", "5m", expression)
    metrics, groups = [], set()

    def selector(match):
        labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", re.sub(r'"(?:[^"\\]|\\.)*"', '""', match.group(2))))
        metrics.append((match.group(1), labels))
        return " 1 "

    def grouping(match):
        groups.update(label.strip() for label in (match.group(3) or "").split(",") if label.strip())
        return " "

    text = re.sub(r'\b([a-zA-Z_:][\w:]*)\s*\{((?:"(?:[^"\\]|\\.)*"|[^{}"])*)\}', selector, text)
    text = re.sub(GROUPING, grouping, text)
    text = re.sub(r'"(?:[^"\\]|\\.)*"', " ", text)
    text = re.sub(r"\[[^\]]*\]", " ", text)
    # What is left of names is a function where a parenthesis follows, else a metric without a selector.
    for word, call in re.findall(r"(?<![\w.])([a-zA-Z_:][\w:]*)\s*(\(?)", text):
        if not call and word.lower() not in KEYWORDS:
            metrics.append((word, set()))
    return metrics, groups


def complaints(where, expression, scrape):
    """What of the expression no scrape has."""
    metrics, groups = named(expression)
    known = {**scrape.labels, **BUILT_IN}
    if not metrics:
        yield f"{where}: names no metric: {expression}"
    everywhere = set(TARGET_LABELS)
    for metric, labels in metrics:
        if metric not in known:
            yield f"{where}: there is no metric {metric}"
            continue
        everywhere |= known[metric]
        for label in sorted(labels - known[metric] - TARGET_LABELS):
            yield f"{where}: {metric} has no label {label}"
    for label in sorted(groups - everywhere):
        yield f"{where}: groups by {label}, which none of its metrics has"
