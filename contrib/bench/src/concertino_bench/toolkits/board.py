"""The task board of tau2-bench's mock domain: tasks that are pending or completed, and a user's notifications.

Written from the published tasks and policy. A new task's number is one more than there are tasks.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from .toolkit import ToolError, Toolkit, reads, writes

TaskStatus = Literal["pending", "completed"]


class TaskBoard(Toolkit):
    """The board. Its database has the tables `tasks`, `users` and, where the user has tools, `notifications`."""

    name: ClassVar[str] = "mock"

    @writes
    def create_task(self, user_id: str, title: str, description: str | None = None) -> dict[str, Any]:
        """Make a new task for a user.

        Args:
            user_id: id of the user
            title: title of the task
            description: what is to be done
        """
        user = self._known("users", user_id, "User")
        tasks = self.db["tasks"]
        # As published: ids are counted, which is what recorded states hold.
        task_id = f"task_{len(tasks) + 1}"
        tasks[task_id] = {"task_id": task_id, "title": title, "description": description, "status": "pending"}
        user["tasks"].append(task_id)
        created: dict[str, Any] = tasks[task_id]
        return created

    @reads
    def get_users(self) -> list[dict[str, Any]]:
        """List all users with the ids of their tasks."""
        return list(self.db["users"].values())

    @writes
    def update_task_status(self, task_id: str, status: TaskStatus) -> dict[str, Any]:
        """Change the status of a task.

        Args:
            task_id: id of the task
            status: the new status
        """
        task = self._known("tasks", task_id, "Task")
        task["status"] = status
        return task

    @reads(ends=True)
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the user over to a human agent, if the user asks for one or the tools cannot solve the matter.

        Args:
            summary: what the matter is
        """
        return "Transfer successful"

    # -- of the simulated user -----------------------------------------------------------------------------------------

    @reads(by="user")
    def check_notifications(self) -> list[dict[str, Any]]:
        """List the notifications in your inbox."""
        return list(self.db.get("notifications", {}).values())

    @writes(by="user")
    def dismiss_notification(self, notification_id: str) -> str:
        """Mark a notification as read.

        Args:
            notification_id: id of the notification
        """
        self._known("notifications", notification_id, "Notification")["status"] = "read"
        return f"Notification {notification_id} dismissed"

    # -- for first states, and what is to be the case in the end -------------------------------------------------------

    @writes(by="nobody")
    def add_notification(self, notification_id: str, message: str, task_id: str | None = None) -> None:
        """Put a notification into the user's inbox."""
        made = {"notification_id": notification_id, "message": message, "status": "unread", "task_id": task_id}
        self.db.setdefault("notifications", {})[notification_id] = made

    @reads(by="nobody")
    def assert_task_status(self, task_id: str, expected_status: str) -> bool:
        """Whether a task has a status."""
        return bool(self._known("tasks", task_id, "Task")["status"] == expected_status)

    @reads(by="nobody")
    def assert_number_of_tasks(self, user_id: str, expected_number: int) -> bool:
        """Whether a user has so many tasks."""
        return len(self._known("users", user_id, "User")["tasks"]) == expected_number

    @reads(by="nobody")
    def assert_notification_status(self, notification_id: str, expected_status: str) -> bool:
        """Whether a notification was read."""
        return bool(self._known("notifications", notification_id, "Notification")["status"] == expected_status)

    # -- what the tools share ------------------------------------------------------------------------------------------

    def _known(self, table: str, key: str, what: str) -> dict[str, Any]:
        found: dict[str, Any] | None = self.db.get(table, {}).get(key)
        if found is None:
            raise ToolError(f"{what} {key} not found")
        return found
