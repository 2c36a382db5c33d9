"""The simulated messages, tickets and posts of BFCL: programs of a desk.

The invariant: ids are counted, or drawn from a seeded series, so the same calls give the same ids.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar

from .machine import Machine, State, error
from .published import NOTHING, Published

_LOGGED_OUT = "Nobody is logged in."
_FIELDS = ("title", "description", "status", "priority")


class Messages(Machine):
    """Messages of a workspace."""

    first: ClassVar[Mapping[str, Any]] = {
        "generated_ids": [],
        "user_count": 4,
        "user_map": {"Alice": "USR001", "Bob": "USR002", "Catherine": "USR003", "Daniel": "USR004"},
        "inbox": [
            {"USR002": "Alice here: shall we connect?"},
            {"USR003": "Could you upload the file?"},
            {"USR004": "Could you upload the file?"},
        ],
        "message_count": 3,
        "current_user": None,
    }

    def __init__(self, config: Mapping[str, Any], published: Published = NOTHING) -> None:
        super().__init__(config, published)
        self._random = random.Random(config.get("random_seed", 200191))

    def on_list_users(self) -> State:
        return {"user_list": [*self.kept["user_map"]]}

    def on_get_user_id(self, user: str) -> State:
        found = self.kept["user_map"].get(user)
        return error(f"Nobody is called '{user}' here.") if found is None else {"user_id": found}

    def on_message_login(self, user_id: str) -> State:
        if user_id not in self.kept["user_map"].values():
            return {"login_status": False, "message": f"Nobody has the ID '{user_id}'."}
        self.kept["current_user"] = user_id
        return {"login_status": True, "message": f"User '{user_id}' is logged in."}

    def on_message_get_login_status(self) -> State:
        return {"login_status": bool(self.kept["current_user"])}

    def on_send_message(self, receiver_id: str, message: str) -> State:
        if not self.kept["current_user"]:
            return error(_LOGGED_OUT)
        if receiver_id not in self.kept["user_map"].values():
            return error(f"There is no receiver '{receiver_id}'.")
        drawn = self._random.randint(10000, 99999)
        while drawn in self.kept["generated_ids"]:
            drawn = self._random.randint(10000, 99999)
        self.kept["generated_ids"] = sorted([*self.kept["generated_ids"], drawn])
        self.kept["inbox"].append({receiver_id: message})
        self.kept["message_count"] += 1
        sent = f"'{receiver_id}' has the message."
        return {"sent_status": True, "message_id": {"new_id": drawn}, "message": sent}

    def on_delete_message(self, receiver_id: str) -> State:
        if not self.kept["current_user"]:
            return error(_LOGGED_OUT)
        inbox = self.kept["inbox"]
        last = next((message for message in reversed(inbox) if _receiver(message)[0] == receiver_id), None)
        if last is None:
            return error(f"There is no receiver '{receiver_id}'.")
        # As published: of two equal messages the earlier one goes.
        inbox.remove(last)
        return {"deleted_status": True, "receiver_id": receiver_id, "message": "The latest message is deleted."}

    def on_view_messages_sent(self) -> State:
        if not self.kept["current_user"]:
            return error(_LOGGED_OUT)
        sent: dict[str, list[str]] = {}
        for receiver, text in map(_receiver, self.kept["inbox"]):
            sent.setdefault(receiver, []).append(text)
        return {"messages": sent}

    def on_add_contact(self, user_name: str) -> State:
        users = self.kept["user_map"]
        if user_name in users:
            return error(f"The name '{user_name}' is taken.")
        self.kept["user_count"] += 1
        user_id = f"USR{self.kept['user_count']:03}"
        if user_id in users.values():
            return error(f"The ID '{user_id}' is taken.")
        users[user_name] = user_id
        return {"added_status": True, "user_id": user_id, "message": f"Contact '{user_name}' is added."}

    def on_search_messages(self, keyword: str) -> State:
        if not self.kept["current_user"]:
            return error(_LOGGED_OUT)
        found = [
            {"receiver_id": receiver, "message": text}
            for receiver, text in map(_receiver, self.kept["inbox"])
            if keyword.lower() in text.lower()
        ]
        return {"results": found}

    def on_get_message_stats(self) -> State:
        if not self.kept["current_user"]:
            return error(_LOGGED_OUT)
        receivers = [receiver for receiver, _ in map(_receiver, self.kept["inbox"])]
        return {"stats": {"received_count": len(receivers), "total_contacts": len({*receivers})}}


class Tickets(Machine):
    """Tickets of a support desk."""

    first: ClassVar[Mapping[str, Any]] = {"ticket_queue": [], "ticket_counter": 1, "current_user": None}

    def on_create_ticket(self, title: str, description: str = "", priority: int = 1) -> State:
        if not self.kept["current_user"]:
            return error(_LOGGED_OUT)
        if not 1 <= priority <= 5:
            return error("A priority is between 1 and 5.")
        ticket = {
            "id": self.kept["ticket_counter"],
            "title": title,
            "description": description,
            "status": "Open",
            "priority": priority,
            "created_by": self.kept["current_user"],
        }
        self.kept["ticket_queue"].append(ticket)
        self.kept["ticket_counter"] += 1
        return ticket

    def on_get_ticket(self, ticket_id: Any) -> State:
        return self._ticket(ticket_id) or self._unknown(ticket_id)

    def on_close_ticket(self, ticket_id: Any) -> State:
        return self._settle(ticket_id, "Closed", {})

    def on_resolve_ticket(self, ticket_id: Any, resolution: str) -> State:
        return self._settle(ticket_id, "Resolved", {"resolution": resolution})

    def on_edit_ticket(self, ticket_id: Any, updates: Mapping[str, Any]) -> State:
        ticket = self._ticket(ticket_id)
        if not ticket:
            return self._unknown(ticket_id)
        if wrong := sorted({*updates} - {*_FIELDS}):
            return error(f"Invalid fields for update: {', '.join(wrong)}")
        ticket |= {key: value for key, value in updates.items() if value is not None}
        return {"status": f"Ticket {ticket_id} is updated."}

    def on_ticket_login(self, username: str, password: str) -> State:
        if not (username and password):
            return {"success": False}
        self.kept["current_user"] = username
        return {"success": True}

    def on_ticket_get_login_status(self) -> State:
        return {"login_status": bool(self.kept["current_user"])}

    def on_logout(self) -> State:
        was, self.kept["current_user"] = self.kept["current_user"], None
        return {"success": bool(was)}

    def on_get_user_tickets(self, status: str | None = None) -> list[State]:
        user = self.kept["current_user"]
        if not user:
            return [error(_LOGGED_OUT)]
        mine = [ticket for ticket in self.kept["ticket_queue"] if ticket["created_by"] == user]
        return [ticket for ticket in mine if not status or ticket["status"].lower() == status.lower()]

    def _ticket(self, ticket_id: Any) -> State | None:
        return next((ticket for ticket in self.kept["ticket_queue"] if ticket["id"] == ticket_id), None)

    def _unknown(self, ticket_id: Any) -> State:
        return error(f"There is no ticket {ticket_id}.")

    def _settle(self, ticket_id: Any, status: str, more: State) -> State:
        ticket = self._ticket(ticket_id)
        if not ticket:
            return self._unknown(ticket_id)
        if ticket["status"] == status:
            return error(f"Ticket {ticket_id} is {status.lower()} already.")
        ticket |= {"status": status, **more}
        return {"status": f"Ticket {ticket_id} is {status.lower()}."}


class Posts(Machine):
    """Posts, comments and followers of one user."""

    first: ClassVar[Mapping[str, Any]] = {
        "username": "john",
        "password": "john123",
        "authenticated": False,
        "tweets": {},
        "comments": {},
        "retweets": {},
        "following_list": ["alice", "bob"],
        "tweet_counter": 0,
    }

    def on_authenticate_twitter(self, username: str, password: str) -> State:
        right = (username, password) == (self.kept["username"], self.kept["password"])
        self.kept["authenticated"] = self.kept["authenticated"] or right
        return {"authentication_status": right}

    def on_posting_get_login_status(self) -> State:
        return {"login_status": bool(self.kept["authenticated"])}

    def on_post_tweet(self, content: str, tags: list[str] | None = None, mentions: list[str] | None = None) -> State:
        if not self.kept["authenticated"]:
            return error(_LOGGED_OUT)
        number = self.kept["tweet_counter"]
        post = {
            "id": number,
            "username": self.kept["username"],
            "content": content,
            "tags": list(tags or ()),
            "mentions": list(mentions or ()),
        }
        self.kept["tweets"][str(number)] = post
        self.kept["tweet_counter"] += 1
        return post

    def on_retweet(self, tweet_id: int) -> State:
        if refused := self._refused(tweet_id):
            return refused
        mine = self.kept["retweets"].setdefault(self.kept["username"], [])
        if tweet_id in mine:
            return {"retweet_status": "Already retweeted"}
        mine.append(tweet_id)
        return {"retweet_status": "Successfully retweeted"}

    def on_comment(self, tweet_id: int, comment_content: str) -> State:
        if refused := self._refused(tweet_id):
            return refused
        comment = {"username": self.kept["username"], "content": comment_content}
        self.kept["comments"].setdefault(str(tweet_id), []).append(comment)
        return {"comment_status": "Comment added successfully"}

    def on_mention(self, tweet_id: int, mentioned_usernames: list[str]) -> State:
        if str(tweet_id) not in self.kept["tweets"]:
            return error(f"Tweet {tweet_id} was not found.")
        self.kept["tweets"][str(tweet_id)]["mentions"].extend(mentioned_usernames)
        return {"mention_status": "Users mentioned successfully"}

    def on_follow_user(self, username_to_follow: str) -> State:
        if not self.kept["authenticated"]:
            return error(_LOGGED_OUT)
        new = username_to_follow not in self.kept["following_list"]
        if new:
            self.kept["following_list"].append(username_to_follow)
        return {"follow_status": new}

    def on_unfollow_user(self, username_to_unfollow: str) -> State:
        if not self.kept["authenticated"]:
            return error(_LOGGED_OUT)
        known = username_to_unfollow in self.kept["following_list"]
        if known:
            self.kept["following_list"].remove(username_to_unfollow)
        return {"unfollow_status": known}

    def on_list_all_following(self) -> State:
        following = {"following_list": self.kept["following_list"]}
        return following if self.kept["authenticated"] else error(_LOGGED_OUT)

    def on_get_tweet(self, tweet_id: int) -> State:
        found: State | None = self.kept["tweets"].get(str(tweet_id))
        return error(f"Tweet {tweet_id} was not found.") if found is None else found

    def on_get_user_tweets(self, username: str) -> list[State]:
        return [post for post in self.kept["tweets"].values() if post["username"] == username]

    def on_search_tweets(self, keyword: str) -> list[State]:
        word = keyword.lower()
        posts = self.kept["tweets"].values()
        return [post for post in posts if word in post["content"].lower() or word in map(str.lower, post["tags"])]

    def on_get_tweet_comments(self, tweet_id: int) -> Any:
        if str(tweet_id) not in self.kept["tweets"]:
            return error(f"Tweet {tweet_id} was not found.")
        return self.kept["comments"].get(str(tweet_id), [])

    def on_get_user_stats(self, username: str) -> State:
        return {
            "tweet_count": len(self.on_get_user_tweets(username)),
            "following_count": len(self.kept["following_list"]) if username == self.kept["username"] else 0,
            "retweet_count": len(self.kept["retweets"].get(username, [])),
        }

    def _refused(self, tweet_id: int) -> State | None:
        if not self.kept["authenticated"]:
            return error(_LOGGED_OUT)
        return None if str(tweet_id) in self.kept["tweets"] else error(f"Tweet {tweet_id} was not found.")


def _receiver(message: Mapping[str, str]) -> tuple[str, str]:
    return next(iter(message.items()))
