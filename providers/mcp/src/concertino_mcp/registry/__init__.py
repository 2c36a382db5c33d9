"""The `server.json` of an MCP registry, as the settings of a server.

document   the file, read with errors that say where     inputs   what a file leaves open, and where it is given
launch     a package as a command, a remote as an address     server   which of them is taken, and whether it may start
"""
