"""The Python SDK 1.x as a client of what MemoryLake does in its own way: py1.py BASE jsonrpc|rest LABEL"""

import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from a2a.client.errors import A2AClientError
from a2a.utils.errors import InvalidParamsError
from google.protobuf.json_format import MessageToDict

from harness import base, check, main, polled, rest, scenario

RUNNING = (pb.TASK_STATE_SUBMITTED, pb.TASK_STATE_WORKING)
SUM = {"id": "call_1", "name": "add", "args": {"a": 2, "b": [1, 0.5]}}


async def client(streaming=False, polling=False):
    http = httpx.AsyncClient(trust_env=False, timeout=15)
    bindings = ["HTTP+JSON" if rest else "JSONRPC"]
    config = ClientConfig(httpx_client=http, supported_protocol_bindings=bindings, streaming=streaming, polling=polling)
    return ClientFactory(config).create(await A2ACardResolver(http, base).get_agent_card())


def request(text, **members):
    message = pb.Message(role=pb.ROLE_USER, message_id=str(uuid.uuid4()), parts=[pb.Part(text=text)], **members)
    return pb.SendMessageRequest(message=message)


async def events(text, streaming=False, polling=False, **members):
    agent = await client(streaming=streaming, polling=polling)
    return [event async for event in agent.send_message(request(text, **members))]


async def task_of(text, **wanted):
    return (await events(text, **wanted))[-1].task


def told(part):
    return MessageToDict(part)


def are_tools(history):
    parts = [told(message.parts[0]) for message in history if message.role == pb.ROLE_AGENT]
    check(parts[0] == {"text": "I have to add.", "metadata": {"adk_thought": True}}, parts)
    check(parts[2]["data"] == SUM and parts[2]["metadata"]["adk_type"] == "function_call", parts)
    check(parts[2]["metadata"]["adk_thought_signature"] == "c2lnbmVk", parts)
    check(parts[3]["metadata"] == {"adk_type": "function_response"}, parts)
    check(parts[7]["data"]["response"] == {"error": "gone", "code": 410}, parts)


@scenario
async def tools_sent():
    are_tools((await task_of("tools")).history)


@scenario
async def tools_polled():
    agent, task = await client(), await task_of("tools", polling=True)
    task = await polled(lambda: agent.get_task(pb.GetTaskRequest(id=task.id)), RUNNING)
    check(task.artifacts[0].parts[0].text == "The sum is 3.", task)
    are_tools(task.history)


@scenario
async def tools_streamed():
    seen = await events("tools", streaming=True)
    updates = [event.status_update.status.message for event in seen if event.HasField("status_update")]
    parts = [told(message.parts[0]) for message in updates if message.parts]
    check([part.get("metadata", {}).get("adk_type") for part in parts].count("function_call") == 3, parts)
    check(parts[0]["metadata"] == {"adk_thought": True}, parts)


@scenario
async def chunks():
    seen = await events("stream 3 30", streaming=True)
    kinds = [event.WhichOneof("payload") for event in seen]
    check(kinds == ["task", *["status_update"] * 4, "artifact_update", "status_update"], kinds)
    texts = [event.status_update.status.message.parts[0].text for event in seen[2:5]]
    check(texts == ["chunk 0 ", "chunk 1 ", "chunk 2 "], texts)
    check(seen[5].artifact_update.artifact.parts[0].text == "".join(texts), seen[5])


@scenario
async def left_and_subscribed():
    stream = (await client(streaming=True)).send_message(request("stream 5 100"))
    async for event in stream:
        task = event.task
        await stream.aclose()
        break
    agent = await client(streaming=True)
    seen = [event async for event in agent.subscribe(pb.SubscribeToTaskRequest(id=task.id))]
    check(seen[-1].status_update.status.state == pb.TASK_STATE_COMPLETED, seen)
    texts = [part.text for event in seen for part in event.status_update.status.message.parts]
    check("".join(texts) == "chunk 0 chunk 1 chunk 2 chunk 3 chunk 4 ", texts)


@scenario
async def attachments():
    parts = [told(part) for part in (await task_of("file")).artifacts[0].parts]
    check(parts[1]["data"]["kind"] == "attachments" and parts[2]["data"]["kind"] == "recommended_questions", parts)


@scenario
async def busy():
    context = str(uuid.uuid4())
    task = await task_of("slow 30", polling=True, context_id=context)
    try:
        check(False, await events("echo", context_id=context))
    except (InvalidParamsError, A2AClientError) as error:
        # by REST it knows an error by its reason alone, and this one is not A2A's
        check("400" in str(error) if rest else isinstance(error, InvalidParamsError), error)
    await (await client()).cancel_task(pb.CancelTaskRequest(id=task.id))
    check((await task_of("echo hi", context_id=context)).artifacts[0].parts[0].text == "hi", "not after the cancel")


main()
