"""The simulated file system of BFCL: folders and texts, and the commands of a shell on the folder where one is.

A folder is a dict by name, a file a text. The invariant: a command acts on names of the current folder alone; only `cd`
and `find` take a path.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from .machine import Machine, State, error
from .published import NOTHING, Published

Folder: TypeAlias = dict[str, Any]
_FORBIDDEN = frozenset('|/\\?%*:"><')
_UNITS = ("B", "KB", "MB", "GB", "TB")


class Files(Machine):
    """A file system."""

    def __init__(self, config: Mapping[str, Any], published: Published = NOTHING) -> None:
        super().__init__({}, published)
        root = config.get("root") or {}
        self._name = next(iter(root), "/")
        self._root = self._folder(root[self._name]["contents"]) if root else {}
        self._path: list[str] = []

    def state(self) -> State:
        """The folders and files. Where one is does not count, as published."""
        return {"root": self._root}

    # -- where one is --------------------------------------------------------------------------------------------------

    def on_pwd(self) -> State:
        return {"current_working_directory": "/" + "/".join([self._name, *self._path])}

    def on_ls(self, a: bool = False) -> State:
        return {"current_directory_content": [name for name in self._here if a or not name.startswith(".")]}

    def on_cd(self, folder: str) -> State:
        folder = folder.rstrip("/") or "/"
        if folder == "..":
            if not self._path:
                return error("cd: this is the root already, nothing is above it")
            self._path.pop()
            return {}
        if "/" in folder and folder != "/":
            return error(f"cd: {folder}: a path of several levels; go one level at a time")
        if folder != "/" and folder != "." and not isinstance(self._here.get(folder), dict):
            return error(f"cd: '{folder}': No such file or directory")
        self._path = [] if folder == "/" else [*self._path, *([] if folder == "." else [folder])]
        return {"current_working_directory": self._path[-1] if self._path else self._name}

    def on_find(self, path: str = ".", name: str | None = None) -> State:
        found = self._at(path)
        if found is None:
            return error(f"find: '{path}': No such file or directory")
        return {"matches": [place for place, each in _walk(found, path.rstrip("/")) if name is None or name in each]}

    def on_du(self, human_readable: bool = False) -> State:
        size = float(_size(self._here))
        if not human_readable:
            return {"disk_usage": f"{int(size)} bytes"}
        for unit in _UNITS:
            if size < 1024:
                return {"disk_usage": f"{size:.2f} {unit}"}
            size /= 1024
        return {"disk_usage": f"{size:.2f} PB"}

    # -- reading -------------------------------------------------------------------------------------------------------

    def on_cat(self, file_name: str) -> State:
        item = self._here.get(file_name)
        if isinstance(item, dict):
            return error(f"cat: '{file_name}': Is a directory")
        return self._none("cat", file_name) if item is None else {"file_content": item}

    def on_wc(self, file_name: str, mode: str = "l") -> State:
        text = self._text(file_name)
        if mode not in ("l", "w", "c"):
            return error(f"wc: invalid mode '{mode}'")
        if text is None:
            return self._none("wc", file_name)
        count, kind = {
            "l": (len(text.splitlines()), "lines"),
            "w": (len(text.split()), "words"),
            "c": (len(text), "characters"),
        }[mode]
        return {"count": count, "type": kind}

    def on_sort(self, file_name: str) -> State:
        text = self._text(file_name)
        if text is None:
            return self._none("sort", file_name)
        return {"sorted_content": "\n".join(sorted(text.splitlines()))}

    def on_grep(self, file_name: str, pattern: str) -> State:
        text = self._text(file_name)
        if text is None:
            return self._none("grep", file_name)
        return {"matching_lines": [line for line in text.splitlines() if pattern in line]}

    def on_tail(self, file_name: str, lines: int = 10) -> State:
        text = self._text(file_name)
        if text is None:
            return self._none("tail", file_name)
        # As published, 0 lines are all lines.
        return {"last_lines": "\n".join(text.splitlines()[-min(lines, len(text.splitlines())) :])}

    def on_diff(self, file_name1: str, file_name2: str) -> State:
        one, other = self._text(file_name1), self._text(file_name2)
        if one is None or other is None:
            return self._none("diff", f"{file_name1} or {file_name2}")
        pairs = zip(one.splitlines(), other.splitlines(), strict=False)
        return {"diff_lines": "\n".join(f"- {left}\n+ {right}" for left, right in pairs if left != right)}

    # -- changing ------------------------------------------------------------------------------------------------------

    def on_mkdir(self, dir_name: str) -> State | None:
        return self._made("mkdir: cannot create directory", dir_name, {})

    def on_touch(self, file_name: str) -> State | None:
        return self._made("touch: cannot touch", file_name, "")

    def on_echo(self, content: str, file_name: str | None = None) -> State | None:
        if not file_name:
            return {"terminal_output": content}
        if _FORBIDDEN & {*file_name}:
            return error(f"echo: cannot write to '{file_name}': Invalid character")
        if self._text(file_name) is None:
            return error(f"echo: cannot write to '{file_name}': No such file")
        self._here[file_name] = content
        return None

    def on_mv(self, source: str, destination: str) -> State:
        refused, folder, name = self._target("mv: cannot move", source, destination)
        if refused:
            return refused
        folder[name] = self._here.pop(source)
        return self._told("moved", source, destination, folder)

    def on_cp(self, source: str, destination: str) -> State:
        refused, folder, name = self._target("cp: cannot copy", source, destination)
        if refused:
            return refused
        folder[name] = copy.deepcopy(self._here[source])
        return self._told("copied", source, destination, folder)

    def on_rm(self, file_name: str) -> State:
        if file_name not in self._here:
            return self._none("rm: cannot remove", file_name)
        del self._here[file_name]
        return {"result": f"'{file_name}' removed"}

    def on_rmdir(self, dir_name: str) -> State:
        item = self._here.get(dir_name)
        if item is None:
            return self._none("rmdir: cannot remove", dir_name)
        if not isinstance(item, dict):
            return error(f"rmdir: cannot remove '{dir_name}': Not a directory")
        if item:
            return error(f"rmdir: cannot remove '{dir_name}': Directory not empty")
        del self._here[dir_name]
        return {"result": f"'{dir_name}' removed"}

    # -- what the commands share ---------------------------------------------------------------------------------------

    @property
    def _here(self) -> Folder:
        folder = self._root
        for name in self._path:
            folder = folder[name]
        return folder

    def _at(self, path: str) -> Folder | None:
        """The folder at a path."""
        folder: Any = self._root if path.startswith("/") else self._here
        for name in path.strip("/").split("/"):
            if name not in ("", "."):
                folder = folder.get(name) if isinstance(folder, dict) else None
        return folder if isinstance(folder, dict) else None

    def _text(self, name: str) -> str | None:
        item = self._here.get(name)
        return item if isinstance(item, str) else None

    def _none(self, command: str, name: str) -> State:
        return error(f"{command}: {name}: No such file or directory")

    def _made(self, what: str, name: str, item: Any) -> State | None:
        if _FORBIDDEN & {*name}:
            return error(f"{what} '{name}': Invalid character")
        if name in self._here:
            return error(f"{what} '{name}': File exists")
        self._here[name] = item
        return None

    def _target(self, what: str, source: str, destination: str) -> tuple[State | None, Folder, str]:
        """The folder and the name under which something is put; or why it cannot be put there."""
        here = self._here
        item = here.get(destination)
        refusal = ""
        if source not in here:
            refusal = f"{what} '{source}': No such file or directory"
        elif "/" in destination:
            refusal = f"{what} '{source}' to '{destination}': a path; give a name only"
        elif item is not None and not isinstance(item, dict):
            refusal = f"{what} '{source}' to '{destination}': Not a directory"
        elif isinstance(item, dict) and (source in item or item is here[source]):
            refusal = f"{what} '{source}' to '{destination}/{source}': File exists"
        if refusal:
            return error(refusal), here, ""
        return None, *((item, source) if isinstance(item, dict) else (here, destination))

    def _told(self, done: str, source: str, destination: str, folder: Folder) -> State:
        place = destination if folder is self._here else f"{destination}/{source}"
        return {"result": f"'{source}' {done} to '{place}'"}

    def _folder(self, contents: Mapping[str, Any]) -> Folder:
        """A folder as the published files write it; where texts are long, the innermost ones hold many empty files."""
        more, short = self.longer("FILE_CONTENT_EXTENSION", otherwise=""), self.longer("FILES_TAIL_USED", otherwise=())
        found: Folder = {
            name: self._folder(item["contents"])
            if item["type"] == "directory"
            else str(item.get("content", "")) + ("" if name in short else more)
            for name, item in contents.items()
        }
        if any(isinstance(item, dict) for item in found.values()):
            return found
        return {**dict.fromkeys(self.longer("POPULATE_FILE_EXTENSION", otherwise=()), ""), **found}


def _walk(folder: Folder, place: str) -> Iterator[tuple[str, str]]:
    """All that is in a folder, at any depth: its place and its name."""
    for name, item in folder.items():
        yield f"{place}/{name}", name
        if isinstance(item, dict):
            yield from _walk(item, f"{place}/{name}")


def _size(item: Any) -> int:
    return sum(map(_size, item.values())) if isinstance(item, dict) else len(item.encode("utf-8", "surrogatepass"))
