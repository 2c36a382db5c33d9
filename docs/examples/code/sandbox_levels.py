"""Which sandbox this machine gives, and how scripts end in it."""

import asyncio

from concertino_code.sandbox import ScriptLimits, choose_level, open_sandbox

SCRIPTS = {
    "a sum": "print(6 * 7)",
    "the network": "import socket\nsocket.create_connection(('127.0.0.1', 80))",
    "a gigabyte": "held = b'x' * (1 << 30)",
    "no end": "print('so far', flush=True)\nwhile True: pass",
}


async def main() -> None:
    choice = await choose_level()
    print("level:", choice.level, "- passed over:", choice.explain() or "none")
    async with await open_sandbox(limits=ScriptLimits(wall=1, memory_mb=256)) as sandbox:
        for name, code in SCRIPTS.items():
            execution = await sandbox.run(code)
            print(f"{name}: {execution.ending}, {execution.stdout.text.strip() or execution.explain()}")
        execution = await sandbox.run("open('out.csv', 'w').write(input())", stdin="1,2", artefacts=["out.csv"])
        print("a file:", execution.artefacts["out.csv"].data)


asyncio.run(main())
