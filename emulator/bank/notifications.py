"""Status notifications: their content, order and delivery (notifications.md).

A subscription is the address at which a TPP wants to be notified of one payment, basket or consent. A change of status
queues a notification, which is a document written in the same change: if the change is undone, so is the notification,
and if the change is stored, the notification is not lost. The sender (`assemble/notifier.py`) claims due notifications,
which changes their documents, and reports the outcome of each.

The notifications of one target form a lane: only the first unanswered one is due, so that they arrive in order. A
notification that is not answered with 2xx is sent again after an increasing interval of bank time (GAPS), and finally
fails. The intervals are also in notifications.md#order-and-repetition and `tests/notifications/test_delivery.py` (where
several tests wait for the first), and `RETRY` in `tests/postgres/pushes.py` is longer than the first ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from emulator.bank.bank import Bank
from emulator.bank.clock import date_time, later
from emulator.bank.documents import DeliveryAttempt, Notification, Sca, Subscription
from emulator.bank.kinds import AUTHORISATION, CONSENT, NOTIFICATION, PAYMENT, SCA, SUBSCRIPTION
from emulator.bank.scheme.transitions import FINAL

CONTENTS = ("SCA", "PROCESS", "LAST")  # Berlin Group 1.3.11, TPP-Notification-Content-Preferred
DEFAULT_CONTENT = ("PROCESS",)  # assumed, if the TPP has no preference
EFFECTS = ("late", "twice", "reordered", "dropped", "forged")
# between the attempts to deliver one; the manual names them: notifications.md#order-and-repetition
GAPS = tuple(
    timedelta(seconds=seconds) for seconds in (10, 60, 5 * 60, 30 * 60, 2 * 3600, 6 * 3600, 12 * 3600, 24 * 3600)
)
MOST_FINISHED = 1_000  # delivered, failed or dropped notifications that stay visible
PASSING_KEPT = 5_000  # subscriptions for consents that are not granted yet
HELD = timedelta(hours=1)  # how long a notification waits for the next one to be sent first (effect reordered)
LOOKED_AT = 512  # due notifications that are read together when some are claimed

Resource = Literal["payment", "basket", "consent"]
_LAST: Mapping[Resource, frozenset[str]] = {
    "payment": frozenset(FINAL),
    "basket": frozenset({"ACTC", "RJCT"}),
    "consent": frozenset({"rejected", "revokedByPsu", "terminatedByTpp", "expired"}),
}
_FORGED: Mapping[Resource, str] = {"payment": "ACSC", "basket": "ACTC", "consent": "valid"}


def subscribe(
    bank: Bank,
    target: str,
    resource: Resource,
    *,
    tpp: str,
    uri: str,
    content: Iterable[str],
    script: tuple[str, float] | None = None,
    traceparent: str | None = None,
) -> None:
    """Notify `tpp` at `uri` of the target's changes; another subscription to the same target replaces the address.

    `script`: an effect of EFFECTS, with the seconds of `late`. `traceparent`: sent with each notification.
    """
    earlier = bank.documents.get(SUBSCRIPTION, target)
    subscription: Subscription = {
        "id": target,
        "resource": resource,
        "tpp": tpp,
        "uri": uri,
        "content": [name for name in CONTENTS if name in content],
        "queued": 0 if earlier is None else earlier["queued"],
    }
    if script is not None:
        subscription["effect"], subscription["delay"] = script
    elif earlier is not None and "effect" in earlier:
        subscription["effect"], subscription["delay"] = earlier["effect"], earlier["delay"]
    if traceparent is not None:
        subscription["traceparent"] = traceparent
    if resource == "consent":
        bank.make_room(SUBSCRIPTION, PASSING_KEPT, passing="yes")
        subscription["passing"] = "yes"
    bank.documents.put(SUBSCRIPTION, subscription)
    if script is not None and script[0] == "forged":
        _queue(bank, subscription, _body(resource, target, _FORGED[resource]), forged=True)


def status_changed(bank: Bank, target: str, status: str) -> None:
    """Queue a notification of the target's new status, if the setting is on and a subscriber wants it."""
    subscription = bank.documents.get(SUBSCRIPTION, target) if bank.settings.notifications else None
    if subscription is None:
        return
    resource = subscription["resource"]
    subscription.pop("passing", None)
    wanted = subscription["content"]
    if "PROCESS" in wanted or ("LAST" in wanted and status in _LAST[resource]):
        _queue(bank, subscription, _body(resource, target, status))


def _body(resource: Resource, target: str, status: str) -> dict[str, str]:
    member = "consentStatus" if resource == "consent" else "transactionStatus"
    return {f"{resource}Id": target, member: status}


def sca_ended(bank: Bank, sca: Sca) -> None:
    """Queue a notification of the new scaStatus, if the setting is on and a subscriber of the SCA's target wants it."""
    target = sca.get("target", "")
    subscription = bank.documents.get(SUBSCRIPTION, target) if bank.settings.notifications else None
    if subscription is None:
        return
    if "SCA" in subscription["content"]:
        body = {f"{subscription['resource']}Id": target}
        for authorisation in bank.documents.find(AUTHORISATION, target=target):
            if authorisation["sca"] == sca["id"]:
                body["authorisationId"] = authorisation["id"]
        _queue(bank, subscription, {**body, "scaStatus": sca["status"]})
    if sca["purpose"] == "consent" and sca["status"] == "failed":
        status_changed(bank, target, "expired" if "timedOut" in sca else "rejected")


def _queue(bank: Bank, subscription: Subscription, body: dict[str, str], *, forged: bool = False) -> None:
    now, target = bank.clock.stamp(), subscription["id"]
    effect = None if forged else subscription.get("effect")
    subscription["queued"] += 1
    bank.documents.put(SUBSCRIPTION, subscription)
    notification: Notification = {
        "id": bank.ids.uuid(),
        "target": target,
        "tpp": subscription["tpp"],
        "uri": subscription["uri"],
        "body": body,
        "place": subscription["queued"],
        "created": now,
        "state": "waiting",
        "deliveries": [],
        "lane": target,
    }
    if "traceparent" in subscription:
        notification["traceparent"] = subscription["traceparent"]
    if forged:
        notification["forged"] = "yes"
    if effect == "dropped":
        _finish(bank, notification, "dropped")
        return
    if effect == "late":
        notification["notBefore"] = later(now, timedelta(seconds=subscription.get("delay", 0.0)))
    elif effect == "twice":
        notification["copies"] = 2
    elif effect == "reordered":
        _overtake(bank, notification)
    _store(bank, notification)
    _schedule(bank, target)


def _overtake(bank: Bank, notification: Notification) -> None:
    """Swap notifications in pairs: hold the first of a pair until the second one is sent before it."""
    lane = _lane(bank, notification["target"])
    held = next((one for one in lane if "held" in one and one["state"] == "waiting" and not one["deliveries"]), None)
    if held is None:
        notification["held"] = "yes"
        notification["notBefore"] = later(notification["created"], HELD)
        return
    del held["held"], held["notBefore"]
    held.pop("due", None)
    held["place"], notification["place"] = notification["place"], held["place"]
    bank.documents.put(NOTIFICATION, held)


def _lane(bank: Bank, target: str) -> list[Notification]:
    """The unanswered notifications of a target, in the order in which they are sent."""
    return sorted(bank.documents.find(NOTIFICATION, lane=target), key=lambda one: one["place"])


def _schedule(bank: Bank, target: str) -> None:
    """Make the first notification of a lane due, unless it is being sent or due already."""
    lane = _lane(bank, target)
    if lane and lane[0]["state"] == "waiting" and "due" not in lane[0]:
        now = bank.clock.stamp()
        lane[0]["due"] = max(now, lane[0].get("notBefore", now))
        bank.documents.put(NOTIFICATION, lane[0])


def _finish(bank: Bank, notification: Notification, state: Literal["delivered", "failed", "dropped"]) -> None:
    """Set the final state of a notification, and evict the oldest finished one if there are too many."""
    notification["state"] = state
    notification["done"] = "yes"
    notification.pop("lane", None)
    bank.make_room(NOTIFICATION, MOST_FINISHED, done="yes")
    _store(bank, notification)


def _store(bank: Bank, notification: Notification) -> None:
    bank.documents.put(NOTIFICATION, notification)
    bank.publish(
        {
            "type": "notification",
            "id": notification["id"],
            "status": notification["state"],
            "target": notification["target"],
            "tpp": notification["tpp"],
            "at": bank.clock.stamp(),
        }
    )


# Sending


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The result of an attempt: the HTTP status of the receiver's answer, or why there was none."""

    status: int | None = None
    error: str | None = None

    @property
    def delivered(self) -> bool:
        """Whether the receiver has accepted the notification."""
        return self.status is not None and 200 <= self.status < 300


def next_due(bank: Bank) -> str | None:
    """When the next notification is due, as a stamp; None if there is none or the setting is off."""
    if not bank.settings.notifications:
        return None
    due: Any = bank.documents.first_key("due", NOTIFICATION)
    return None if due is None else str(due)


def are_to_come(bank: Bank) -> bool:
    """Whether notifications wait or may follow: one is unanswered, or there are a subscription and a due step."""
    if not bank.settings.notifications:
        return False
    documents = bank.documents
    unanswered = documents.count(NOTIFICATION) > documents.count(NOTIFICATION, done="yes")
    return unanswered or (
        documents.count(SUBSCRIPTION) > 0 and documents.first_key("due", PAYMENT, SCA, CONSENT) is not None
    )


class Parties(NamedTuple):
    """From whom to whom a notification goes: the TPP, and host and port of its address."""

    tpp: str
    receiver: str


def parties_of(notification: Notification) -> Parties:
    return Parties(notification["tpp"], urlsplit(notification["uri"]).netloc.lower())


def claim(bank: Bank, *, sending: Iterable[Parties] = (), most: int, each: int, passed: int = 0) -> list[Notification]:
    """Claim due notifications for sending: at most `most`, `each` to one receiver, and twice as many of one TPP.

    `sending`: the parties of those that are already being sent. LOOKED_AT are read, behind the first `passed`.
    """
    busy = list(sending)
    tpps, receivers = Counter(one.tpp for one in busy), Counter(one.receiver for one in busy)
    claimed: list[Notification] = []
    now = bank.clock.stamp()
    for notification in bank.documents.range(NOTIFICATION, "due", high=now, offset=passed, limit=LOOKED_AT):
        tpp, receiver = parties_of(notification)
        if len(claimed) >= most:
            break
        if receivers[receiver] >= each or tpps[tpp] >= 2 * each:
            continue
        tpps[tpp] += 1
        receivers[receiver] += 1
        del notification["due"]
        notification["state"] = "sending"
        _store(bank, notification)
        claimed.append(notification)
    return claimed


def number_due(bank: Bank) -> int:
    return bank.documents.range_count(NOTIFICATION, "due", high=bank.clock.stamp())


def is_claimed(bank: Bank, identity: str) -> bool:
    """Whether a notification may be sent, because its claim is stored."""
    notification = bank.documents.get(NOTIFICATION, identity)
    return notification is not None and notification["state"] == "sending"


def release_abandoned(bank: Bank, *, sending: Container[str]) -> None:
    """Let claimed notifications that nobody sends be sent again, as their sender was killed.

    `sending`: those that are being sent by this process. No other one has the bank.
    """
    for notification in bank.documents.find(NOTIFICATION, state="sending"):
        if notification["id"] not in sending:
            _wait(bank, notification, bank.clock.stamp())


def settle(bank: Bank, identity: str, outcome: DeliveryResult) -> None:
    """Store the result of an attempt, and schedule the next attempt or notification.

    Does nothing if the notification was deleted, or is not being sent.
    """
    notification = bank.documents.get(NOTIFICATION, identity)
    if notification is None or notification["state"] != "sending":
        return
    now = bank.clock.stamp()
    delivery: DeliveryAttempt = {"at": now}
    if outcome.status is not None:
        delivery["status"] = outcome.status
    if outcome.error is not None:
        delivery["error"] = outcome.error
    notification["deliveries"].append(delivery)
    copies = notification.get("copies", 1)
    failures = sum(not 200 <= delivery.get("status", 0) < 300 for delivery in notification["deliveries"])
    if outcome.delivered and copies > 1:
        notification["copies"] = copies - 1
        _wait(bank, notification, now)
    elif not outcome.delivered and failures <= len(GAPS):
        _wait(bank, notification, later(now, GAPS[failures - 1]))
    else:
        _finish(bank, notification, "delivered" if outcome.delivered else "failed")
        _schedule(bank, notification["target"])


def _wait(bank: Bank, notification: Notification, due: str) -> None:
    notification["state"] = "waiting"
    notification["due"] = due
    _store(bank, notification)


def deliver(bank: Bank) -> None:
    """Mark all due notifications as delivered; in a story there is no receiver."""
    while (due := next_due(bank)) is not None and due <= bank.clock.stamp():
        with bank.documents.transaction():
            for notification in claim(bank, most=LOOKED_AT, each=LOOKED_AT):
                settle(bank, notification["id"], DeliveryResult(status=204))


# Views


def view(notification: Notification) -> dict[str, Any]:
    """A notification as the control interface and the console show it."""
    stored: Mapping[str, Any] = notification
    return {
        **{name: stored[name] for name in ("id", "target", "tpp", "uri", "place", "state", "body")},
        "created": date_time(notification["created"]),
        "nextAttempt": date_time(notification["due"]) if "due" in notification else None,
        "forged": "forged" in notification,
        **({"traceparent": notification["traceparent"]} if "traceparent" in notification else {}),
        "deliveries": [{**delivery, "at": date_time(delivery["at"])} for delivery in notification["deliveries"]],
    }


def listing(bank: Bank, *, target: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
    """Notifications, newest first; of one payment, basket or consent, if `target` names it."""
    if target is not None:
        newest = bank.documents.find(NOTIFICATION, target=target, newest_first=True, limit=limit)
    else:
        newest = bank.documents.range(NOTIFICATION, "created", reverse=True, limit=limit)
    return [view(notification) for notification in newest]
