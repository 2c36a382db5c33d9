"""Sandboxes elsewhere, behind the same interface: a docker daemon, a SandboxFusion server, E2B.

Each was written against the service's public interface and is tested against a stand-in of it in this repository; none
has been exercised against the real service. They need `aiohttp` (`pip install 'concertino-code[remote]'`).
"""
