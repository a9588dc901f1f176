"""One journey with the generated Python client: `journey.py PROXY BANK`; prints the status of the payment at its end.

The client knows nothing of signatures: the proxy signs. Sessions and SCA go through the control interface.
"""

from __future__ import annotations

import json
import sys
import urllib.request

import openapi_client as generated

PERSON = "14888520059"
SEPA = {
    "instructedAmount": {"amount": "12.50", "currency": "EUR"},
    "creditorName": "Librairie Exemple",
    "creditorAccount": {"iban": "FR8199999000010123456789A00", "currency": "EUR"},
    "debtorAccount": {"iban": "NO8599901000014", "currency": "NOK"},
}


def control(bank: str, path: str, body: dict[str, object]) -> dict[str, str]:
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{bank}/_emulator/{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer_body: dict[str, str] = json.load(answer)
    return answer_body


def main(proxy: str, bank: str) -> None:
    session = control(bank, "sessions", {"tpp": "demo", "nationalId": PERSON})
    who = {"psu_id": session["psuId"], "tpp_session_id": session["tppSessionId"]}
    client = generated.ApiClient(generated.Configuration(host=proxy))
    accounts = generated.AccountsApi(client).get_accounts(**who)
    assert any(account.iban == SEPA["debtorAccount"]["iban"] for account in accounts.accounts)
    payments = generated.PaymentsApi(client)
    created = payments.create_payment_sepa_credit_transfers(generated.SepaTransfer.from_dict(SEPA), **who)
    control(bank, f"sca/{created.payment_id}/approve", {})
    control(bank, "clock/advance", {"by": "10s"})
    status = payments.get_payment_status_sepa_credit_transfers(created.payment_id, **who)
    print(status.transaction_status)


main(*sys.argv[1:])
