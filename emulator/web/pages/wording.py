"""The words of pages: their texts in Norwegian and English, and how amounts, account numbers and dates are written."""

from __future__ import annotations

from datetime import date, datetime

from emulator.bank.clock import OSLO, moment

NORWEGIAN = "nb"
ENGLISH = "en"
LANGUAGES = (NORWEGIAN, ENGLISH)

_NO_BREAK = "\u00a0"
_MONTHS = {
    NORWEGIAN: ("jan.", "feb.", "mars", "april", "mai", "juni", "juli", "aug.", "sep.", "okt.", "nov.", "des."),
    ENGLISH: ("Jan", "Feb", "March", "April", "May", "June", "July", "Aug", "Sep", "Oct", "Nov", "Dec"),
}


def money(amount: str, currency: str = "", language: str = ENGLISH) -> str:
    """A decimal string grouped by thousands: `1 234,50 NOK` or `1,234.50 NOK`."""
    sign = "−" if amount.startswith("-") else ""
    whole, _, fraction = amount.lstrip("+-").partition(".")
    group, point = (_NO_BREAK, ",") if language == NORWEGIAN else (",", ".")
    groups = []
    while len(whole) > 3:
        groups.append(whole[-3:])
        whole = whole[:-3]
    text = group.join([whole, *reversed(groups)]) + (point + fraction if fraction else "")
    return f"{sign}{text} {currency}" if currency else sign + text


def account_number(number: str) -> str:
    """An account number in groups: `9990 10 00014`, an IBAN in fours, anything else unchanged."""
    plain = number.replace(" ", "")
    if len(plain) == 11 and plain.isdigit():
        return " ".join((plain[:4], plain[4:6], plain[6:]))
    if len(plain) >= 15 and plain[:2].isalpha() and plain[2:4].isdigit():
        return " ".join(plain[at : at + 4] for at in range(0, len(plain), 4))
    return number


def day(iso: str, language: str = ENGLISH) -> str:
    """A date `YYYY-MM-DD` in words: `2. mars 2026` or `2 March 2026`; other text unchanged."""
    try:
        at = date.fromisoformat(iso[:10])
    except ValueError:
        return iso
    return f"{at.day}{'.' if language == NORWEGIAN else ''} {_MONTHS[language][at.month - 1]} {at.year}"


def months(numbers: str, language: str = ENGLISH) -> str:
    """Months by their numbers, `1, 6`, in words: `jan., juni` or `Jan, June`."""
    return ", ".join(_MONTHS[language][int(number) - 1] for number in numbers.split(", "))


def oslo(at: str | datetime) -> str:
    """A moment in the form of the console: Oslo time to the second, `2026-03-02 09:00:00`."""
    return (moment(at) if isinstance(at, str) else at).astimezone(OSLO).strftime("%Y-%m-%d %H:%M:%S")


def moment_in(at: str, language: str = ENGLISH) -> str:
    """A moment in Oslo time and words: `2. mars 2026 kl. 09:00` or `2 March 2026, 09:00`."""
    local = moment(at).astimezone(OSLO)
    return f"{day(local.date().isoformat(), language)}{' kl. ' if language == NORWEGIAN else ', '}{local:%H:%M}"


def abridged(name: str) -> str:
    """The first characters of a long id."""
    return name if len(name) <= 14 else f"{name[:12]}…"


_TONES = {
    "good": ("ACSC", "valid", "finalised", "live", "passed", "pass", "delivered"),
    "busy": ("ACTC", "ACWC", "PDNG", "ACSP", "ACWP", "started", "sending"),
    "waits": ("RCVD", "PATC", "ACCP", "PART", "skipped", "warn", "known", "waiting"),
    "bad": ("RJCT", "failed", "revoked", "terminated", "expired", "fail"),
}
_TONE_OF = {status: tone for tone, statuses in _TONES.items() for status in statuses}


def tone(status: str) -> str:
    """The colour class of a status: good, busy, waits, bad or quiet; for HTTP statuses by their first digit."""
    if len(status) == 3 and status.isdigit():
        return {"2": "good", "3": "quiet", "4": "waits"}.get(status[0], "bad")
    return _TONE_OF.get(status, "quiet")


# Each text in Norwegian and in English.
TEXTS: dict[str, tuple[str, str]] = {
    "skip": ("Til innholdet", "Skip to content"),
    "switch": ("Språk", "Language"),
    "step_of": ("Steg {number} av {count}", "Step {number} of {count}"),
    "asks": ("{tpp} ber deg bekrefte", "{tpp} asks you to confirm"),
    "continue": ("Fortsett", "Continue"),
    "cancel": ("Avbryt", "Cancel"),
    "approve": ("Godkjenn", "Approve"),
    "decline": ("Avvis", "Decline"),
    "identity_title": ("Logg inn", "Log in"),
    "identity_lead": (
        "Oppgi fødselsnummeret ditt, så vet vi hvem du er.",
        "Enter your national identity number, so that we know who you are.",
    ),
    "identity_label": ("Fødselsnummer", "National identity number"),
    "identity_hint": ("11 siffer", "11 digits"),
    "identity_wrong": ("Et fødselsnummer har 11 siffer.", "A national identity number has 11 digits."),
    "method_title": ("Hvordan vil du bekrefte?", "How do you want to confirm?"),
    "method_lead": (
        "Velg en metode. I sandkassen bekreftes alle med ett trykk.",
        "Choose a method. In the sandbox each of them takes one click.",
    ),
    "method_wrong": ("Velg en av metodene.", "Choose one of the methods."),
    "sca_method_ENGANGSKODEAPP_BIOMETRI": ("Kodeapp med biometri", "Code app with biometrics"),
    "sca_method_hint_ENGANGSKODEAPP_BIOMETRI": (
        "Fingeravtrykk eller ansikt i bankens app",
        "Fingerprint or face in the bank's app",
    ),
    "sca_method_HA2": ("Kodebrikke", "Code device"),
    "sca_method_hint_HA2": ("Engangskode fra brikken din", "One-time code from your device"),
    "sca_method_SANDBOX_MOBILE": ("Sandbox på mobil", "Sandbox on mobile"),
    "sca_method_hint_SANDBOX_MOBILE": ("Bekreft med PIN på mobilen", "Confirm with a PIN on your phone"),
    "sca_method_SANDBOXID": ("SandboxID", "SandboxID"),
    "sca_method_hint_SANDBOXID": ("Elektronisk ID med passord", "Electronic ID with a password"),
    "context_title": ("Hvem handler du for?", "Who are you acting for?"),
    "context_lead": (
        "Du kan handle for deg selv eller for en bedrift. Velg hvem dette gjelder.",
        "You can act for yourself or for a company. Choose who this is for.",
    ),
    "context_private": ("Privat", "Private"),
    "context_private_hint": ("Dine egne kontoer", "Your own accounts"),
    "context_wrong": ("Velg privat eller en avtale.", "Choose private or one of the agreements."),
    "organisation": ("Org.nr. {number}", "Org. no. {number}"),
    "access_title": ("Del kontoer", "Share accounts"),
    "access_lead": (
        "Saldo og transaksjoner deles i 180 dager. Velg hva du vil dele.",
        "Balances and transactions are shared for 180 days. Choose what you want to share.",
    ),
    "accounts": ("Kontoer", "Accounts"),
    "cards": ("Kortkontoer", "Card accounts"),
    "access_none": ("Velg minst én konto, eller avvis.", "Choose at least one account, or decline."),
    "access_wrong": ("Velg blant kontoene på siden.", "Choose among the accounts on the page."),
    "access_empty": (
        "Du har ingen kontoer å dele ennå. Du kan likevel godkjenne at {tpp} kjenner deg som kunde.",
        "You have no accounts to share yet. You may still approve that {tpp} knows you as a customer.",
    ),
    "access_revoke": (
        "Du kan trekke samtykket tilbake i banken når som helst.",
        "You can withdraw your consent at the bank at any time.",
    ),
    "user_title": ("Bekreft hvem du er", "Confirm who you are"),
    "user_lead": (
        "{tpp} får vite at du er kunde. Ingen kontoer deles.",
        "{tpp} will know that you are a customer. No accounts are shared.",
    ),
    "payment_title": ("Godkjenn betaling", "Approve payment"),
    "payments_title": ("Godkjenn {count} betalinger", "Approve {count} payments"),
    "payment_lead": ("Kontroller betalingen før du godkjenner.", "Check the payment before you approve it."),
    "payments_lead": (
        "Kontroller betalingene. Én godkjenning gjelder alle.",
        "Check the payments. One approval covers all of them.",
    ),
    "cancellation_title": ("Stopp betalingen", "Stop the payment"),
    "stop": ("Stopp betalingen", "Stop the payment"),
    "keep": ("Ikke stopp", "Do not stop it"),
    "cancellation_lead": ("Betalingen blir ikke utført.", "The payment will not be carried out."),
    "total": ("Totalt", "Total"),
    "to": ("Til", "To"),
    "to_account": ("Til konto", "To account"),
    "from_account": ("Fra konto", "From account"),
    "on_date": ("Dato", "Date"),
    "first_payment": ("Første betaling", "First payment"),
    "months": ("Måneder", "Months"),
    "day": ("Dag i måneden", "Day of the month"),
    "or_last": ("eller den siste", "or the last"),
    "message": ("Melding", "Message"),
    "frequency_Daily": ("daglig", "daily"),
    "frequency_Weekly": ("ukentlig", "weekly"),
    "frequency_EveryTwoWeeks": ("annenhver uke", "every two weeks"),
    "frequency_Monthly": ("månedlig", "monthly"),
    "frequency_EveryTwoMonths": ("annenhver måned", "every two months"),
    "frequency_Quarterly": ("hvert kvartal", "quarterly"),
    "frequency_SemiAnnual": ("to ganger i året", "twice a year"),
    "frequency_Annual": ("årlig", "yearly"),
    "frequency_MonthlyVariable": ("i valgte måneder", "in chosen months"),
    "order_from": ("{product}, {frequency} fra {start}", "{product}, {frequency} from {start}"),
    "order_until": ("{product}, {frequency} fra {start} til {end}", "{product}, {frequency} from {start} to {end}"),
    "kid": ("KID", "KID"),
    "reference": ("Referanse", "Reference"),
    "fee": ("Gebyr", "Fee"),
    "payee": ("Kontroll av navn", "Name check"),
    "payee_MTCH": ("Navnet stemmer med kontoens eier", "The name matches the account holder"),
    "payee_CMTC": ("Navnet ligner; kontoens eier er {name}", "The name is similar; the account holder is {name}"),
    "payee_NMTC": ("Navnet stemmer ikke med kontoens eier", "The name does not match the account holder"),
    "payee_NOAP": ("Navnet kan ikke kontrolleres", "The name cannot be verified"),
    "acting_as": ("Du handler for {name}", "You are acting for {name}"),
    "app_title": ("Sandbanken-appen", "The Sandbanken app"),
    "app_note": ("Slik ser det ut i bankens app", "This is how it looks in the bank's app"),
    "app_approve": ("Godkjenn med fingeravtrykk", "Approve with fingerprint"),
    "sandbox": ("Sandkasse", "Sandbox"),
    "sandbox_pick": ("Velg en kunde:", "Pick a customer:"),
    "sandbox_note": ("Ingen ekte penger eller personer.", "No real money or people."),
    "sandbox_expected": ("i forespørselen", "in the request"),
    "sandbox_person": ("Innlogget som {name}", "Logged in as {name}"),
    "sandbox_nobody": (
        "Ingen aktuelle kunder. Opprett en med POST /v1/sandbox/customers.",
        "There is no suitable customer. Create one with POST /v1/sandbox/customers.",
    ),
    "sandbox_scripted": ("En regel i sandkassen bestemmer resultatet.", "A rule of the sandbox decides the outcome."),
    "gone_title": ("Bekreftelsen er allerede brukt", "This confirmation has already been used"),
    "gone_text": (
        "Den er fullført, avvist eller trukket tilbake. Gå tilbake til appen eller nettsiden du kom fra.",
        "It was completed, declined or withdrawn. Go back to the app or site you came from.",
    ),
    "unknown_title": ("Fant ikke siden", "Page not found"),
    "unknown_text": (
        "Banken kjenner ikke denne lenken. Gå tilbake dit du kom fra, og prøv igjen.",
        "The bank does not know this link. Go back to where you came from and try again.",
    ),
    "left_title": ("Kunden lukket siden", "The customer closed the page"),
    "left_text": (
        "En regel i sandkassen lar kunden lukke nettleseren her. {tpp} får ikke noe svar.",
        "A rule of the sandbox makes the customer close the browser here. {tpp} gets no answer.",
    ),
    "foreign_title": ("Ikke tillatt", "Not allowed"),
    "foreign_text": (
        "Skjemaet kom fra et annet nettsted. Banken godtar bare sine egne skjemaer.",
        "The form came from another site. The bank accepts its own forms only.",
    ),
    "forged_text": (
        "Skjemaet er utløpt. Gå tilbake til appen eller nettsiden du kom fra, og prøv igjen.",
        "The form has expired. Go back to the app or site you came from and try again.",
    ),
    "host_text": (
        "Banken svarer ikke på dette vertsnavnet. Start den med --allow-host for å tillate det.",
        "The bank does not answer to this host name. Start it with --allow-host to allow it.",
    ),
    "method_title_405": ("Metoden er ikke tillatt", "Method not allowed"),
    "method_text_405": ("Denne siden støtter bare GET, HEAD og POST.", "This page supports GET, HEAD and POST only."),
    "form_title": ("Skjemaet kan ikke leses", "The form cannot be read"),
    "form_text": ("Gå tilbake og prøv igjen.", "Go back and try again."),
    "down_title": ("Banken kan ikke lagre", "The bank cannot save"),
    "down_text": ("Endringen ble ikke lagret. Prøv igjen om litt.", "The change was not saved. Try again in a moment."),
    "my_title": ("Min side", "My page"),
    "my_login_lead": (
        "Oppgi fødselsnummeret ditt for å logge inn i banken.",
        "Enter your national identity number to log in to the bank.",
    ),
    "identity_unknown": (
        "Banken har ingen kunde med dette nummeret. Sjekk det og prøv igjen.",
        "The bank has no customer with this number. Check it and try again.",
    ),
    "my_log_out": ("Logg ut", "Log out"),
    "my_logged_out": ("Du er logget ut.", "You are logged out."),
    "my_expired": ("Innloggingen er utløpt. Logg inn på nytt.", "Your login has expired. Log in again."),
    "my_waiting": ("Venter på godkjenning", "Waiting for approval"),
    "my_waiting_none": ("Ingen betalinger venter på deg.", "No payments wait for you."),
    "my_stop_title": ("{tpp} ber om å stoppe denne betalingen", "{tpp} asks to stop this payment"),
    "my_asked_by": ("Bestilt gjennom {tpp}", "Ordered through {tpp}"),
    "my_signed_before": ("Signert av {name}. Din signatur mangler.", "Signed by {name}. Your signature is missing."),
    "my_approved": ("Betalingen er godkjent.", "The payment is approved."),
    "my_half_approved": ("Du har signert. En annen må også signere.", "You have signed. Another person must sign too."),
    "my_declined": ("Betalingen er avvist.", "The payment is declined."),
    "my_stopped": ("Betalingen er stoppet.", "The payment is stopped."),
    "my_kept": ("Betalingen blir ikke stoppet.", "The payment will not be stopped."),
    "my_not_signed": (
        "Du har avvist. Betalingen venter fortsatt på en signatur.",
        "You have declined. The payment still waits for a signature.",
    ),
    "my_accounts": ("Kontoer og kort", "Accounts and cards"),
    "my_accounts_none": ("Du har ingen kontoer i banken.", "You have no accounts at the bank."),
    "my_private": ("Privat", "Private"),
    "my_booked": ("Bokført", "Booked"),
    "my_available": ("Disponibelt", "Available"),
    "my_consents": ("Samtykker", "Consents"),
    "my_consents_lead": (
        "Disse tjenestene kan lese kontoene dine. Du kan trekke et samtykke tilbake når som helst.",
        "These services can read your accounts. You can withdraw a consent at any time.",
    ),
    "my_consents_none": ("Du deler ingen kontoer med andre.", "You share no accounts with anybody."),
    "my_shares": ("Deler", "Shares"),
    "my_shares_nothing": ("Ingen kontoer, bare at du er kunde", "No accounts, only that you are a customer"),
    "my_acting_as": ("Gjelder", "Acting for"),
    "my_given": ("Gitt", "Given"),
    "my_until": ("Gyldig til", "Valid until"),
    "my_last_use": ("Sist brukt", "Last used"),
    "my_never_used": ("Ikke brukt ennå", "Not used yet"),
    "my_reads": ("Lest uten deg siste døgn", "Read without you in the last 24 hours"),
    "my_reads_none": ("Ingen ganger", "Never"),
    "my_reads_balances": ("saldo {count} av {most}", "balances {count} of {most}"),
    "my_reads_transactions": ("transaksjoner {count} av {most}", "transactions {count} of {most}"),
    "my_reads_details": ("detaljer {count} av {most}", "details {count} of {most}"),
    "my_state_valid": ("Gyldig", "Valid"),
    "my_state_revoked": ("Trukket tilbake", "Withdrawn"),
    "my_state_terminated": ("Avsluttet av tjenesten", "Ended by the service"),
    "my_state_expired": ("Utløpt", "Expired"),
    "my_withdraw": ("Trekk tilbake", "Withdraw"),
    "my_withdraw_sure": (
        "{tpp} kan da ikke lese kontoene dine lenger.",
        "{tpp} can then no longer read your accounts.",
    ),
    "my_withdraw_yes": ("Ja, trekk samtykket tilbake", "Yes, withdraw the consent"),
    "my_withdrawn": ("Samtykket er trukket tilbake.", "The consent is withdrawn."),
    "my_past": ("Tidligere samtykker", "Earlier consents"),
    "refused_PSU_CREDENTIALS_INVALID": (
        "Du har ikke rett til å godkjenne denne betalingen.",
        "You may not approve this payment.",
    ),
    "refused_SCA_EXPIRED": (
        "Bekreftelsen er utløpt. Be om en ny der du bestilte betalingen.",
        "The confirmation has expired. Ask for a new one where you ordered the payment.",
    ),
    "refused_SCA_INVALID": ("Betalingen kan ikke godkjennes.", "The payment cannot be approved."),
    "refused_FORBIDDEN": ("Kontoen eller beløpet er ikke tillatt for deg.", "You may not use this account or amount."),
    "refused_PAYMENT_FAILED": ("Betalingen kan ikke gjennomføres.", "The payment cannot be carried out."),
    "refused_CONFLICT": ("Betalingen er allerede behandlet.", "The payment has already been processed."),
    "refused_RESOURCE_UNKNOWN": ("Dette finnes ikke lenger i banken.", "This no longer exists at the bank."),
    "refused_SYSTEM_ERROR": (
        "Et av bankens systemer svarer ikke. Prøv igjen om litt.",
        "A system of the bank does not answer. Try again in a moment.",
    ),
    "refused": ("Banken godtok ikke dette.", "The bank did not accept this."),
}


def translated(key: str, language: str) -> str:
    norwegian, english = TEXTS[key]
    return norwegian if language == NORWEGIAN else english
