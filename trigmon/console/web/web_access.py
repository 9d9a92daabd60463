"""Who may ask for what: the token, the cookie, the name in Host, the origin of a form, and the headers of answers.

The address of the console holds a token. Who opens it gets a cookie and is sent on to the address without it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trigmon.console.web.web_connections import KNOWN

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
COOKIE = "trigmon_web_"
"""The beginning of the cookie's name: the ports of a host share their cookies, so each process has its own name."""
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Nothing goes to another site. With no-referrer a browser would also send a form's Origin as "null".
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_CLOSED = "This page needs the address with its token, that `trigmon web` has printed or --token-file holds.\n"


class Keys:
    """What only this process and the browsers that were let in know; without a ``token`` made anew: 256 bits."""

    def __init__(self, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(32)
        self.cookie_name = COOKIE + self.made_for("cookie name")[:8]

    def opens(self, token: str) -> bool:
        """Returns whether this is the token, in a time that does not depend on how much of it is right."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def made_for(self, purpose: str) -> str:
        """Returns what proves the knowledge of the token for one purpose, and does not tell it."""
        return hmac.new(self.token.encode(), purpose.encode(), hashlib.sha256).hexdigest()

    def is_for(self, purpose: str, given: str) -> bool:
        """Returns whether this was made for the purpose."""
        return hmac.compare_digest(given.encode(), self.made_for(purpose).encode())


class Access:
    """The outermost layer of the application: lets a request in, or answers it. ``names``: further names in Host."""

    def __init__(self, app: ASGIApp, keys: Keys, names: tuple[str, ...] = ()) -> None:
        self._app = app
        self._keys = keys
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request that may not come in; hands on one that may."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None and (known := scope.get("extensions", {}).get(KNOWN)):
            known()
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Returns the answer to a request that may not come in; None for one that may."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = _name_in(host)
        # A page of another site may have its own name lead to this address (DNS rebinding).
        if name not in LOOPBACK_NAMES | self._names:
            return PlainTextResponse(f"{name!r} is no name of this machine: trigmon web --host NAME\n", 421)
        is_get = scope["method"] in ("GET", "HEAD")
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if is_get and scope["path"] == "/" and given:
            return self._let_in(given, secure=name not in LOOPBACK_NAMES)
        if not self._keys.is_for("cookie", _cookie(headers, self._keys.cookie_name)):
            return PlainTextResponse(_CLOSED, 403)
        if not is_get and not _is_own_form(headers, host):
            return PlainTextResponse("A form of another origin.\n", 403)
        return None

    def _let_in(self, token: str, *, secure: bool) -> Response:
        if not self._keys.opens(token):
            return PlainTextResponse(_CLOSED, 403)
        answer = RedirectResponse("/", 303, {"Referrer-Policy": "no-referrer"})  # this address has the token
        cookie = self._keys.made_for("cookie")
        answer.set_cookie(self._keys.cookie_name, cookie, httponly=True, samesite="strict", secure=secure, path="/")
        return answer


def _name_in(host: str) -> str:
    """Returns the name in a Host header, without the port; a forwarded port is another one than ours."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _is_own_form(headers: Headers, host: str) -> bool:
    """Returns whether the browser says that a form of these pages was sent."""
    origin = headers.get("origin", "")
    is_same = headers.get("sec-fetch-site", "same-origin") == "same-origin"
    return is_same and bool(host) and origin in (f"http://{host}", f"https://{host}")
