"""The OpenAPI document, made of what checks the requests and of what gives the answers."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import TypeAdapter

from .._version import __version__
from ..report import Table
from ..report.views import Card, Chain, Curves, Happening, Held, Overview, Page
from . import parameters
from .parameters import Ask, Asked, Failure, GiveBack, Leased, Parameter, Renew, Restart, TakeLease, Tell, Told

REFERENCE = "#/components/schemas/{model}"

#: path, what it gives, type of the answer, parameters of the query, parameters of the path
READING: tuple[tuple[str, str, Any, Sequence[Parameter], dict[str, dict[str, Any]]], ...] = (
    ("/api/study", "the study as a whole", Overview, (), {}),
    ("/api/chains", "some chains, searched and sorted", Page, parameters.CHAINS_QUERY, {}),
    (
        "/api/chains/{name}",
        "a chain by name",
        Chain,
        parameters.WINDOW_QUERY,
        {"name": {"type": "string", "minLength": 1}},
    ),
    (
        "/api/numbered/{number}",
        "a chain by number",
        Chain,
        parameters.WINDOW_QUERY,
        {"number": {"type": "integer", "minimum": 0, "maximum": 10**9}},
    ),
    ("/api/curves", "chains over time", Curves, (parameters.CHAIN,), {}),
    ("/api/leases", "who holds what", list[Held], (), {}),
    ("/api/panels", "what the page shows beside the chains, as tables", list[Table], (), {}),
    ("/api/questions", "registered questions, with their answers over time", list[Card], (), {}),
    ("/api/log", "what happened", list[Happening], parameters.LOG_QUERY, {}),
)
WRITING: tuple[tuple[str, str, Any, Any], ...] = (
    ("/api/ask", "which chains to advance next; changes nothing", Ask, Asked),
    ("/api/tell", "one observation, durable before the answer", Tell, Told),
    ("/api/lease", "the next step of the worker's own path of the best chain, for a while", TakeLease, Leased),
    ("/api/renew", "holds a lease for longer", Renew, Told),
    ("/api/give-back", "ends a lease", GiveBack, Told),
    ("/api/restart", "ends a path: the next observation begins another", Restart, Told),
)


def document(writable: bool) -> dict[str, Any]:
    """The document of a server that may or may not write."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for path, meaning, answer, query, inside in READING:
        parts = [_query(parameter) for parameter in query]
        parts += [{"name": name, "in": "path", "required": True, "schema": schema} for name, schema in inside.items()]
        missing = (404,) if inside or parameters.CHAIN in query else ()
        paths[path] = {
            "get": {
                "summary": meaning,
                "parameters": parts,
                "responses": _responses(answer, (400, 401, *missing, 503), schemas),
            }
        }
    stream = {
        "description": "event: study (data as of /api/study), event: happened (data as an item of /api/log, with its "
        "number as id), event: failed",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
    paths["/api/events"] = {
        "get": {
            "summary": "the study as it changes, as server-sent events without end",
            "parameters": [_query(parameters.FROM)],
            "responses": {"200": stream, **_failures((400, 401, 503), schemas)},
        }
    }
    if writable:
        for path, meaning, body, answer in WRITING:
            content = {"application/json": {"schema": _schema(body, schemas, given=True)}}
            codes = (400, 401, 403, 404, 409, 413, 415, 503, 504)
            paths[path] = {
                "post": {
                    "summary": meaning,
                    "requestBody": {"required": True, "content": content},
                    "responses": _responses(answer, codes, schemas),
                }
            }
    return {
        "openapi": "3.1.0",
        "info": {"title": "chainscout serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def _query(parameter: Parameter) -> dict[str, Any]:
    schema = {key: value for key, value in parameter.schema.items() if not (key == "default" and value is None)}
    return {"name": parameter.name, "in": "query", "description": parameter.meaning, "schema": schema}


def _schema(kind: Any, schemas: dict[str, Any], given: bool = False) -> dict[str, Any]:
    """A reference to the type's schema, which is put among the others; ``given``: by a request, not by an answer."""
    mode: Literal["validation", "serialization"] = "validation" if given else "serialization"
    made: dict[str, Any] = TypeAdapter(kind).json_schema(ref_template=REFERENCE, mode=mode)
    schemas.update(made.pop("$defs", {}))
    if "title" not in made:
        return made
    schemas[made["title"]] = made
    return {"$ref": REFERENCE.format(model=made["title"])}


def _responses(answer: Any, codes: Sequence[int], schemas: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": _schema(answer, schemas)}}
    return {"200": {"description": "done", "content": content}, **_failures(codes, schemas)}


def _failures(codes: Sequence[int], schemas: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": _schema(Failure, schemas)}}
    meanings = {
        400: "the request is not well made, as one sentence says",
        401: "the token is missing or wrong",
        403: "the request comes from another site",
        404: "there is no such chain",
        409: "the study refuses it: it is finished, nothing is free, the lease is lost, there is no such state",
        413: "the body is too large",
        415: "the body is not JSON",
        503: "the study cannot be read, or too much is asked at once; nothing was changed, now or later",
        504: "whether the change was stored is not known; to tell it again is safe with its path and step",
    }
    return {str(code): {"description": meanings[code], "content": content} for code in codes}
