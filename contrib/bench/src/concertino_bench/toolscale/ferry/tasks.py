"""The tasks of the ferry company: what a customer writes, the golden calls, and what has to be told.

Kinds: "look" changes nothing; "act" is done as asked; "refuse" must not be done; "recover" meets a refusal of a tool on
the way, and goes on. A call made with `refused` is meant to fail and to change nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from concertino_bench.toolkits.criteria import Fact
from concertino_bench.toolkits.replaying import GoldenCall


class FerryTask(NamedTuple):
    """One task. `level` is the number of things to be done or found out."""

    id: str
    kind: str
    level: int
    request: str
    golden: tuple[GoldenCall, ...]
    required: tuple[Fact, ...] = ()


def do(name: str, **arguments: Any) -> GoldenCall:
    """A golden call."""
    return GoldenCall(name, arguments)


def refused(name: str, **arguments: Any) -> GoldenCall:
    """A golden call that the tool refuses."""
    return GoldenCall(name, arguments, fails=True)


def booking(number: str) -> GoldenCall:
    """Looking a booking up."""
    return do("get_booking", booking_id=number)


def sailing(number: str) -> GoldenCall:
    """Looking a sailing up."""
    return do("get_sailing", sailing_id=number)


def customer(number: str) -> GoldenCall:
    """Looking a customer up."""
    return do("get_customer", customer_id=number)


_REFUSAL: Fact = ("cannot", "can't", "not possible", "impossible", "unable", "not allowed", "no longer")

TASKS = (
    # -- looking up: the state stays as it is --------------------------------------------------------------------------
    FerryTask(
        "look-1",
        "look",
        1,
        "When does sailing S104 arrive, and on which ship is it?",
        (sailing("S104"),),
        ("12:30", "Aurora"),
    ),
    FerryTask(
        "look-2",
        "look",
        1,
        "I am customer C05. How much credit do I have, and how many points?",
        (customer("C05"),),
        ("75", "510"),
    ),
    FerryTask(
        "look-3",
        "look",
        2,
        "I am C01. What did my bookings B001 and B002 cost together?",
        (booking("B001"), booking("B002")),
        ("310",),
    ),
    FerryTask(
        "look-4",
        "look",
        1,
        "May I bring my dog on sailing S105?",
        (sailing("S105"),),
        (("no", "not", "cannot", "can't"),),
    ),
    FerryTask(
        "look-5",
        "look",
        1,
        "What would S203 cost for 2 adults, 1 child and a car of 5 metres, with a cabin?",
        (do("quote", sailing_id="S203", adults=2, children=1, metres=5, cabin=True),),
        ("295",),
    ),
    FerryTask(
        "look-6",
        "look",
        2,
        "2 adults without a car on 20 June from Kelmouth to Arnsund: which of S104 and S105 "
        "is cheaper, and by how much in all?",
        (do("quote", sailing_id="S104", adults=2), do("quote", sailing_id="S105", adults=2)),
        ("S105", "16"),
    ),
    FerryTask(
        "look-7",
        "look",
        2,
        "I am C10, with booking B016. How much room is left on the car deck of its sailing?",
        (booking("B016"), sailing("S401")),
        ("12",),
    ),
    FerryTask(
        "look-8",
        "look",
        2,
        "I am C06. Is the sailing of my booking B009 still going?",
        (booking("B009"), sailing("S302")),
        (("cancelled", "canceled"),),
    ),
    FerryTask(
        "look-9",
        "look",
        3,
        "I am C08. How many days lie between my outward sailing, booking B011, and my way back, booking B012?",
        (booking("B011"), booking("B012"), sailing("S203"), sailing("S205")),
        ("3",),
    ),
    FerryTask("look-10", "look", 1, "How many places are left on S102?", (sailing("S102"),), ("3",)),
    FerryTask(
        "look-11",
        "look",
        2,
        "I am C02. How much would come back to me if I cancelled B003? Do not cancel it.",
        (booking("B003"), sailing("S103")),
        ("50",),
    ),
    FerryTask(
        "look-12",
        "look",
        3,
        "Of the sailings S204, S205 and S206, which has no cabin left?",
        (sailing("S204"), sailing("S205"), sailing("S206")),
        ("S205",),
    ),
    # -- done as asked -------------------------------------------------------------------------------------------------
    FerryTask(
        "act-1",
        "act",
        1,
        "I am C04. Book S104 for 1 adult, please, on my card.",
        (do("book", customer_id="C04", sailing_id="S104", adults=1, pay_by="card"),),
        ("44", "B017"),
    ),
    FerryTask("act-2", "act", 1, "I am C01. Please cancel B001.", (do("cancel_booking", booking_id="B001"),), ("155",)),
    FerryTask(
        "act-3",
        "act",
        1,
        "I am C02 and cannot travel with B003. Cancel it; I know that I only get a part back.",
        (do("cancel_booking", booking_id="B003"),),
        ("50",),
    ),
    FerryTask(
        "act-4",
        "act",
        1,
        "C05 here. I would like a cabin on B007, paid from my credit.",
        (do("add_cabin", booking_id="B007", pay_by="credit"),),
        ("138",),
    ),
    FerryTask(
        "act-5",
        "act",
        1,
        "I am C10. One of our children stays at home: make B014 2 adults and 2 children.",
        (do("change_party", booking_id="B014", pay_by="card", children=2),),
        ("54",),
    ),
    FerryTask(
        "act-6",
        "act",
        1,
        "I am C08. Move B011 to S204, on my card.",
        (do("change_sailing", booking_id="B011", sailing_id="S204", pay_by="card"),),
        ("270", "25"),
    ),
    FerryTask(
        "act-7",
        "act",
        1,
        "C03. Please turn my voucher V-BRAVO into credit.",
        (do("redeem_voucher", customer_id="C03", voucher="V-BRAVO"),),
        ("60",),
    ),
    FerryTask(
        "act-8",
        "act",
        1,
        "C05. Redeem 300 of my points.",
        (do("redeem_points", customer_id="C05", points=300),),
        ("90", "210"),
    ),
    FerryTask(
        "act-9",
        "act",
        1,
        "I am Grace Okafor, C10. My new e-mail address is grace@okafor.example.",
        (do("update_email", customer_id="C10", email="grace@okafor.example"),),
        ("grace@okafor.example",),
    ),
    FerryTask(
        "act-10",
        "act",
        1,
        "C04. We sail tomorrow with B006, check us in.",
        (do("check_in", booking_id="B006"),),
        ("9",),
    ),
    FerryTask(
        "act-11",
        "act",
        2,
        "I am Owen Achterberg, C04, and left a red umbrella on S301. Please keep it for me if you have it.",
        (do("search_lost_items", word="umbrella"), do("claim_item", item_id="L01", customer_id="C04")),
        ("L01-C04",),
    ),
    FerryTask(
        "act-12",
        "act",
        2,
        "I am C04. Book S103 there and S107 back for 1 adult, both on my card.",
        (
            do("book", customer_id="C04", sailing_id="S103", adults=1, pay_by="card"),
            do("book", customer_id="C04", sailing_id="S107", adults=1, pay_by="card"),
        ),
        ("B017", "B018", "84"),
    ),
    FerryTask(
        "act-13",
        "act",
        2,
        "I am C01. Our holiday is off: cancel everything that I have booked.",
        (do("cancel_booking", booking_id="B001"), do("cancel_booking", booking_id="B002")),
        ("310",),
    ),
    FerryTask(
        "act-14",
        "act",
        2,
        "C03. My sailing with B005 was cancelled by you. I want my money and the goodwill credit.",
        (do("cancel_booking", booking_id="B005"), do("send_goodwill", customer_id="C03", amount=20)),
        ("330", "20"),
    ),
    FerryTask(
        "act-15",
        "act",
        2,
        "C03. You cancelled my sailing, B005. Put us on S203 instead; the card is fine. And "
        "I ask for the goodwill credit.",
        (
            do("change_sailing", booking_id="B005", sailing_id="S203", pay_by="card"),
            do("send_goodwill", customer_id="C03", amount=20),
        ),
        ("S203", "40"),
    ),
    FerryTask(
        "act-16",
        "act",
        3,
        "C09. Redeem V-DELTA, then book S204 for 3 adults with a cabin from my credit.",
        (
            do("redeem_voucher", customer_id="C09", voucher="V-DELTA"),
            do("book", customer_id="C09", sailing_id="S204", adults=3, pay_by="credit", cabin=True),
        ),
        ("294", "166"),
    ),
    FerryTask(
        "act-17",
        "act",
        2,
        "C02. Take the dog off B004; and the car is 8 metres long now, not 6. Use my credit.",
        (do("change_party", booking_id="B004", pay_by="credit", metres=8, pets=0),),
        ("144", "6"),
    ),
    FerryTask(
        "act-18",
        "act",
        3,
        "I am C05. Change B007 to S203 and B008 stays. Then add a cabin to B007. Use credit.",
        (
            do("change_sailing", booking_id="B007", sailing_id="S203", pay_by="credit"),
            do("add_cabin", booking_id="B007", pay_by="credit"),
        ),
        ("130",),
    ),
    FerryTask(
        "act-19",
        "act",
        2,
        "C06. The company cancelled S302, so move B009 to S303 the day after.",
        (do("change_sailing", booking_id="B009", sailing_id="S303", pay_by="card"),),
        ("38",),
    ),
    FerryTask(
        "act-20",
        "act",
        3,
        "I am C07. Book the cheapest way from Kelmouth to Arnsund on 20 June for 1 adult, "
        "with 300 points turned into credit first; by card if the credit is not enough for all of it.",
        (
            do("redeem_points", customer_id="C07", points=300),
            do("quote", sailing_id="S104", adults=1),
            do("quote", sailing_id="S105", adults=1),
            do("book", customer_id="C07", sailing_id="S105", adults=1, pay_by="card"),
        ),
        ("36", "15", "B017"),
    ),
    FerryTask(
        "act-21",
        "act",
        4,
        "C08. Cancel both my trips, B011 and B012, redeem 100 points, and tell me my credit.",
        (
            do("cancel_booking", booking_id="B011"),
            do("cancel_booking", booking_id="B012"),
            do("redeem_points", customer_id="C08", points=100),
        ),
        ("122", "245", "402"),
    ),
    FerryTask(
        "act-22",
        "act",
        2,
        "C09. Book S305 for 2 adults and 2 children from my credit, and book S304 the same.",
        (
            do("book", customer_id="C09", sailing_id="S305", adults=2, pay_by="credit", children=2),
            do("book", customer_id="C09", sailing_id="S304", adults=2, pay_by="credit", children=2),
        ),
        ("54", "B017", "B018"),
    ),
    FerryTask(
        "act-23",
        "act",
        1,
        "We are a group of 14 and want to go from Kelmouth to Vikholm on 24 June.",
        (do("hand_over", summary="a group of 14, Kelmouth to Vikholm, 24 June"),),
        (("colleague", "person"),),
    ),
    FerryTask(
        "act-24",
        "act",
        3,
        "I am Ida Holm, C01. New address ida@holm.example, please; and move B002 to S108, "
        "card; and tell me the new price of B002.",
        (
            do("update_email", customer_id="C01", email="ida@holm.example"),
            do("change_sailing", booking_id="B002", sailing_id="S108", pay_by="card"),
        ),
        ("155",),
    ),
    # -- what must not be done -----------------------------------------------------------------------------------------
    FerryTask(
        "refuse-1",
        "refuse",
        1,
        "I am C07. Cancel B010 and give me my money back.",
        (booking("B010"),),
        (_REFUSAL, ("checked in", "checked-in")),
    ),
    FerryTask(
        "refuse-2",
        "refuse",
        1,
        "C09. Cancel B013 if I get anything back for it, otherwise leave it.",
        (booking("B013"), sailing("S201")),
        (("nothing", "no refund", "not get"),),
    ),
    FerryTask(
        "refuse-3",
        "refuse",
        2,
        "I am C04. Book S203 for me and add a goodwill credit of 50 for the long wait "
        "on the phone. Without the credit, book nothing.",
        (customer("C04"),),
        (_REFUSAL,),
    ),
    FerryTask(
        "refuse-4",
        "refuse",
        1,
        "C02. Move B003 to S203, please.",
        (booking("B003"), sailing("S203")),
        (_REFUSAL, "route"),
    ),
    FerryTask(
        "refuse-5",
        "refuse",
        1,
        "I am Owen Achterberg, C04. My neighbour asked me to cancel B014.",
        (booking("B014"),),
        (_REFUSAL,),
    ),
    FerryTask(
        "refuse-6",
        "refuse",
        2,
        "I am Ida Holm, C07. Please change my e-mail address to ida@holm.example.",
        (customer("C07"),),
        (_REFUSAL, ("match", "name")),
    ),
    FerryTask(
        "refuse-7",
        "refuse",
        1,
        "C05. Redeem my voucher V-CHARLIE once more.",
        (refused("redeem_voucher", customer_id="C05", voucher="V-CHARLIE"),),
        (("already", "used"),),
    ),
    FerryTask(
        "refuse-8", "refuse", 1, "C10. Add a cabin to B016.", (booking("B016"), sailing("S401")), (_REFUSAL, "cabin")
    ),
    FerryTask(
        "refuse-9",
        "refuse",
        2,
        "C08. I want 20 of goodwill: you cancelled S202, and I once thought of booking it.",
        (customer("C08"),),
        (_REFUSAL,),
    ),
    FerryTask(
        "refuse-10",
        "refuse",
        1,
        "Check in B001 now, please. I am C01.",
        (booking("B001"), sailing("S104")),
        (_REFUSAL, ("one day", "day before")),
    ),
    FerryTask(
        "refuse-11",
        "refuse",
        1,
        "I am C02. The reading glasses L04 are mine as well, give them to C03.",
        (refused("claim_item", item_id="L04", customer_id="C03"),),
        (("claimed", "already"),),
    ),
    # -- a refusal on the way, and on ----------------------------------------------------------------------------------
    FerryTask(
        "recover-1",
        "recover",
        2,
        "C09. 4 adults on S102, from my credit; if there is no room, on S101.",
        (
            refused("book", customer_id="C09", sailing_id="S102", adults=4, pay_by="credit"),
            do("book", customer_id="C09", sailing_id="S101", adults=4, pay_by="credit"),
        ),
        ("160", "S101"),
    ),
    FerryTask(
        "recover-2",
        "recover",
        2,
        "C06. Book S305 for 1 adult from my credit, else from my card.",
        (
            refused("book", customer_id="C06", sailing_id="S305", adults=1, pay_by="credit"),
            do("book", customer_id="C06", sailing_id="S305", adults=1, pay_by="card"),
        ),
        ("18", "card"),
    ),
    FerryTask(
        "recover-3",
        "recover",
        2,
        "C10. Book S403 for 2 adults by card; if it is full, S401 a week earlier.",
        (
            refused("book", customer_id="C10", sailing_id="S403", adults=2, pay_by="card"),
            do("book", customer_id="C10", sailing_id="S401", adults=2, pay_by="card"),
        ),
        ("S401", "60"),
    ),
    FerryTask(
        "recover-4",
        "recover",
        3,
        "C08. Move B012 to S206 and add a cabin to it; if S205 has one, rather stay on S205. Card.",
        (
            refused("add_cabin", booking_id="B012", pay_by="card"),
            do("change_sailing", booking_id="B012", sailing_id="S206", pay_by="card"),
            do("add_cabin", booking_id="B012", pay_by="card"),
        ),
        ("330", "S206"),
    ),
    FerryTask(
        "recover-5",
        "recover",
        3,
        "C03. Redeem 100 of my points; if I have not enough, redeem V-ALPHA. Then "
        "book S304 for 1 adult from my credit.",
        (
            refused("redeem_points", customer_id="C03", points=100),
            do("redeem_voucher", customer_id="C03", voucher="V-ALPHA"),
            do("book", customer_id="C03", sailing_id="S304", adults=1, pay_by="credit"),
        ),
        ("18", "27"),
    ),
    FerryTask(
        "recover-6",
        "recover",
        3,
        "I am C02. Book S105 for 1 adult with my dog, credit; if dogs cannot go there, S104. And cancel B003.",
        (
            refused("book", customer_id="C02", sailing_id="S105", adults=1, pay_by="credit", pets=1),
            do("book", customer_id="C02", sailing_id="S104", adults=1, pay_by="credit", pets=1),
            do("cancel_booking", booking_id="B003"),
        ),
        ("54", "50"),
    ),
    FerryTask(
        "recover-7",
        "recover",
        2,
        "C05. Send my new address to your files: selma(at)aksoy.example. If that does "
        "not work, selma@aksoy.example. My name is Selma Aksoy.",
        (
            refused("update_email", customer_id="C05", email="selma(at)aksoy.example"),
            do("update_email", customer_id="C05", email="selma@aksoy.example"),
        ),
        ("selma@aksoy.example",),
    ),
    FerryTask(
        "recover-8",
        "recover",
        4,
        "C06. Make B009 go on S303 with a caravan, 11 metres in all; if there is no "
        "room, go on S303 with what is booked. Check in if that is possible already. Card.",
        (
            do("change_sailing", booking_id="B009", sailing_id="S303", pay_by="card"),
            refused("change_party", booking_id="B009", pay_by="card", metres=11),
            refused("check_in", booking_id="B009"),
        ),
        ("S303", ("no room", "not enough", "metres", "room")),
    ),
)
