"""The body of a signing basket (baskets.md#creating-a-basket)."""

from __future__ import annotations

from tests.unit.shapes.bodies import mistakes

IDS = [f"payment-{number}" for number in range(11)]


def paths(body) -> list[str | None]:
    return [path for path, _ in mistakes("payments:SigningBasket", body)]


def test_a_basket_has_1_to_10_different_payments():
    assert paths({"paymentIds": IDS[:1]}) == []
    assert paths({"paymentIds": IDS[:10]}) == []
    assert mistakes("payments:SigningBasket", {"paymentIds": IDS}) == [
        ("paymentIds", "At most 10 items were expected; received 11.")
    ]
    assert mistakes("payments:SigningBasket", {"paymentIds": []}) == [
        ("paymentIds", "At least 1 item was expected; received 0.")
    ]
    assert mistakes("payments:SigningBasket", {"paymentIds": ["a", "b", "a"]}) == [
        ("paymentIds", "A payment appears more than once.")
    ]


def test_each_identifier_is_text():
    assert paths({"paymentIds": ["enc!!abc=", "", 5, None, ["a"]]}) == [
        f"paymentIds[{index}]" for index in (1, 2, 3, 4)
    ]
    assert paths({"paymentIds": "a"}) == ["paymentIds"]
    assert paths({"paymentIds": None}) == ["paymentIds"]
    assert paths({}) == ["paymentIds"]
    assert paths([]) == [None]


def test_null_in_the_place_of_the_whole_or_of_an_item_is_not_told_to_be_left_out():
    assert mistakes("payments:SigningBasket", None) == [(None, "An object was expected; received null.")]
    assert mistakes("payments:SigningBasket", {"paymentIds": [None]}) == [
        ("paymentIds[0]", "Text in quotes was expected; received null.")
    ]
