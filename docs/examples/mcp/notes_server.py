"""A simple server: notes, kept in memory."""

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("notes", version="1.0")
NOTES = {"birds": "An ostrich cannot fly, and runs at 70 km/h."}


@server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
def read_note(title: str) -> str:
    """Read one note."""
    if title not in NOTES:
        raise ValueError(f"there is no note {title!r}; there are {', '.join(NOTES)}")
    return NOTES[title]


@server.tool(structured_output=False)
def write_note(title: str, text: str) -> str:
    """Write a note, over an older one of that title."""
    NOTES[title] = text
    return f"{len(NOTES)} notes"


server.run("stdio")
