"""What is remembered of documents holds until one of them changes, whatever changes it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from emulator.store import Document, Documents, Kind, memory_store

PSU, SESSION, PAYMENT = Kind[Document]("psu"), Kind[Document]("session"), Kind[Document]("payment")


@pytest.fixture
def documents() -> Documents:
    store = memory_store((PSU, SESSION, PAYMENT))
    store.put(PSU, {"id": "1", "name": "Kari"})
    return store


def _undone(documents: Documents) -> None:
    with suppress(ZeroDivisionError), documents.transaction():
        documents.put(PSU, {"id": "1", "name": "Ola"})
        raise ZeroDivisionError


def _restored_and_undone(documents: Documents) -> None:
    image = documents.image()
    with suppress(ZeroDivisionError), documents.transaction():
        documents.restore(image)
        raise ZeroDivisionError


def _inserted_and_undone(documents: Documents) -> None:
    with suppress(ZeroDivisionError), documents.transaction():
        documents.put(PSU, {"id": "2"})
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "change",
    [
        lambda documents: documents.put(PSU, {"id": "1", "name": "Ola"}),
        lambda documents: documents.put(SESSION, {"id": "2"}),
        lambda documents: documents.delete(PSU, "1"),
        lambda documents: documents.restore(documents.image()),
        lambda documents: documents.tables["psu"].insert({"id": "2"}),
        _undone,
        _inserted_and_undone,
        _restored_and_undone,
    ],
)
def test_a_change_makes_it_forgotten(documents: Documents, change: Callable[[Documents], None]) -> None:
    cache = documents.dependent_cache(PSU, SESSION)
    cache.values()["a"] = 1
    change(documents)
    assert cache.values() == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda documents: documents.restore(documents.image()),
        lambda documents: documents.put(PSU, {"id": "1", "name": "Ola"}),
        lambda documents: documents.put(PSU, {"id": "2", "name": "Ola"}),
        lambda documents: documents.delete(PSU, "1"),
    ],
)
def test_what_is_worked_out_within_a_change_goes_with_it(
    documents: Documents, change: Callable[[Documents], None]
) -> None:
    cache = documents.dependent_cache(PSU)
    with suppress(ZeroDivisionError), documents.transaction():
        change(documents)
        cache.values()["name"] = "Ola"
        raise ZeroDivisionError
    assert cache.values() == {}


def test_what_was_worked_out_from_before_a_change_is_not_kept(documents: Documents) -> None:
    cache = documents.dependent_cache(PSU)
    known = cache.values()
    documents.put(PSU, {"id": "1", "name": "Ola"})
    known["name"] = "Kari"
    assert cache.values() == {}


def test_documents_of_other_kinds_and_equal_ones_change_nothing(documents: Documents) -> None:
    cache = documents.dependent_cache(PSU)
    cache.values()["a"] = 1
    documents.put(PAYMENT, {"id": "3"})
    documents.put(PSU, {"id": "1", "name": "Kari"})
    assert cache.values() == {"a": 1}


def test_it_does_not_grow_without_end(documents: Documents) -> None:
    cache = documents.dependent_cache(PSU)
    for number in range(5000):
        cache.values()[number] = number
    assert len(cache.values()) <= 1024
