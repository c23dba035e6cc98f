"""The Python SDK 1.x as a client: py1.py BASE jsonrpc|rest LABEL"""

import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotFoundError
from google.protobuf.json_format import MessageToDict, ParseDict

from harness import BYTES, HOOK, base, check, main, polled, rest, scenario

RUNNING = (pb.TASK_STATE_SUBMITTED, pb.TASK_STATE_WORKING)


async def client(**wanted):
    http = httpx.AsyncClient(trust_env=False, timeout=15)
    bindings = ["HTTP+JSON" if rest else "JSONRPC"]
    config = ClientConfig(httpx_client=http, supported_protocol_bindings=bindings, **({"streaming": False} | wanted))
    # made before the card is fetched, since it tells the version to the HTTP client
    factory = ClientFactory(config)
    return factory.create(await A2ACardResolver(http, base).get_agent_card())


def request(text, *more, **members):
    parts = [pb.Part(text=text), *more]
    message = pb.Message(role=pb.ROLE_USER, message_id=str(uuid.uuid4()), parts=parts, **members)
    return pb.SendMessageRequest(message=message)


async def events(agent, *what, **members):
    return [event async for event in agent.send_message(request(*what, **members))]


async def task_of(*what, **wanted):
    """The task that a message leads to."""
    last = (await events(await client(**wanted), *what))[-1]
    check(last.HasField("task"), last)
    return last.task


def text_of(parts):
    return "".join(part.text for part in parts)


def kinds(seen):
    return [event.WhichOneof("payload") for event in seen]


@scenario
async def card():
    async with httpx.AsyncClient(trust_env=False, headers={"A2A-Version": "1.0"}) as http:
        card = await A2ACardResolver(http, base).get_agent_card()
    faces = {(face.protocol_binding, face.protocol_version) for face in card.supported_interfaces}
    check({("JSONRPC", "1.0"), ("HTTP+JSON", "1.0")} <= faces, faces)
    check(all(face.url.startswith(base) for face in card.supported_interfaces), card)
    check(card.capabilities.streaming and card.capabilities.extended_agent_card, card.capabilities)
    check(card.skills[0].id == "echo", card.skills)


@scenario
async def send():
    task = await task_of("echo hello")
    check(task.status.state == pb.TASK_STATE_COMPLETED, task.status)
    check(text_of(task.artifacts[0].parts) == "hello", task.artifacts)
    check(task.history[0].role == pb.ROLE_USER and text_of(task.history[0].parts) == "echo hello", task.history)


@scenario
async def stream():
    seen = await events(await client(streaming=True), "stream 3 30")
    check(kinds(seen) == ["task", "status_update", *["artifact_update"] * 3, "status_update"], kinds(seen))
    updates = [event.artifact_update for event in seen[2:5]]
    check([text_of(update.artifact.parts) for update in updates] == ["chunk 0 ", "chunk 1 ", "chunk 2 "], updates)
    check([update.append for update in updates] == [False, True, True] and updates[2].last_chunk, updates)
    check(seen[-1].status_update.status.state == pb.TASK_STATE_COMPLETED, seen[-1])


@scenario
async def poll():
    task = await task_of("slow 0.5", polling=True)
    check(task.status.state in RUNNING, task.status)
    agent = await client()
    task = await polled(lambda: agent.get_task(pb.GetTaskRequest(id=task.id)), RUNNING)
    check(task.status.state == pb.TASK_STATE_COMPLETED and text_of(task.artifacts[0].parts) == "slept 0.5", task)


@scenario
async def cancel():
    task = await task_of("slow 30", polling=True)
    task = await (await client()).cancel_task(pb.CancelTaskRequest(id=task.id))
    check(task.status.state == pb.TASK_STATE_CANCELED, task.status)


@scenario
async def resubscribe():
    task = await task_of("stream 5 200", polling=True)
    agent = await client(streaming=True)
    seen = [event async for event in agent.subscribe(pb.SubscribeToTaskRequest(id=task.id))]
    check(kinds(seen)[0] == "task" and seen[-1].status_update.status.state == pb.TASK_STATE_COMPLETED, seen)


@scenario
async def input_required():
    task = await task_of("input")
    check(task.status.state == pb.TASK_STATE_INPUT_REQUIRED, task.status)
    check(text_of(task.status.message.parts) == "which one?", task.status)
    answer = await events(await client(), "blue", task_id=task.id, context_id=task.context_id)
    again = answer[-1].task
    check(again.id == task.id and again.status.state == pb.TASK_STATE_COMPLETED, again)
    check(text_of(again.artifacts[0].parts) == "resumed with: blue", again.artifacts)


@scenario
async def file_out():
    url, raw = (await task_of("file")).artifacts[0].parts
    check(url.url == "https://example.com/report.pdf" and url.media_type == "application/pdf", url)
    check(raw.raw == BYTES and raw.media_type == "application/octet-stream", raw)
    check(url.filename == "report.pdf" and raw.filename == "blob.bin", (url, raw))


@scenario
async def file_in():
    parts = [
        pb.Part(raw=BYTES, media_type="application/octet-stream", filename="a.bin", metadata={"m": 1}),
        pb.Part(url="https://example.com/x.png", media_type="image/png", filename="x.png"),
    ]
    back = (await task_of("echo", *parts)).artifacts[0].parts[1:]
    check(list(back) == parts, back)


@scenario
async def data_out():
    data = MessageToDict((await task_of("data")).artifacts[0].parts[0])["data"]
    check(data["int"] == 42 and data["float"] == 2.5 and data["null"] is None and data["true"] is True, data)
    check(data["list"] == [1, "two", None, {"three": 3}] and data["empty"] == {}, data)
    check(data["unicode"] == "Grüße, 世界 🌍" and data["kind"] == "a key named kind", data)


@scenario
async def data_in():
    values, parts = [{"a": [1, {"b": None}], "kind": "x"}, [1, 2], "text", 7, True, None], []
    for value in values:
        parts.append(pb.Part())
        ParseDict(value, parts[-1].data)
    back = (await task_of("echo", *parts)).artifacts[0].parts[1:]
    check([MessageToDict(part)["data"] for part in back] == values, back)


@scenario
async def fail():
    task = await task_of("fail")
    check(task.status.state == pb.TASK_STATE_FAILED, task.status)
    check(text_of(task.status.message.parts) == "it failed", task.status)


@scenario
async def message_only():
    for streaming in (False, True):
        seen = await events(await client(streaming=streaming), "message good day")
        check(kinds(seen) == ["message"] and text_of(seen[0].message.parts) == "good day", seen)


@scenario
async def push_config():
    task, agent = await task_of("slow 5", polling=True), await client()

    def config(name):
        known = pb.AuthenticationInfo(scheme="Bearer", credentials="c")
        return pb.TaskPushNotificationConfig(task_id=task.id, id=name, url=HOOK, token="t", authentication=known)

    async def names():
        listed = await agent.list_task_push_notification_configs(
            pb.ListTaskPushNotificationConfigsRequest(task_id=task.id)
        )
        return sorted(found.id for found in listed.configs)

    for name in "ab":
        made = await agent.create_task_push_notification_config(config(name))
        check(made == config(name), made)
    wanted = pb.GetTaskPushNotificationConfigRequest(task_id=task.id, id="a")
    found = await agent.get_task_push_notification_config(wanted)
    check(found == config("a"), found)
    check(await names() == ["a", "b"], await names())
    gone = pb.DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="a")
    await agent.delete_task_push_notification_config(gone)
    check(await names() == ["b"], await names())


@scenario
async def list_tasks():
    agent, context = await client(), str(uuid.uuid4())
    for _ in range(3):
        await events(agent, "echo hello", context_id=context)
    page = await agent.list_tasks(pb.ListTasksRequest(context_id=context, page_size=2, include_artifacts=True))
    check(len(page.tasks) == 2 and page.total_size == 3 and page.tasks[0].artifacts, page)
    token = page.next_page_token
    last = await agent.list_tasks(pb.ListTasksRequest(context_id=context, page_size=2, page_token=token))
    check(len(last.tasks) == 1 and not last.next_page_token and not last.tasks[0].artifacts, last)
    failed = await agent.list_tasks(pb.ListTasksRequest(context_id=context, status=pb.TASK_STATE_FAILED))
    check(not failed.tasks, failed)


@scenario
async def unknown_task():
    agent = await client(streaming=True)

    async def subscribed():
        return [event async for event in agent.subscribe(pb.SubscribeToTaskRequest(id="none"))]

    asked = agent.get_task(pb.GetTaskRequest(id="none")), agent.cancel_task(pb.CancelTaskRequest(id="none"))
    for ask in (*asked, subscribed(), events(agent, "echo", task_id="none")):
        try:
            check(False, await ask)
        except TaskNotFoundError:
            pass


@scenario
async def extended_card():
    card = await (await client()).get_extended_agent_card(pb.GetExtendedAgentCardRequest())
    check(card.name.endswith("(extended)") and [skill.id for skill in card.skills] == ["echo", "secret"], card)


main()
