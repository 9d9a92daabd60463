"""The application: each request is checked, connects as its user, and is answered in MQ's shape."""

from __future__ import annotations

import asyncio
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
from trigmon.console.rest.rest_request import RestError, Target
from trigmon.console.rest.user_connections import UserConnections
from trigmon.console.web.web_connections import KNOWN
from trigmon.mq.errors import MQError, NotAuthorized

T = TypeVar("T")
CALLS, PASSWORDS = 32, 4
"""Threads."""
BODY_S = 30.0
"""A body has so long to come to its end."""
LARGEST_BODY = 4 << 20
"""Bytes: MAXMSGL as it is by default."""
_METHODS = ["GET", "POST", "DELETE"]


class Gateway:
    """What the requests share: the connections of their users, and threads for the calls and for passwords.

    A password may wait for seconds behind wrong ones; users who are known have threads of their own.
    """

    def __init__(self, address: str, q_mgr_name: str) -> None:
        self.q_mgr_name = q_mgr_name
        self._users = UserConnections(address)
        self._calls = ThreadPoolExecutor(CALLS, "trigmon-rest")
        self._passwords = ThreadPoolExecutor(PASSWORDS, "trigmon-rest-password")

    async def let_in(self, request: Request) -> tuple[str, str]:
        """Returns the user and the password of a request, which were right. Raises RestError."""
        user, password = rest_request.account(request.headers)
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
            headers = {"WWW-Authenticate": 'Basic realm="trigmon"'} if error.status == 401 else {}
            answered = JSONResponse(error.body(), error.status, headers)
        answered.headers.update({"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})
        return answered

    return Starlette(routes=[Route("/{path:path}", answer, methods=_METHODS)], lifespan=lifespan)


async def _answered(request: Request, gateway: Gateway) -> Response:
    """Answers a request; its body is read when its user is known. Raises RestError."""
    target = rest_request.target(request.scope.get("raw_path", b"").decode("latin-1").partition("?")[0])
    if request.method not in (allowed := rest_request.METHODS[target.kind]):
        raise RestError(405, f"{request.method} is no method of this resource", f"Send {' or '.join(allowed)}")
    if request.method not in ("GET", "HEAD"):
        rest_request.check_change(request.headers)
    user, password = await gateway.let_in(request)
    if target.q_mgr_name != gateway.q_mgr_name:
        action = f"It is {gateway.q_mgr_name}"
        raise RestError(404, f"The queue manager {target.q_mgr_name} is not served here", action)
    return await gateway.done(user, password, await _work(request, target))


async def _work(request: Request, target: Target) -> Callable[[Connection], Response]:
    """Returns what is done with a connection. Raises RestError."""
    if target.kind == "mqsc":
        rest_request.check_type(request.headers)
        action = mqsc_action.action_of(await _body(request, mqsc_action.LARGEST_COMMAND), target.version)
        return lambda qm: JSONResponse(action(qm))
    if request.method == "POST":
        rest_request.check_type(request.headers)
        words = rest_request.put_words(target.version, request.headers)
        text = await _body(request)

        def put(qm: Connection) -> Response:
            msg_id = rest_messages.put(qm, target.q_name, text, words)
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
        message, text = found
        return PlainTextResponse(text, headers=rest_request.described(target.version, message.descriptor))

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
