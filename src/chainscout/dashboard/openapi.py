"""The OpenAPI document, made of the models that check the requests and of those that give the answers."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter

from .._version import __version__
from .interface import READS, WRITES
from .parameters import CurvesQuery, Failure, StreamQuery

REFERENCE = "#/components/schemas/{model}"
STREAM = (
    "event: study (data as of /api/study), event: happened (data as an item of /api/log, with its number as id), event:"
    " failed"
)
FAILURES = {
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


def document(writable: bool) -> dict[str, Any]:
    """The document of a server that may or may not write."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for read in READS:
        inside = [{"name": name, "in": "path", "required": True, "schema": said} for name, said in read.inside.items()]
        missing = (404,) if inside or read.query is CurvesQuery else ()
        paths[read.address] = {
            "get": {
                "summary": read.meaning,
                "parameters": [*_query(read.query), *inside],
                "responses": _responses(read.answer, (400, 401, *missing, 503), schemas),
            }
        }
    stream = {"description": STREAM, "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    paths["/api/events"] = {
        "get": {
            "summary": "the study as it changes, as server-sent events without end",
            "parameters": list(_query(StreamQuery)),
            "responses": {"200": stream, **_failures((400, 401, 503), schemas)},
        }
    }
    for write in WRITES if writable else ():
        content = {"application/json": {"schema": _schema(write.body, schemas, given=True)}}
        paths[write.path] = {
            "post": {
                "summary": write.meaning,
                "requestBody": {"required": True, "content": content},
                "responses": _responses(write.answer, tuple(FAILURES), schemas),
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "chainscout serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def _query(kind: type[BaseModel]) -> Iterable[dict[str, Any]]:
    for name, schema in kind.model_json_schema().get("properties", {}).items():
        yield {"name": name, "in": "query", "description": schema.pop("description"), "schema": schema}


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
    return {str(code): {"description": FAILURES[code], "content": content} for code in codes}
