"""Whatever is done to a store, it answers as plain dictionaries would."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from emulator.store import Document, Documents, Image, Kind, Ordered, memory_store, open_store
from emulator.store.journal_log import Compaction
from emulator.store.snapshot import snapshot_bytes
from tests.unit.store.making import disagreement, image_from_bytes

A = Kind[Document](
    "a",
    indexes=("color", "tags"),
    ordered={"size": Ordered(by="size"), "shelf": Ordered(by="title", group="shelf")},
)
# text alone
B = Kind[Document]("b", indexes=("color",), ordered={"text": Ordered(by="text")})
KINDS = (A, B)
Model = dict[str, dict[str, Document]]

IDS = st.sampled_from([f"id{number}" for number in range(8)])
DOCUMENTS = st.builds(
    lambda identity, members: {"id": identity, **members},
    IDS,
    st.fixed_dictionaries(
        {},
        optional={
            "color": st.sampled_from(["red", "blue", 7, None]),
            "tags": st.lists(st.sampled_from("xyz"), max_size=3),
            "size": st.one_of(st.none(), st.integers(0, 5)),
            "shelf": st.sampled_from(["left", "right"]),
            "title": st.sampled_from("abc"),
            "text": st.text(max_size=5),
        },
    ),
)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("ab"), DOCUMENTS),
        st.tuples(st.just("delete"), st.sampled_from("ab"), IDS),
        st.tuples(st.just("delete several"), st.sampled_from("ab"), st.lists(IDS, max_size=8)),
    ),
    max_size=6,
)


class Stop(Exception):
    pass


def copied(model: Model) -> Model:
    return {kind: dict(documents) for kind, documents in model.items()}


class StoreAgainstModel(RuleBasedStateMachine):
    """`power` and `durable` vary how the store is opened."""

    images = Bundle("images")
    durable = True
    power = False

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="store-model-"))
        self.number = 0
        self.store = self.opened()
        self.model: Model = {"a": {}, "b": {}}
        self.sequence = 0
        self.compaction: Compaction | None = None

    def opened(self) -> Documents:
        if not self.durable:
            return memory_store(KINDS)
        return open_store(self.place / str(self.number), KINDS, "power" if self.power else "process")

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.place)

    def apply(self, operations: list[tuple[str, str, Any]]) -> None:
        for name, of, argument in operations:
            kind = A if of == "a" else B
            if name == "put":
                self.store.put(kind, argument)
                self.model[of][argument["id"]] = argument
            elif name == "delete several":
                going = self.model[of].keys() & set(argument)
                assert self.store.delete_several(kind, argument) == len(going)
                for identity in going:
                    del self.model[of][identity]
            else:
                assert self.store.delete(kind, argument) == (argument in self.model[of])
                self.model[of].pop(argument, None)

    @initialize(target=images)
    def first_image(self) -> tuple[Image, Model]:
        return self.store.image(), copied(self.model)

    @rule(operations=OPERATIONS)
    def single_changes(self, operations: list[tuple[str, str, Any]]) -> None:
        self.apply(operations)

    @rule(outer=OPERATIONS, inner=OPERATIONS, later=OPERATIONS, inner_fails=st.booleans(), outer_fails=st.booleans())
    def transaction(
        self, outer: list[Any], inner: list[Any], later: list[Any], inner_fails: bool, outer_fails: bool
    ) -> None:
        before, number = copied(self.model), self.store.sequence
        with suppress(Stop), self.store.transaction():
            self.apply(outer)
            between = copied(self.model)
            with suppress(Stop), self.store.transaction():
                self.apply(inner)
                self.answers_fit()
                if inner_fails:
                    raise Stop
            if inner_fails:
                self.model = between
            self.apply(later)
            if outer_fails:
                raise Stop
        if outer_fails:
            self.model = before
        assert self.store.sequence - number in ((0,) if outer_fails else (0, 1))

    @rule(target=images)
    def image(self) -> tuple[Image, Model]:
        return self.store.image(), copied(self.model)

    @rule(target=images, image=images)
    def image_as_bytes(self, image: tuple[Image, Model]) -> tuple[Image, Model]:
        return image_from_bytes(snapshot_bytes(image[0].rows), KINDS), image[1]

    @rule(image=images, operations=OPERATIONS, fails=st.booleans(), prepared=st.booleans())
    def restore(self, image: tuple[Image, Model], operations: list[Any], fails: bool, prepared: bool) -> None:
        before = copied(self.model)
        with suppress(Stop), self.store.transaction():
            self.store.restore(self.store.prepare(image[0]) if prepared else image[0])
            self.model = copied(image[1])
            self.apply(operations)
            if fails:
                raise Stop
        if fails:
            self.model = before

    @rule(times=st.integers(1, 2))
    def reopen(self, times: int) -> None:
        for _ in range(times if self.durable else 0):
            self.store.close()
            self.store, self.compaction = self.opened(), None

    @rule()
    def kill(self) -> None:
        if self.durable:
            old = self.place / str(self.number)
            self.number += 1
            shutil.copytree(old, self.place / str(self.number))
            self.store.close()
            self.store, self.compaction = self.opened(), None

    @rule()
    def compact(self) -> None:
        if self.durable and self.compaction is None:
            self.store.log.compact()

    @rule()
    def begin_compaction(self) -> None:
        if self.durable and self.compaction is None:
            self.compaction = self.store.log.begin_compaction()

    @rule()
    def run_compaction(self) -> None:
        if self.compaction is not None:
            self.compaction.run()
            assert self.compaction.placed
            self.store.log.finish_compaction(self.compaction)
            self.compaction = None

    @rule()
    def sync(self) -> None:
        if not self.durable:
            return
        self.store.log.sync()
        assert not self.store.log.sync_needed

    @invariant()
    def answers_fit(self) -> None:
        for kind in KINDS:
            stored = list(self.model[kind.name].values())
            assert list(self.store.all(kind)) == stored
            assert self.store.count(kind) == len(stored)
        stored = list(self.model["a"].values())
        for color in ("red", "blue", 7):
            expected = [d for d in stored if d.get("color") == color]
            assert self.store.find(A, color=color) == expected
            assert self.store.find(A, color=color, newest_first=True, limit=2) == expected[::-1][:2]
            assert self.store.first(A, color=color) == (expected[0] if expected else None)
        for tag in "xyz":
            assert self.store.find(A, tags=tag) == [d for d in stored if tag in d.get("tags", ())]
        sized = [d for d in stored if d.get("size") is not None]
        expected = sorted((d for d in sized if 1 <= d["size"] <= 3), key=lambda d: (d["size"], d["id"]))
        assert self.store.range(A, "size", low=1, high=3) == expected
        assert self.store.range(A, "size", low=1, high=3, reverse=True, offset=1, limit=2) == expected[::-1][1:3]
        assert self.store.range_count(A, "size", low=1, high=3) == len(expected)
        assert self.store.first_key("size", A) == min((d["size"] for d in sized), default=None)
        texts = sorted((d["text"], d["id"]) for d in self.model["b"].values() if "text" in d)
        assert [(d["text"], d["id"]) for d in self.store.range(B, "text")] == texts
        assert self.store.first_key("text", B) == (texts[0][0] if texts else None)
        for shelf in ("left", "right"):
            on_it = [d for d in stored if d.get("shelf") == shelf and "title" in d]
            expected = sorted(on_it, key=lambda d: (d["title"], d["id"]))
            assert self.store.range(A, "shelf", group=shelf) == expected

    @invariant()
    def the_number_never_falls(self) -> None:
        assert self.store.sequence >= self.sequence
        self.sequence = self.store.sequence

    @invariant()
    def indexes_fit(self) -> None:
        for kind in KINDS:
            assert disagreement(self.store.tables[kind.name]) is None


class PowerAgainstModel(StoreAgainstModel):
    power = True


class MemoryAgainstModel(StoreAgainstModel):
    durable = False


TestStoreAgainstModel = StoreAgainstModel.TestCase
TestPowerAgainstModel = PowerAgainstModel.TestCase
TestMemoryAgainstModel = MemoryAgainstModel.TestCase
STEPS = 30 if settings().max_examples > 10 else 15  # the log alone differs, so that half suffices in every run
TestStoreAgainstModel.settings = settings(stateful_step_count=30)
TestPowerAgainstModel.settings = settings(stateful_step_count=STEPS)
TestMemoryAgainstModel.settings = settings(stateful_step_count=STEPS)
