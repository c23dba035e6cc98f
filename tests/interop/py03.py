"""The Python SDK 0.3 as a client: py03.py BASE jsonrpc|rest LABEL"""

import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskState,
    TextPart,
)

from harness import BASE64, HOOK, base, check, main, polled, rest, scenario

RUNNING = (TaskState.submitted, TaskState.working)


async def client(**wanted):
    http = httpx.AsyncClient(trust_env=False, timeout=15)
    card = await A2ACardResolver(http, base).get_agent_card()
    transports = ["HTTP+JSON" if rest else "JSONRPC"]
    config = ClientConfig(httpx_client=http, supported_transports=transports, **({"streaming": False} | wanted))
    return ClientFactory(config).create(card)


def message(text, *more, **members):
    parts = [Part(root=TextPart(text=text)), *more]
    return Message(role=Role.user, message_id=str(uuid.uuid4()), parts=parts, **members)


async def events(agent, *what, **members):
    return [event async for event in agent.send_message(message(*what, **members))]


async def task_of(*what, **wanted):
    """The task that a message leads to."""
    last = (await events(await client(**wanted), *what))[-1]
    check(isinstance(last, tuple), last)
    return last[0]


def text_of(parts):
    return "".join(part.root.text for part in parts)


@scenario
async def card():
    async with httpx.AsyncClient(trust_env=False) as http:
        card = await A2ACardResolver(http, base).get_agent_card()
    spoken = {card.preferred_transport or "JSONRPC", *(face.transport for face in card.additional_interfaces or [])}
    check({"JSONRPC", "HTTP+JSON"} <= spoken, spoken)
    urls = {card.url, *(face.url for face in card.additional_interfaces or [])}
    check(all(url.startswith(base) for url in urls), urls)
    check(card.protocol_version.startswith("0.3"), card.protocol_version)
    check(card.capabilities.streaming and card.capabilities.push_notifications, card.capabilities)
    check(card.supports_authenticated_extended_card and card.skills[0].id == "echo", card)


@scenario
async def send():
    task = await task_of("echo hello")
    check(task.status.state == TaskState.completed, task.status)
    check(text_of(task.artifacts[0].parts) == "hello", task.artifacts)
    check(task.history[0].role == Role.user and text_of(task.history[0].parts) == "echo hello", task.history)


@scenario
async def stream():
    # the client adds later chunks to the artifact of the first, so each is read as it comes
    seen, agent = [], await client(streaming=True)
    async for task, update in agent.send_message(message("stream 3 30")):
        kind = update.kind if update else "task"
        seen.append((kind, text_of(update.artifact.parts) if kind == "artifact-update" else None))
    chunks = [("artifact-update", f"chunk {at} ") for at in range(3)]
    check(seen[0][0] == "task" and seen[-4:-1] == chunks, seen)
    check(update.final and update.status.state == TaskState.completed, update)
    check(text_of(task.artifacts[0].parts) == "chunk 0 chunk 1 chunk 2 ", task.artifacts)


@scenario
async def poll():
    agent = await client(polling=True)
    task = (await events(agent, "slow 0.5"))[-1][0]
    check(task.status.state in RUNNING, task.status)
    task = await polled(lambda: agent.get_task(TaskQueryParams(id=task.id)), RUNNING)
    check(task.status.state == TaskState.completed and text_of(task.artifacts[0].parts) == "slept 0.5", task)


@scenario
async def cancel():
    task = await task_of("slow 30", polling=True)
    task = await (await client()).cancel_task(TaskIdParams(id=task.id))
    check(task.status.state == TaskState.canceled, task.status)


@scenario
async def resubscribe():
    task = await task_of("stream 5 200", polling=True)
    agent = await client(streaming=True)
    seen = [update async for _, update in agent.resubscribe(TaskIdParams(id=task.id))]
    check(seen[-1] and seen[-1].final and seen[-1].status.state == TaskState.completed, seen)


@scenario
async def input_required():
    task = await task_of("input")
    check(task.status.state == TaskState.input_required, task.status)
    check(text_of(task.status.message.parts) == "which one?", task.status)
    answer = await events(await client(), "blue", task_id=task.id, context_id=task.context_id)
    again = answer[-1][0]
    check(again.id == task.id and again.status.state == TaskState.completed, again)
    check(text_of(again.artifacts[0].parts) == "resumed with: blue", again.artifacts)


@scenario
async def file_out():
    url, raw = (part.root.file for part in (await task_of("file")).artifacts[0].parts)
    check(url.uri == "https://example.com/report.pdf" and url.mime_type == "application/pdf", url)
    check(raw.bytes == BASE64 and raw.mime_type == "application/octet-stream", raw)
    check(url.name == "report.pdf" and raw.name == "blob.bin", (url, raw))


@scenario
async def file_in():
    raw = FileWithBytes(bytes=BASE64, mime_type="application/octet-stream", name="a.bin")
    url = FileWithUri(uri="https://example.com/x.png", mime_type="image/png", name="x.png")
    parts = [Part(root=FilePart(file=raw, metadata={"m": 1})), Part(root=FilePart(file=url))]
    back = [part.root for part in (await task_of("echo", *parts)).artifacts[0].parts[1:]]
    check([part.file for part in back] == [raw, url] and back[0].metadata == {"m": 1}, back)


@scenario
async def data_out():
    data = (await task_of("data")).artifacts[0].parts[0].root.data
    check(data["int"] == 42 and data["float"] == 2.5 and data["null"] is None and data["true"] is True, data)
    check(data["list"] == [1, "two", None, {"three": 3}] and data["empty"] == {}, data)
    check(data["unicode"] == "Grüße, 世界 🌍" and data["kind"] == "a key named kind", data)


@scenario
async def data_in():
    data = {"a": [1, {"b": None}], "kind": "x", "snake_case": {"camelCase": 1.5}}
    back = (await task_of("echo", Part(root=DataPart(data=data)))).artifacts[0].parts[1].root
    check(back.data == data, back)


@scenario
async def fail():
    task = await task_of("fail")
    check(task.status.state == TaskState.failed and text_of(task.status.message.parts) == "it failed", task.status)


@scenario
async def message_only():
    for streaming in (False, True):
        seen = await events(await client(streaming=streaming), "message good day")
        check(len(seen) == 1 and isinstance(seen[0], Message), seen)
        check(seen[0].role == Role.agent and text_of(seen[0].parts) == "good day", seen)


@scenario
async def push_config():
    task = await task_of("slow 5", polling=True)
    known = PushNotificationAuthenticationInfo(schemes=["Bearer"], credentials="c")
    config = PushNotificationConfig(id="p", url=HOOK, token="t", authentication=known)
    wanted = TaskPushNotificationConfig(task_id=task.id, push_notification_config=config)
    agent = await client()
    made = await agent.set_task_callback(wanted)
    found = await agent.get_task_callback(
        GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id="p")
    )
    check(made == wanted and found == wanted, (made, found))


@scenario
async def unknown_task():
    agent = await client()
    for ask in (agent.get_task(TaskQueryParams(id="none")), agent.cancel_task(TaskIdParams(id="none"))):
        try:
            check(False, await ask)
        except A2AClientJSONRPCError as error:
            check(not rest and error.error.code == -32001, error)
        except A2AClientHTTPError as error:
            check(rest and error.status_code == 404, error)


@scenario
async def extended_card():
    card = await (await client()).get_card()
    check(card.name.endswith("(extended)") and [skill.id for skill in card.skills] == ["echo", "secret"], card)


main()
