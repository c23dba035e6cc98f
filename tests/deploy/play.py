"""Plays deploy/compose.yaml without containers; tests/deploy/play says how."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

import metrics

HERE = os.path.dirname(os.path.abspath(__file__))
DEPLOY = os.path.join(os.path.dirname(os.path.dirname(HERE)), "deploy")
PATIENCE = 60
# Panels that have something to show after a few calls.
SHOWN = {
    "Gateways", "Calls a second", "Live streams", "State store", "Settings", "By outcome", "By operation",
    "By what clients speak", "By route", "Whole call, by operation", "Time to the first event", "Events a second", "Bytes",
    "Up, by address", "Connections of clients", "Conversations", "Buffered", "Age of settings", "Draining", "CPU", "Memory",
    "File descriptors", "Age and version",
}  # fmt: skip


class Wrong(Exception):
    """Something is not as it is to be."""


def read(path):
    with open(os.path.join(DEPLOY, path), encoding="utf-8") as file:
        return file.read()


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def fetch(url, body=None, **headers):
    request = urllib.request.Request(url, data=body and json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return answer.read().decode()


def until(what, test, stage=None):
    """What the test gives, once it gives something; sooner no more if a process of the stage has ended."""
    end = time.monotonic() + PATIENCE
    while True:
        for name, process in stage.processes.items() if stage else ():
            if process.poll() is not None:
                raise Wrong(f"{what}: {name} has ended with {process.returncode}")
        try:
            found = test()
        except OSError:
            found = None
        if found:
            return found
        if time.monotonic() > end:
            raise Wrong(f"{what}: not within {PATIENCE} s")
        time.sleep(0.05)


class Stage:
    """The processes of a play; they end with it."""

    def __init__(self, folder):
        self.folder, self.processes = folder, {}

    def start(self, name, *command):
        log = os.path.join(self.folder, name + ".log")
        with open(log, "wb") as out:
            self.processes[name] = subprocess.Popen(command, stdout=out, stderr=out, cwd=self.folder)

    def log(self, name):
        with open(os.path.join(self.folder, name + ".log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def end(self):
        for process in reversed(self.processes.values()):
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def replaced(text, old, new):
    if old not in text:
        raise Wrong(f"compose's settings have no {old} any more")
    return text.replace(old, new)


def begin(stage, gateway, ports):
    """As compose does it; only addresses differ."""
    services = yaml.safe_load(read("compose.yaml"))["services"]
    redis = services["redis"]["command"]
    stage.start("redis", *redis, "--port", str(ports["redis"]), "--bind", "127.0.0.1")
    agent = [replaced(word, "0.0.0.0:9000", f"127.0.0.1:{ports['agent']}") if ":" in word else word
             for word in services["agent"]["command"]]  # fmt: skip
    stage.start("agent", gateway, *agent)
    settings = read("compose/gateway/gateway.yaml")
    for old, new in (
        ("0.0.0.0:8080", f"127.0.0.1:{ports['calls']}"),
        ("0.0.0.0:9090", f"127.0.0.1:{ports['admin']}"),
        ("agent:9000", f"127.0.0.1:{ports['agent']}"),
        ("redis:6379", f"127.0.0.1:{ports['redis']}"),
    ):
        settings = replaced(settings, old, new)
    file = os.path.join(stage.folder, "gateway.yaml")
    with open(file, "w", encoding="utf-8") as out:
        out.write(settings)
    command = [file if word.startswith("/etc/") else word for word in services["gateway"]["command"]]
    until("redis answers", lambda: socket.create_connection(("127.0.0.1", ports["redis"]), 1).close() or True, stage)
    until("the agent answers", lambda: fetch(f"http://127.0.0.1:{ports['agent']}/.well-known/agent-card.json"), stage)
    stage.start("gateway", gateway, *command)

    prometheus = read("compose/prometheus.yml")
    prometheus = replaced(prometheus, "gateway:9090", f"127.0.0.1:{ports['admin']}")
    for name in ("scrape_interval: 5s", "evaluation_interval: 15s"):
        prometheus = replaced(prometheus, name, name.split(":")[0] + ": 1s")
    for name, text in (("prometheus.yml", prometheus), ("rules.yaml", read("prometheus/rules.yaml"))):
        with open(os.path.join(stage.folder, name), "w", encoding="utf-8") as out:
            out.write(text)
    stage.start(
        "prometheus", "prometheus", f"--config.file={stage.folder}/prometheus.yml",
        f"--storage.tsdb.path={stage.folder}/tsdb", f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
    )  # fmt: skip


def call(base, turn):
    """Old and new clients, sends and streams; one of them is refused. A turn has messages of its own."""
    text = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    new = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    old = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": {
        "kind": "message", "messageId": "o", "role": "user", "parts": [{"kind": "text", "text": "hello"}]}}}  # fmt: skip
    fetch(f"{base}/.well-known/agent-card.json")
    for number in range(5):
        said = fetch(f"{base}/message:send", {"message": {**text, "messageId": f"m{turn}-{number}"}}, **new)
        if "hello" not in said:
            raise Wrong(f"a send is answered by {said}")
        old["params"]["message"]["messageId"] = f"o{turn}-{number}"
        if '"result"' not in fetch(base, old, **{"Content-Type": "application/json"}):
            raise Wrong("an old client gets no result")
        stream = {"message": {**text, "messageId": f"s{turn}-{number}", "parts": [{"text": "stream 3"}]}}
        if fetch(f"{base}/message:stream", stream, **new).count("data:") < 4:
            raise Wrong("a stream ends early")
    try:
        fetch(f"{base}/tasks/none", **new)
        raise Wrong("a task that is not there is told")
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise Wrong(f"a task that is not there is told by {error.code}") from error


def compare(live, fixture):
    """The scrape has nothing that the file has not, with its types and labels."""
    for name, type_ in live.types.items():
        if not name.startswith(("a2a_gateway_", "process_")):
            continue
        if name not in fixture.types:
            yield f"scrape.txt has no {name}"
        elif fixture.types[name] != type_:
            yield f"{name} is a {type_}, in scrape.txt a {fixture.types[name]}"
    for name, labels in live.labels.items():
        known = fixture.labels.get(name, labels)
        labels = {label for label in labels if not label.startswith("otel_")}
        if labels - known:
            yield f"{name} has the labels {sorted(labels)}, in scrape.txt {sorted(known)}"


def ask(prometheus, query):
    answer = fetch(f"{prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": query}))
    return json.loads(answer)["data"]["result"]


def look(prometheus):
    """Every query of the dashboard is answered, and what has to show something does."""
    dashboard = json.loads(read("grafana/a2a-gateway.json"))
    titles = {panel["title"] for panel in dashboard["panels"]}
    for title in SHOWN - titles:
        yield f"the dashboard has no panel {title}"
    count = 0
    for panel in dashboard["panels"]:
        for target in panel.get("targets") or []:
            query = target["expr"].replace("$__rate_interval", "1m")
            query = re.sub(r"\$(namespace|instance|route)", ".*", query)
            try:
                found = ask(prometheus, query)
            except urllib.error.HTTPError as error:
                yield f"{panel['title']}: {query}: {error.read().decode()}"
                continue
            count += 1
            if panel["title"] in SHOWN and target["refId"] == "A" and not found:
                yield f"{panel['title']}: shows nothing: {query}"
    print(f"{count} queries of the dashboard are answered")


def alerts(prometheus):
    groups = json.loads(fetch(f"{prometheus}/api/v1/rules"))["data"]["groups"]
    found = [rule for group in groups for rule in group["rules"]]
    if len(found) < 20:
        yield f"Prometheus knows {len(found)} alerts"
    for rule in found:
        if rule["health"] == "err" or rule["state"] == "firing":
            yield f"{rule['name']}: {rule['health']}, {rule['state']}: {rule.get('lastError')}"


def play(stage, gateway):
    ports = {name: free_port() for name in ("calls", "admin", "agent", "redis", "prometheus")}
    begin(stage, gateway, ports)
    admin = f"http://127.0.0.1:{ports['admin']}"
    until("the gateway is ready", lambda: fetch(f"{admin}/readyz"), stage)
    # A store that was begun just now is asked what is in flight first, which takes a moment.
    first = {"message": {"messageId": "first", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}
    new = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    send = f"http://127.0.0.1:{ports['calls']}/message:send"
    until("a first message is taken", lambda: fetch(send, first, **new), stage)
    call(f"http://127.0.0.1:{ports['calls']}", 1)
    with open(os.path.join(HERE, "scrape.txt"), encoding="utf-8") as file:
        fixture = metrics.Scrape(file.read())
    text = fetch(f"{admin}/metrics")
    yield from compare(metrics.Scrape(text), fixture)
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        yield f"promtool check metrics: {done.stdout}{done.stderr}"

    prometheus = f"http://127.0.0.1:{ports['prometheus']}"
    until("Prometheus has scraped", lambda: ask(prometheus, 'up{job="a2a-gateway"} == 1'))
    # Two scrapes make a rate; the calls between them are what it shows.
    scrapes = 'count_over_time(up{job="a2a-gateway"}[1m]) > 3'
    until("Prometheus has scraped again", lambda: ask(prometheus, scrapes))
    call(f"http://127.0.0.1:{ports['calls']}", 2)
    calls = 'sum(rate(a2a_gateway_calls_total{client=~"v1.0-rest|v0.3-jsonrpc"}[1m])) > 0'
    until("calls are counted", lambda: ask(prometheus, calls))
    until("rules are evaluated", lambda: "unknown" not in fetch(f"{prometheus}/api/v1/rules"))
    yield from look(prometheus)
    yield from alerts(prometheus)

    process = stage.processes["gateway"]
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE)
    if process.returncode != 0:
        yield f"the gateway ends with {process.returncode}"
    del stage.processes["gateway"]  # it has ended as it should, which is no reason to give up on what comes next


def put(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def pod_ends(stage, gateway):
    """What Kubernetes does to a pod of k8s/overlays/sidecar: both preStop hooks at once, while a call runs, then SIGTERM."""
    built = subprocess.run(
        ["kubectl", "kustomize", os.path.join(DEPLOY, "k8s/overlays/sidecar")], capture_output=True, text=True, check=True
    )
    objects = {(o["kind"]): o for o in yaml.safe_load_all(built.stdout)}
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    (sidecar,), (agent,) = pod["initContainers"], pod["containers"]
    calls, admin, at = free_port(), free_port(), free_port()
    token = put(stage.folder, "admin-token", "0123456789abcdef0123456789abcdef")
    settings = objects["ConfigMap"]["data"]["gateway.yaml"]
    for old, new in (
        ("0.0.0.0:8080", f"127.0.0.1:{calls}"),
        ("0.0.0.0:9090", f"127.0.0.1:{admin}"),
        ("127.0.0.1:9000", f"127.0.0.1:{at}"),
        ("/run/secrets/a2a-gateway/admin-token", token),
        # The play need not be as long as the real thing.
        ("delay: 5s", "delay: 1s"),
    ):
        settings = replaced(settings, old, new)
    file = put(stage.folder, "sidecar.yaml", settings)

    def real(words):
        places = {"/etc/a2a-gateway/gateway.yaml": file, "/usr/local/bin/a2a-gateway": gateway}
        return [places.get(word, word).replace("127.0.0.1:9000", f"127.0.0.1:{at}") for word in words]

    stage.start("agent-in-pod", gateway, *real(agent["args"]))
    stage.start("sidecar", gateway, *real(sidecar["args"]))
    ready = f"http://127.0.0.1:{admin}{sidecar['readinessProbe']['httpGet']['path']}"
    started = f"http://127.0.0.1:{calls}{agent['startupProbe']['httpGet']['path']}"
    until("the sidecar is ready", lambda: fetch(ready), stage)
    until("the agent has started", lambda: fetch(started), stage)

    message = {"messageId": "slow", "role": "ROLE_USER", "parts": [{"text": "slow 3"}]}
    said = []
    new = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    send = threading.Thread(
        target=lambda: said.append(fetch(f"http://127.0.0.1:{calls}/message:send", {"message": message}, **new))
    )
    send.start()
    time.sleep(0.5)  # The call is under way; nothing tells so from outside.
    hooks = {}
    for container in (sidecar, agent):
        name = f"hook-of-{container['name']}"
        stage.start(name, *real(container["lifecycle"]["preStop"]["exec"]["command"]))
        hooks[name] = stage.processes[name]

    def refuses():
        try:
            return fetch(ready) is None
        except urllib.error.HTTPError as error:
            return error.code == 503

    until("the sidecar is not ready any more", refuses)
    for name, hook in hooks.items():
        if hook.wait(PATIENCE) != 0:
            yield f"{name} ends with {hook.returncode}: {stage.log(name)}"
    send.join(PATIENCE)
    if not said or "TASK_STATE_COMPLETED" not in said[0]:
        yield f"the call that ran is answered by {said}"
    for name in ("agent-in-pod", "sidecar"):
        stage.processes[name].terminate()
        if stage.processes[name].wait(PATIENCE) != 0:
            yield f"{name} ends with {stage.processes[name].returncode}"


def main():
    gateway = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="a2a-play.") as folder:
        stage = Stage(folder)
        try:
            wrong = list(play(stage, gateway)) + list(pod_ends(stage, gateway))
        except (Wrong, OSError, KeyError, ValueError, subprocess.SubprocessError) as error:
            wrong = [f"{type(error).__name__}: {error}"]
        finally:
            stage.end()
        for says in wrong:
            print(f"play: {says}", file=sys.stderr)
        if wrong:
            for name in stage.processes:
                print(f"--- {name}\n{stage.log(name)[-2000:]}", file=sys.stderr)
    print("play: " + ("something is wrong" if wrong else "compose plays together, and a pod with a sidecar ends well"))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
