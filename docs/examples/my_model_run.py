"""The model asked by an agent, against a server in this process that is busy at first."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import concertino as ct
from my_model import chat_server


class Server(BaseHTTPRequestHandler):
    asked = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        Server.asked += 1
        busy = Server.asked == 1
        message = {"message": {"content": "Oslo"}, "finish_reason": "stop"}
        body = json.dumps({"choices": [message], "usage": {"prompt_tokens": 12, "completion_tokens": 1}}).encode()
        self.send_response(429 if busy else 200)
        if busy:
            self.send_header("Retry-After", "0.1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@ct.agent(models=("worker",))
async def answer(question: str, *, ctx: ct.Context) -> str:
    """Answer a question."""
    return (await ctx.model("worker").chat(question)).text


async def main() -> None:
    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    model = chat_server(f"http://127.0.0.1:{server.server_port}/v1/chat/completions", "small")
    pool = ct.Pool.of(answer, model, worker="my-server/small")
    events: list[dict] = []
    async with ct.Executor() as executor:
        call = ct.Call("answer", {"question": "Capital of Norway?"})
        listeners = [lambda event: events.append(event.to_json())]
        (seen,) = await executor.run([call], pool, listeners=listeners)
    print(seen.status, seen.content, f"${seen.usage.usd:.7f}")
    print([(event["name"], event["failure"]) for event in events if event["t"] == "retry"])
    server.shutdown()
    server.server_close()


asyncio.run(main())
