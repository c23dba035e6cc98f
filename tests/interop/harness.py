"""What the Python client programs share: a list of scenarios, run one after the other, one line each."""

import asyncio
import os
import sys

LIMIT = 20  # seconds a scenario may take
BYTES = b"\x00\x01\x02hello\xff\xfe"
BASE64 = "AAECaGVsbG///g=="
HOOK = "http://127.0.0.1:9/hook"  # nobody listens there

base, transport, label = sys.argv[1:4]
rest = transport == "rest"
only = os.environ.get("A2A_INTEROP_ONLY", "").split()
scenarios = []


def scenario(run):
    scenarios.append(run)
    return run


def check(holds, what):
    if not holds:
        raise AssertionError(what if isinstance(what, str) else repr(what))


async def polled(ask, running):
    """Asks until the task runs no more; the scenario's own limit ends a wait that is too long."""
    while (task := await ask()).status.state in running:
        await asyncio.sleep(0.1)
    return task


async def one(run):
    name = run.__name__.strip("_")
    try:
        await asyncio.wait_for(run(), LIMIT)
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        print(f"FAIL {label} {name}: {why}", flush=True)
    else:
        print(f"ok   {label} {name}", flush=True)


async def everything():
    for run in scenarios:
        if not only or run.__name__.strip("_") in only:
            await one(run)
    print("end", flush=True)


def main():
    asyncio.run(everything())
