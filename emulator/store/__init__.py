"""Documents: TinyDB with a journal, a snapshot, indexes and orders. Knows nothing of banking."""

from emulator.store.dependent_cache import DependentCache
from emulator.store.errors import StoreDamaged, StoreError, StoreLocked, StoreTooNew, StoreUnwritable
from emulator.store.image import Image
from emulator.store.kinds import Document, Kind, Ordered
from emulator.store.opening import Durability, memory_store, open_store
from emulator.store.store import Store, WriteGroup

__all__ = [
    "DependentCache",
    "Document",
    "Durability",
    "Image",
    "Kind",
    "Ordered",
    "Store",
    "StoreDamaged",
    "StoreError",
    "StoreLocked",
    "StoreTooNew",
    "StoreUnwritable",
    "WriteGroup",
    "memory_store",
    "open_store",
]
