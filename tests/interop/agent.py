"""The real v1.0 agent behind the gateway: the published Python SDK around the words of the demo agent.

agent.py [--compat]    serves on a free loopback port and prints its URL

--compat turns on the SDK's own v0.3 layer, to try the old clients without a gateway.
"""

import asyncio
import json
import logging
import socket
import sys

import uvicorn
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette

from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
)

DATA = {
    "int": 42,
    "float": 2.5,
    "null": None,
    "true": True,
    "list": [1, "two", None, {"three": 3}],
    "empty": {},
    "unicode": "Grüße, 世界 🌍",
    "kind": "a key named kind",
}
FILES = [
    Part(url="https://example.com/report.pdf", filename="report.pdf", media_type="application/pdf"),
    Part(raw=b"\x00\x01\x02hello\xff\xfe", filename="blob.bin", media_type="application/octet-stream"),
]


def text(words):
    return Part(text=words)


class Words(AgentExecutor):
    """Does what the first word says."""

    async def execute(self, context, queue):
        message, resumed = context.message, context.current_task is not None
        said = next((part.text for part in message.parts if part.HasField("text")), "")
        word, _, rest = said.partition(" ")
        if word == "message" and not resumed:
            parts = [text(rest or "hi")]
            reply = Message(role=Role.ROLE_AGENT, message_id="reply-" + message.message_id, parts=parts)
            reply.context_id = context.context_id
            return await queue.enqueue_event(reply)
        of = context.current_task or context
        task = TaskUpdater(queue, context.task_id, of.context_id)
        if not resumed:
            await queue.enqueue_event(new_task_from_user_message(message))
        await task.start_work()
        if resumed:
            await task.add_artifact([text("resumed with: " + said)], name="resumed")
            return await task.complete()
        act = getattr(self, "do_" + word, None)
        if act:
            return await act(task, rest)
        first = [text(rest if word == "echo" else said)]
        await task.add_artifact(first + list(message.parts)[1:], name="echo")
        return await task.complete()

    async def do_stream(self, task, rest):
        count, pause = (int(number) for number in rest.split())
        for at in range(count):
            await asyncio.sleep(pause / 1000 if at else 0)
            last = at == count - 1
            await task.add_artifact([text(f"chunk {at} ")], "stream", append=at > 0, last_chunk=last)
        await task.complete()

    async def do_slow(self, task, rest):
        await asyncio.sleep(float(rest))
        await task.add_artifact([text("slept " + rest)], name="slow")
        await task.complete()

    async def do_file(self, task, _):
        await task.add_artifact(FILES, name="file")
        await task.complete()

    async def do_data(self, task, _):
        part = Part()
        ParseDict(DATA, part.data)
        await task.add_artifact([part], name="data")
        await task.complete()

    async def do_fail(self, task, _):
        await task.failed(task.new_agent_message([text("it failed")]))

    async def do_input(self, task, _):
        await task.requires_input(task.new_agent_message([text("which one?")]))

    async def cancel(self, context, queue):
        of = context.current_task or context
        await TaskUpdater(queue, context.task_id, of.context_id).cancel()


def card_of(url, versions, name="Interop agent", *more):
    faces = [
        AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
        for version in versions
        for binding in ("JSONRPC", "HTTP+JSON")
    ]
    skills = [AgentSkill(id=id, name=id, description=id, tags=["test"]) for id in ("echo", *more)]
    return AgentCard(
        name=name,
        description="Obeys the first word of a message",
        version="1.0.0",
        supported_interfaces=faces,
        capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
        default_input_modes=["text/plain", "application/json", "application/octet-stream"],
        default_output_modes=["text/plain", "application/json"],
        skills=skills,
    )


def main():
    compat = "--compat" in sys.argv[1:]
    logging.basicConfig(level=logging.CRITICAL)
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    versions = ["1.0", "0.3"] if compat else ["1.0"]
    card = card_of(url, versions)
    handler = DefaultRequestHandler(
        agent_executor=Words(),
        task_store=InMemoryTaskStore(),
        agent_card=card,
        push_config_store=InMemoryPushNotificationConfigStore(),
        extended_agent_card=card_of(url, versions, "Interop agent (extended)", "secret"),
    )
    routes = list(create_agent_card_routes(card))
    routes += create_jsonrpc_routes(handler, rpc_url="/", enable_v0_3_compat=compat)
    routes += create_rest_routes(handler, enable_v0_3_compat=compat)
    print(url, flush=True)
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error"))
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
