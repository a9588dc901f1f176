"""Style sheets, scripts and pictures of our own, at `/static/...`."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.api.messages import Request, Response
from emulator.web.pages.form import path_below
from emulator.web.pages.guard import header

if TYPE_CHECKING:
    from emulator.api.service import BankService

FOLDER = Path(__file__).parent.parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@lru_cache(maxsize=64)
def _load(name: str) -> tuple[bytes, str] | None:
    """Content and version of a file of the folder; only names that stand in it are ever opened."""
    if name not in {path.name for path in FOLDER.iterdir() if path.suffix in _TYPES}:
        return None
    content = (FOLDER / name).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:16]


def versioned(name: str) -> str:
    """`static/NAME?v=VERSION`: the address changes with the content, so browsers may keep what they have."""
    loaded = _load(name)
    if loaded is None:
        raise LookupError(f"there is no static file {name}")
    return f"static/{name}?v={loaded[1]}"


class StaticFiles:
    """The room for `/static/...`, the same files for every bank."""

    def handle(self, _service: BankService, request: Request) -> Response:
        """Answer GET and HEAD; 404 for what is not in the folder."""
        if request.method not in ("GET", "HEAD"):
            return _plain(405, "Static files are read with GET.", ("Allow", "GET, HEAD"))
        name = path_below(request).removeprefix("/static/")
        loaded = _load(name)
        if loaded is None:
            return _plain(404, "There is no such file.")
        content, version = loaded
        tag = f'"{version}"'
        lasting = f"v={version}" in request.target
        sent = [
            ("Content-Type", _TYPES[Path(name).suffix]),
            ("Cache-Control", "public, max-age=31536000, immutable" if lasting else "no-cache"),
            ("ETag", tag),
            ("X-Content-Type-Options", "nosniff"),
        ]
        if tag in (header(request, "if-none-match") or ""):
            return Response(304, sent)
        return Response(200, sent, content)


def _plain(status: int, text: str, *headers: tuple[str, str]) -> Response:
    kind = ("Content-Type", "text/plain; charset=utf-8")
    return Response(status, [kind, ("X-Content-Type-Options", "nosniff"), *headers], text.encode())
