"""All banks of one process: the default one and those that `PUT /_emulator/banks/{name}` makes (CONTRACT 9.6)."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cryptography.x509 import Certificate

from emulator.api.branch import Branch
from emulator.api.operations import table
from emulator.api.pipeline import Rules, Signer
from emulator.api.router import Router
from emulator.bank import fixtures
from emulator.bank.bank import Bank
from emulator.bank.errors import BankError
from emulator.bank.fixtures import Fixture
from emulator.bank.kinds import KINDS
from emulator.bank.settings import Settings
from emulator.store import Document, Store, StoreDamaged, StoreError, memory_store, open_store

logger = logging.getLogger(__name__)

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class HouseRules:
    """What every bank of the process has in common.

    `directory`: where the banks' documents stand, None for a bank in memory; `fixtures`: what a new bank starts
    from; `settings`: what a reset restores.
    """

    directory: Path | None
    fixtures: str
    settings: Settings
    seed: int | None
    ids_form: str
    durability: Literal["process", "power"]
    rules_for: Callable[[Bank], Rules]
    trusted_ca: Callable[[], Certificate | None]
    sign_response: Signer


class House:
    """The banks by name."""

    def __init__(self, common: HouseRules) -> None:
        self._common = common
        self._router = Router(table())
        self._open: dict[str, Branch] = {}
        self._logged: dict[str, str] = {}
        self.default = self.open(DEFAULT)

    def made_with(self, bank: Bank) -> Fixture:
        """What a reset goes back to that names nothing: --fixtures, or what a named bank was made with."""
        fixture = fixtures.made_with(bank)
        if bank is self.default.bank and fixture.source != self._common.fixtures:
            return fixtures.load(self._common.fixtures)
        return fixture

    def names(self) -> list[str]:
        """Every bank, those of an earlier run included, the default one first."""
        kept = set(self._open)
        if self._common.directory is not None and self._common.directory.is_dir():
            kept |= {path.name for path in self._common.directory.iterdir() if NAME.fullmatch(path.name)}
        return [DEFAULT, *sorted(kept - {DEFAULT})]

    def opened(self, name: str) -> Branch | None:
        """The bank with this name if anybody has asked for it, else None."""
        return self._open.get(name)

    def find(self, name: str) -> Branch | None:
        """The bank with this name, or None; one of an earlier run is opened where it is asked for.

        SYSTEM_ERROR (503) where that cannot be done, with what helps.
        """
        branch = self._open.get(name)
        if branch is None and NAME.fullmatch(name) and self._is_kept(name):
            try:
                branch = self.open(name)
            except (StoreError, OSError) as error:
                raise self._closed(name, error) from error
        return branch

    def _closed(self, name: str, error: Exception) -> BankError:
        """Why a bank cannot be opened; logged once, for every request to the bank finds it out anew."""
        text = f"Bank {name} cannot be opened: {error}."
        if isinstance(error, StoreDamaged):
            text += f" PUT or DELETE /_emulator/banks/{name}, or state check --repair, helps."
        if self._logged.get(name) != text:
            self._logged[name] = text
            logger.error("%s", text)
        return BankError("SYSTEM_ERROR", text, status=503)

    def clear_damage(self, name: str) -> None:
        """Let go of a bank's documents if they are damaged, so that it can be made anew; its snapshots stay."""
        try:
            self.find(name)
        except BankError as refused:
            if not isinstance(refused.__cause__, StoreDamaged):
                raise
            directory = self.directory_of(name)
            for path in directory.iterdir() if directory is not None else ():
                if path.is_file():  # snapshots, and copies that a repair has made, are in folders
                    path.unlink()

    def _is_kept(self, name: str) -> bool:
        directory = self._common.directory
        return directory is not None and (directory / name).is_dir()

    def open(self, name: str, *, fixture: str | None = None, seed: int | None = None) -> Branch:
        """The bank `name`: as it stood, or new from a fixture; FORMAT_ERROR for an impossible name."""
        if not NAME.fullmatch(name):
            raise BankError("FORMAT_ERROR", "A bank's name is [a-z0-9][a-z0-9-]{0,62}.", "name")
        common = self._common
        documents = self._documents(name)
        kept = documents.get("meta", "bank") or {}
        bank = Bank(
            documents,
            name=name,
            defaults=common.settings,
            seed=self._seed(name, kept, seed),
            ids_form=common.ids_form,
        )
        if not kept:
            fixtures.make(bank, fixture or common.fixtures)
        branch = Branch(
            bank,
            router=self._router,
            rules=common.rules_for(bank),
            trusted_ca=common.trusted_ca,
            sign_response=common.sign_response,
        )
        self._open[name] = branch
        return branch

    def _seed(self, name: str, kept: Document, wanted: int | None) -> int | None:
        """--seed for the default bank, whatever it was made with; a named bank keeps the seed it was made with."""
        common = self._common.seed
        if name == DEFAULT and common is not None:
            return common
        seed: int | None = kept.get("seed", common if wanted is None else wanted)
        return seed

    def directory_of(self, name: str) -> Path | None:
        """The folder of a bank, None for one in memory."""
        return None if self._common.directory is None else self._common.directory / name

    def _documents(self, name: str) -> Store:
        directory = self.directory_of(name)
        if directory is None:
            return memory_store(KINDS)
        return open_store(directory, KINDS, durability=self._common.durability)

    def make(self, name: str, *, fixture: str | None = None, seed: int | None = None) -> Branch:
        """The bank `name` made anew, whatever stood there (PUT banks/{name})."""
        known = self.find(name)
        if known is not None and seed is not None and seed != known.bank.ids.seed:
            self.close_bank(name)
            known = None
        if known is None:
            return self.open(name, fixture=fixture, seed=seed)
        fixtures.make(known.bank, fixture or self._common.fixtures)
        known.log.clear()
        return known

    def close_bank(self, name: str) -> None:
        """The bank is no more, its documents with it; CONFLICT for the default bank, RESOURCE_UNKNOWN for none."""
        if name == DEFAULT:
            raise BankError("CONFLICT", "The default bank stays; reset it instead.", "name")
        self.clear_damage(name)
        branch = self.find(name)
        if branch is None:
            raise BankError("RESOURCE_UNKNOWN", f"There is no bank {name}.")
        del self._open[name]
        branch.bank.documents.close()
        if self._common.directory is not None:
            shutil.rmtree(self._common.directory / name)

    def branches(self) -> Iterator[Branch]:
        """The banks that are open."""
        return iter(list(self._open.values()))

    def close(self) -> None:
        """Compact and let go of every bank's documents."""
        for branch in self.branches():
            branch.bank.documents.close()
