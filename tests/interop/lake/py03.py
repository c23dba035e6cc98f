"""The Python SDK 0.3 as a client of what MemoryLake does in its own way: py03.py BASE jsonrpc|rest LABEL"""

import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import Message, Part, Role, TaskIdParams, TaskQueryParams, TaskState, TextPart

from harness import base, check, main, polled, rest, scenario

RUNNING = (TaskState.submitted, TaskState.working)
SUM = {"id": "call_1", "name": "add", "args": {"a": 2, "b": [1, 0.5]}}


async def client(streaming=False, polling=False):
    http = httpx.AsyncClient(trust_env=False, timeout=15)
    card = await A2ACardResolver(http, base).get_agent_card()
    transports = ["HTTP+JSON" if rest else "JSONRPC"]
    config = ClientConfig(httpx_client=http, supported_transports=transports, streaming=streaming, polling=polling)
    return ClientFactory(config).create(card)


def message(text, **members):
    return Message(role=Role.user, message_id=str(uuid.uuid4()), parts=[Part(root=TextPart(text=text))], **members)


async def task_of(text, polling=False, **members):
    agent = await client(polling=polling)
    return [event async for event in agent.send_message(message(text, **members))][-1][0]


def has_parts(status):
    # by REST it makes an empty message of none
    return status.message and status.message.parts


def are_tools(history):
    parts = [message.parts[0].root for message in history if message.role == Role.agent]
    check(parts[0].text == "I have to add." and parts[0].metadata == {"adk_thought": True}, parts)
    check(parts[2].data == SUM and parts[2].metadata["adk_type"] == "function_call", parts)
    check(parts[2].metadata["adk_thought_signature"] == "c2lnbmVk", parts)
    check(parts[3].metadata == {"adk_type": "function_response"}, parts)
    check(parts[7].data["response"] == {"error": "gone", "code": 410}, parts)


@scenario
async def tools_sent():
    # over REST it does not say that it waits, and v0.3 takes it then not to
    agent, task = await client(), await task_of("tools")
    task = await polled(lambda: agent.get_task(TaskQueryParams(id=task.id)), RUNNING)
    are_tools(task.history)


@scenario
async def tools_polled():
    agent, task = await client(), await task_of("tools", polling=True)
    task = await polled(lambda: agent.get_task(TaskQueryParams(id=task.id)), RUNNING)
    check(task.artifacts[0].parts[0].root.text == "The sum is 3.", task)
    are_tools(task.history)


@scenario
async def tools_streamed():
    agent, parts = await client(streaming=True), []
    async for _, update in agent.send_message(message("tools")):
        if update and update.kind == "status-update" and has_parts(update.status):
            parts.append(update.status.message.parts[0].root)
    marks = [(part.metadata or {}).get("adk_type") for part in parts]
    check(marks.count("function_call") == 3 and parts[0].metadata == {"adk_thought": True}, parts)


@scenario
async def left_and_subscribed():
    stream = (await client(streaming=True)).send_message(message("stream 5 100"))
    async for task, _ in stream:
        await stream.aclose()
        break
    agent, texts = await client(streaming=True), []
    async for _, update in agent.resubscribe(TaskIdParams(id=task.id)):
        if update.kind == "status-update" and has_parts(update.status):
            texts.append(update.status.message.parts[0].root.text)
    check(update.final and update.status.state == TaskState.completed, update)
    check("".join(texts) == "chunk 0 chunk 1 chunk 2 chunk 3 chunk 4 ", texts)


@scenario
async def attachments():
    agent, task = await client(), await task_of("file")
    task = await polled(lambda: agent.get_task(TaskQueryParams(id=task.id)), RUNNING)
    parts = [part.root for part in task.artifacts[0].parts]
    check(parts[1].data["kind"] == "attachments" and parts[2].data["kind"] == "recommended_questions", parts)


@scenario
async def busy():
    context = str(uuid.uuid4())
    task = await task_of("slow 30", polling=True, context_id=context)
    try:
        check(False, await task_of("echo", context_id=context))
    except (A2AClientHTTPError, A2AClientJSONRPCError) as error:
        check(rest or error.error.code == -32602, error)
        check(not rest or error.status_code == 400, error)
    await (await client()).cancel_task(TaskIdParams(id=task.id))
    await task_of("echo hi", context_id=context)


main()
