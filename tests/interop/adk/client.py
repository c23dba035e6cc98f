"""The Python SDK 1.x as a client of what ADK-Rust can do in its own way: client.py BASE jsonrpc|rest LABEL"""

import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import TaskNotCancelableError, UnsupportedOperationError
from google.protobuf.json_format import ParseDict

from harness import HOOK, base, check, main, polled, rest, scenario

RUNNING = (pb.TASK_STATE_SUBMITTED, pb.TASK_STATE_WORKING)


async def client(streaming=False):
    http = httpx.AsyncClient(trust_env=False, timeout=15)
    bindings = ["HTTP+JSON" if rest else "JSONRPC"]
    config = ClientConfig(httpx_client=http, supported_protocol_bindings=bindings, streaming=streaming)
    return ClientFactory(config).create(await A2ACardResolver(http, base).get_agent_card())


def request(text, *more, configuration=None, **members):
    message = pb.Message(role=pb.ROLE_USER, message_id=str(uuid.uuid4()), parts=[pb.Part(text=text), *more], **members)
    return pb.SendMessageRequest(message=message, configuration=configuration)


async def task_of(*what, **more):
    events = [event async for event in (await client()).send_message(request(*what, **more))]
    check(events[-1].HasField("task"), events)
    return events[-1].task


async def begun(text):
    """The task of a stream that is left after its first event."""
    events = (await client(streaming=True)).send_message(request(text))
    async for event in events:
        await events.aclose()
        return event.task


def data(value):
    part = pb.Part()
    ParseDict(value, part.data)
    return part


@scenario
async def leave_and_poll():
    task = await begun("stream 3 200")
    check(task.status.state in RUNNING, task)
    agent = await client()
    task = await polled(lambda: agent.get_task(pb.GetTaskRequest(id=task.id)), RUNNING)
    check(task.status.state == pb.TASK_STATE_COMPLETED, task)
    check([part.text for part in task.artifacts[0].parts] == ["chunk 0 chunk 1 chunk 2 "], task)


@scenario
async def cancel_a_stream():
    task, agent = await begun("stream 10 200"), await client()
    task = await agent.cancel_task(pb.CancelTaskRequest(id=task.id))
    check(task.status.state == pb.TASK_STATE_CANCELED, task)
    task = await agent.get_task(pb.GetTaskRequest(id=task.id))
    check(task.status.state == pb.TASK_STATE_CANCELED, task)


@scenario
async def refused_when_finished():
    task = await task_of("echo hello")
    agent = await client(streaming=True)
    try:
        check(False, await agent.cancel_task(pb.CancelTaskRequest(id=task.id)))
    except TaskNotCancelableError:
        pass
    try:
        check(False, [event async for event in agent.subscribe(pb.SubscribeToTaskRequest(id=task.id))])
    except UnsupportedOperationError:
        pass


@scenario
async def subscribe_to_a_running_task():
    task, agent = await begun("stream 20 200"), await client(streaming=True)
    seen = [event async for event in agent.subscribe(pb.SubscribeToTaskRequest(id=task.id))]
    check([event.WhichOneof("payload") for event in seen] == ["task", "status_update"], seen)


@scenario
async def history_as_asked():
    for wanted, left in ((0, 0), (1, 1)):
        task = await task_of("echo hello", configuration=pb.SendMessageConfiguration(history_length=wanted))
        check(len(task.history) == left, task)


@scenario
async def same_context():
    context = str(uuid.uuid4())
    made = [(await task_of("echo hello", context_id=context)).id for _ in range(2)]
    page = await (await client()).list_tasks(pb.ListTasksRequest(context_id=context))
    check([task.id for task in page.tasks] == made and page.total_size == 2 and not page.next_page_token, page)


@scenario
async def same_message():
    wanted = request("echo hello")
    agent = await client()
    ids = {[event async for event in agent.send_message(wanted)][-1].task.id for _ in range(2)}
    check(len(ids) == 1, ids)


@scenario
async def function_parts():
    answer = {"function_response": {"id": "call-1", "name": "look", "response": {"found": 7}}}
    task = await task_of("tool look", data(answer))
    check(task.status.state == pb.TASK_STATE_COMPLETED, task)
    check([part.text for part in task.artifacts[0].parts] == ["called look"], task)


@scenario
async def webhook_of_a_task():
    task, agent = await task_of("echo hello"), await client()
    for known in (None, pb.AuthenticationInfo(scheme="Bearer", credentials="c"), pb.AuthenticationInfo(scheme="Bearer")):
        wanted = pb.TaskPushNotificationConfig(task_id=task.id, id="p", url=HOOK, token="t", authentication=known)
        made = await agent.create_task_push_notification_config(wanted)
        check(made.url == HOOK, made)
        gone = pb.DeleteTaskPushNotificationConfigRequest(task_id=task.id, id=made.id)
        await agent.delete_task_push_notification_config(gone)
    left = await agent.list_task_push_notification_configs(pb.ListTaskPushNotificationConfigsRequest(task_id=task.id))
    check(not left.configs, left)


@scenario
async def extended_card_is_the_card():
    card = await (await client()).get_extended_agent_card(pb.GetExtendedAgentCardRequest())
    check(card.name == "Interop agent (ADK-Rust)", card)


main()
