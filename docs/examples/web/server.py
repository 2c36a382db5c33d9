"""A web server that answers questions, and streams the answer as server-sent events."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import concertino as ct
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field


@ct.tool
def weather(city: str) -> str:
    """Say what the weather is in a city."""
    return {"Oslo": "snow, -3 C", "Rome": "sun, 18 C"}.get(city, "unknown")


class Question(BaseModel):
    """What a client sends. The conversation's name becomes a file name, so it is checked."""

    text: str = Field(min_length=1, max_length=4000)
    conversation: str = Field(pattern=r"^[a-z0-9-]{8,40}$")


EXECUTOR = ct.Executor()  # one for all requests: connections, concurrency and circuit breakers are shared
LEADER = ct.Orchestrator("openai/gpt-5.4-mini", executor=EXECUTOR, instructions="Answer in one sentence.")
POOL = ct.Pool.of(weather)
BUDGET = ct.Budget(calls=20, tokens=50_000, seconds=60)
FOLDER = os.environ.get("CONVERSATIONS", "conversations")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with EXECUTOR:
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/ask")
async def ask(question: Question) -> StreamingResponse:
    return StreamingResponse(events(question), media_type="text/event-stream")


async def events(question: Question) -> AsyncIterator[str]:
    session = ct.Session(question.conversation, FOLDER)
    async for event in LEADER.stream(question.text, pool=POOL, history=session, budget=BUDGET):
        if isinstance(event, ct.events.TextDelta) and event.kind == "answer":
            yield message("text", event.text)
        elif isinstance(event, ct.events.CallEnded):
            yield message("call", f"{event.observation.name} {event.observation.status}")
        elif isinstance(event, ct.Run):
            yield message("end", {"answer": event.answer, "stop": event.stop, "tokens": event.usage.tokens})


def message(kind: str, data: object) -> str:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"
