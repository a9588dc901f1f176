"""What the conformance report costs: judging 100,000 requests, and a request with it off beside one with it on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from emulator import assemble
from emulator.api.messages import Fields, Request, Response
from emulator.settings import ServeSettings
from tests.bench.customers import Customer
from tests.bench.harness import Row, bank, beside, rate
from tests.known_state import SEPA

REQUESTS = 100_000
JUDGED = 6000  # in one piece, below the number that may wait
GOAL = 5.0  # seconds of processor time
TRANSACTIONS = 100  # on a page
ADDRESS = "http://127.0.0.1:8080"


def measure(rounds: int, requests: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder:
        seconds = judging(Path(folder))
        yield Row("conformance", f"{REQUESTS:,} requests judged", seconds, "s", at_most=GOAL)
    with TemporaryDirectory() as on, TemporaryDirectory() as off, bank(Path(on)) as judged, bank(Path(off)) as ours:
        path = f"{SEPA}/{{}}/status"
        first, second = Customer(judged.port, Path(on)), Customer(ours.port, Path(off))
        second.control("PUT", "settings", {"conformance": False})
        one, other = first.a_payment(), second.a_payment()
        pairs = {
            "create": beside(
                lambda count: rate(ours, second.creates(count), expect=201),
                lambda count: rate(judged, first.creates(count), expect=201),
                rounds,
                requests,
            ),
            "status": beside(
                lambda count: rate(ours, second.gets(path.format(other), count), expect=200),
                lambda count: rate(judged, first.gets(path.format(one), count), expect=200),
                rounds,
                requests,
            ),
        }
    for name, pair in pairs.items():
        yield Row("conformance", f"signed {name}, not judged beside judged", pair.ratio, "x")


def judging(state: Path) -> float:
    """Processor time in which 100,000 requests of a journey are judged, without the time in which they are answered."""
    requests = journey(state)
    application = assemble.assemble(ServeSettings(state=state, port=8080))
    service = application.default
    service.observer.report()  # reads the files of the checks, once for any number of requests
    took = 0.0
    for begin in range(0, len(requests), JUDGED):
        for request in requests[begin : begin + JUDGED]:
            answer = service.handle(request)
            if not isinstance(answer, Response) or answer.status >= 300:
                raise RuntimeError(answer)
        began = process_time()
        service.observer.judge_some(2 * JUDGED)
        took += process_time() - began
    application.close()
    return took / len(requests) * REQUESTS


def journey(state: Path) -> Sequence[Request]:
    """Signed requests of one TPP for the bank in `state`: a payment and its status, accounts and transactions."""
    with bank(state) as server:
        plan = {"customers": 1, "accountsPerCustomer": 1, "transactionsPerAccount": 2 * TRANSACTIONS, "seed": 1}
        person = Customer(server.port, state).control("POST", "generate", plan)["customers"][0]
        customer = Customer(server.port, state, national_id=person["nationalId"])
        account = f"/v1/accounts/{customer.account['id']}"
        status = [f"{SEPA}/{customer.a_payment()}/status" for _ in range(JUDGED // 5)]
        sent: list[bytes] = []
        for number, path in enumerate(status):
            sent += customer.creates(1)
            sent += customer.gets(path, 2)
            sent += customer.gets((account, "/v1/accounts")[number % 2], 1)
            sent += customer.gets(f"{account}/transactions?limit={TRANSACTIONS}", 1)
    return [_request(request) for request in sent]


def _request(sent: bytes) -> Request:
    head, _, body = sent.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, target, _ = first.split(" ")
    headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
    return Request(method, target, Fields.of(headers), body, ADDRESS)
