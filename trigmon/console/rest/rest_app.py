"""The application: each request is checked, connects as its user, and is answered in MQ's shape."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from trigmon.client.connection import Connection
from trigmon.console.error_text import sentence
from trigmon.console.rest import mqsc_action, rest_messages, rest_request
from trigmon.console.rest.login_sessions import LoginSessions
from trigmon.console.rest.rest_request import RestError, Target
from trigmon.console.rest.user_connections import UserConnections
from trigmon.console.rest.user_properties import read_properties
from trigmon.console.web.web_connections import KNOWN
from trigmon.mq.errors import MQError, NotAuthorized

T = TypeVar("T")
CALLS, PASSWORDS = 32, 4
"""Threads."""
BODY_S = 30.0
"""A body has so long to come to its end."""
LARGEST_BODY = 4 << 20
"""Bytes: MAXMSGL as it is by default."""
LARGEST_LOGIN = 4096
"""Bytes of a body with user and password."""
_METHODS = ["GET", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"]
"""Those that a resource has not are answered by the application."""


class Gateway:
    """What the requests share: the connections of their users, and threads for the calls and for passwords.

    A password may wait for seconds behind wrong ones; users who are known have threads of their own.
    """

    def __init__(self, address: str, q_mgr_name: str) -> None:
        self.q_mgr_name = q_mgr_name
        self.logins = LoginSessions()
        self._users = UserConnections(address)
        self._calls = ThreadPoolExecutor(CALLS, "trigmon-rest")
        self._passwords = ThreadPoolExecutor(PASSWORDS, "trigmon-rest-password")

    async def let_in(self, request: Request) -> tuple[str, str]:
        """Returns the user and the password of a request, which were right. Raises RestError."""
        token = self.token(request)
        if not token:
            return await self.prove(request, *rest_request.account(request.headers))
        account = self.logins.account(token, time.monotonic())
        if account is None:
            raise rest_request.not_authenticated("The token is not known here, or has ended")
        try:
            return await self.prove(request, *account)
        except RestError as error:
            if error.status == 401:
                self.logins.end(token)
            raise

    def token(self, request: Request) -> str:
        """Returns the token of a request, blank without one; the header Authorization counts before it."""
        return "" if "authorization" in request.headers else request.cookies.get(self.logins.cookie, "")

    async def prove(self, request: Request, user: str, password: str) -> tuple[str, str]:
        """Returns them when they were right. Raises RestError."""
        if not self._users.is_known(user, password):
            loop = asyncio.get_running_loop()
            try:
                await loop.run_in_executor(self._passwords, self._users.let_in, user, password)
            except NotAuthorized:
                raise rest_request.not_authenticated("The user or the password is wrong") from None
            except MQError as error:
                raise rest_request.refused(error, sentence(error)) from None
        # Its connection loses its place to no stranger.
        if known := request.scope.get("extensions", {}).get(KNOWN):
            known()
        return user, password

    async def done(self, user: str, password: str, work: Callable[[Connection], T]) -> T:
        """Returns what is done by a connection of a user. Raises RestError."""

        def call() -> T:
            with self._users.of(user, password) as qm:
                return work(qm)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._calls, call)
        except MQError as error:
            raise rest_request.refused(error, sentence(error)) from None

    def close(self) -> None:
        """Ends the threads and the connections; a call under way comes to its end first."""
        for threads in (self._passwords, self._calls):
            threads.shutdown(wait=True, cancel_futures=True)
        self._users.close()


def rest_app(address: str, q_mgr_name: str) -> Starlette:
    """Returns the application for the queue manager of this name at an address of TLS."""
    gateway = Gateway(address, q_mgr_name)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        gateway.close()

    async def answer(request: Request) -> Response:
        try:
            answered = await _answered(request, gateway)
        except RestError as error:
            answered = JSONResponse(error.body(), error.status, error.headers)
        answered.headers.update({"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})
        return answered

    return Starlette(routes=[Route("/{path:path}", answer, methods=_METHODS)], lifespan=lifespan)


async def _answered(request: Request, gateway: Gateway) -> Response:
    """Answers a request; its body is read when its user is known. Raises RestError."""
    target = rest_request.target(request.scope.get("raw_path", b"").decode("latin-1").partition("?")[0])
    rest_request.check_method(request.method, target.kind)
    if target.kind == "login":
        return await _login(request, gateway)
    if request.method not in ("GET", "HEAD"):
        rest_request.check_change(request.headers)
    user, password = await gateway.let_in(request)
    if target.q_mgr_name != gateway.q_mgr_name:
        action = f"It is {gateway.q_mgr_name}"
        raise RestError(404, f"The queue manager {target.q_mgr_name} is not served here", action)
    return await gateway.done(user, password, await _work(request, target))


async def _login(request: Request, gateway: Gateway) -> Response:
    """Begins the session of a user, tells whose it is, or ends it. Raises RestError."""
    is_safe = request.url.scheme == "https"
    if request.method == "POST":
        # No form of another site has this type, so the header against them is not asked for, as in MQ.
        rest_request.check_json(request.headers)
        user, password = rest_request.credentials(await _body(request, LARGEST_LOGIN))
        await gateway.prove(request, user, password)
        token = gateway.logins.begin(user, password, time.monotonic())
        begun = Response(status_code=204)
        begun.set_cookie(gateway.logins.cookie, token, path="/", secure=is_safe, httponly=True, samesite="strict")
        return begun
    if request.method == "DELETE":
        rest_request.check_change(request.headers)
        await gateway.let_in(request)
        gateway.logins.end(gateway.token(request))
        ended = Response(status_code=204)
        ended.delete_cookie(gateway.logins.cookie, path="/", secure=is_safe, httponly=True, samesite="strict")
        return ended
    user, _ = await gateway.let_in(request)
    way = "form" if gateway.token(request) else "basic"
    return JSONResponse({"user": [{"name": user, "role": ["MQWebUser"], "authenticationMechanism": way}]})


async def _work(request: Request, target: Target) -> Callable[[Connection], Response]:
    """Returns what is done with a connection. Raises RestError."""
    if target.kind == "mqsc":
        rest_request.check_type(request.headers)
        action = mqsc_action.action_of(await _body(request, mqsc_action.LARGEST_COMMAND), target.version)
        return lambda qm: JSONResponse(action(qm))
    if request.method == "POST":
        rest_request.check_type(request.headers)
        words = rest_request.put_words(target.version, request.headers)
        properties = read_properties(request.headers.getlist(rest_request.USER_PROPERTIES))
        text = await _body(request)

        def put(qm: Connection) -> Response:
            msg_id = rest_messages.put(qm, target.q_name, text, words, properties)
            return Response(status_code=201, headers=_headers(target, {"messageId": msg_id}))

        return put
    if target.kind == "messagelist":
        most = rest_request.limit(request.query_params)

        def listed(qm: Connection) -> Response:
            return JSONResponse({"messages": rest_messages.listed(qm, target.q_name, target.version, most)})

        return listed
    match, wait_ms = rest_request.matched(target.version, request.query_params)

    def first(qm: Connection) -> Response:
        found = rest_messages.first(qm, target.q_name, match, wait_ms, takes=request.method == "DELETE")
        if found is None:
            return Response(status_code=204)
        message, text, properties = found
        headers = rest_request.described(target.version, message.descriptor)
        if properties and target.version == 3:
            headers[rest_request.USER_PROPERTIES] = properties
        return PlainTextResponse(text, headers=headers)

    return first


def _headers(target: Target, ids: dict[str, bytes]) -> dict[str, str]:
    return {f"ibm-mq-md-{name}": rest_request.shown_id(target.version, value) for name, value in ids.items()}


async def _body(request: Request, most: int = LARGEST_BODY) -> str:
    """Returns the body, of at most so many bytes, as text. Raises RestError."""
    parts = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                parts += part
                if len(parts) > most:
                    raise RestError(413, f"The body has more than {most} bytes", "Send a smaller one")
        return parts.decode()
    except TimeoutError:
        raise RestError(408, f"The body did not come within {BODY_S:g} seconds", "Resubmit the request") from None
    except ClientDisconnect:
        raise RestError(400, "The body did not come to its end", "Resubmit the request") from None
    except UnicodeDecodeError:
        raise RestError(400, "The body is no UTF-8", "Send text in UTF-8") from None
