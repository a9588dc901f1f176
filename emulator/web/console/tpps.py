"""TPPs of the sandbox CA, and a form to issue a certificate."""

from __future__ import annotations

from emulator.api.messages import Response
from emulator.web.console.control import ControlRefused
from emulator.web.console.screen import Screen

ROLES = (("PISP", "Payments and baskets"), ("AISP", "Accounts and consents"))
FLAWS = (
    ("", "None: a good certificate"),
    ("expired", "Expired"),
    ("not-yet-valid", "Not valid yet"),
    ("unknown-ca", "From a CA that nobody knows"),
    ("no-roles", "PSD2 statement without roles"),
    ("leading-zero-serial", "Serial number with a leading zero"),
    ("special-characters", "Special characters in the name"),
)


def listing(screen: Screen, refused: ControlRefused | None = None) -> Response:
    """Every TPP that was issued, with the form for a new one."""
    return screen.page(
        "tpps",
        refused=refused,
        tpps=screen.control.every("tpps"),
        roles=ROLES,
        flaws=FLAWS,
    )


def issue(screen: Screen) -> Response:
    """A new TPP; certificate and key are shown once, on the answer itself."""
    form = screen.form
    wish = {"name": form.get("name"), "roles": form.all("roles"), "replace": "replace" in form}
    for member in ("organizationIdentifier", "flaw"):
        if form.get(member):
            wish[member] = form.get(member)
    try:
        issued = screen.control.ask("POST", "tpps", wish)
    except ControlRefused as refused:
        return listing(screen, refused)
    return screen.page("tpp_issued", tpp=issued, flaw=form.get("flaw"), flaws=dict(FLAWS))
