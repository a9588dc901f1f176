"""A plugin of mypy: `document.get("x")` must name a member of the document's TypedDict.

mypy itself reports a misspelt member in `document["x"]` and in a display only; `get` of an unknown member is an
`object` for it. (For `"x" in document` no plugin can report an error: see `test_project.py`.) pyproject.toml names this
file.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.errorcodes import TYPEDDICT_ITEM
from mypy.nodes import StrExpr
from mypy.options import Options
from mypy.plugin import MethodContext, Plugin
from mypy.plugins.default import DefaultPlugin
from mypy.types import Type, TypedDictType, get_proper_type

GET = "typing.Mapping.get"


class TypedMembers(Plugin):
    """Checks the member, and leaves the type of the result to the plugin that comes with mypy."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._default = DefaultPlugin(options)

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        if fullname != GET:
            return None
        result_type = self._default.get_method_hook(fullname)

        def check(context: MethodContext) -> Type:
            document, member = get_proper_type(context.type), context.args[0][0]
            if (
                isinstance(document, TypedDictType)
                and isinstance(member, StrExpr)
                and member.value not in document.items
            ):
                text = f'TypedDict "{document.fallback.type.name}" has no key "{member.value}"'
                context.api.fail(text, member, code=TYPEDDICT_ITEM)
            return result_type(context) if result_type is not None else context.default_return_type

        return check


def plugin(version: str) -> type[Plugin]:
    """What mypy calls."""
    return TypedMembers
