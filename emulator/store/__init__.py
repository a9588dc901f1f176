"""Documents: TinyDB with a journal, a snapshot, indexes and orders. Knows nothing of banking."""

from emulator.store.errors import StoreDamaged, StoreError, StoreLocked, StoreTooNew, StoreUnwritable
from emulator.store.image import Image
from emulator.store.kinds import Document, Kind, Ordered
from emulator.store.opening import Durability, memory_store, open_store
from emulator.store.remembered import Remembered
from emulator.store.store import Store

__all__ = [
    "Document",
    "Durability",
    "Image",
    "Kind",
    "Ordered",
    "Remembered",
    "Store",
    "StoreDamaged",
    "StoreError",
    "StoreLocked",
    "StoreTooNew",
    "StoreUnwritable",
    "memory_store",
    "open_store",
]
