"""The OpenAPI document, made from the models that check requests and from the records that are the answers."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, TypeAdapter

from .._version import __version__
from .interface import READS, WRITES, Failure, StreamQuery

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
    504: "the database went away and nobody knows whether the change was stored; to tell it again is safe with its path"
    " and step",
}


def document(writable: bool) -> dict[str, Any]:
    """The document of a server that may or may not write."""
    writes = WRITES if writable else ()
    kinds = [(kind, "serialization") for kind in (Failure, *(request.answer for request in (*READS, *writes)))]
    kinds += [(write.body, "validation") for write in writes]
    inputs: Any = [(str(kind), mode, TypeAdapter(kind)) for kind, mode in dict.fromkeys(kinds)]
    found, shared = TypeAdapter.json_schemas(inputs, ref_template=REFERENCE)
    schemas = {(name, str(mode)): schema for (name, mode), schema in found.items()}

    def content(kind: Any, mode: str = "serialization") -> dict[str, Any]:
        return {"application/json": {"schema": schemas[str(kind), mode]}}

    def failures(codes: Iterable[int]) -> dict[str, Any]:
        return {str(code): {"description": FAILURES[code], "content": content(Failure)} for code in codes}

    def responses(answer: Any, codes: Iterable[int]) -> dict[str, Any]:
        return {"200": {"description": "done", "content": content(answer)}, **failures(codes)}

    paths: dict[str, Any] = {}
    for read in READS:
        inside = [{"name": name, "in": "path", "required": True, "schema": said} for name, said in read.inside.items()]
        missing = (404,) if inside or "chain" in read.query.model_fields else ()
        paths[read.address] = {
            "get": {
                "summary": read.meaning,
                "parameters": [*_query(read.query), *inside],
                "responses": responses(read.answer, (400, 401, *missing, 503)),
            }
        }
    stream = {"description": STREAM, "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    paths["/api/events"] = {
        "get": {
            "summary": "the study as it changes, as server-sent events without end",
            "parameters": list(_query(StreamQuery)),
            "responses": {"200": stream, **failures((400, 401, 503))},
        }
    }
    for write in writes:
        paths[write.path] = {
            "post": {
                "summary": write.meaning,
                "requestBody": {"required": True, "content": content(write.body, "validation")},
                "responses": responses(write.answer, FAILURES),
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "chainscout serve", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": shared.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _query(kind: type[BaseModel]) -> Iterable[dict[str, Any]]:
    for name, schema in kind.model_json_schema().get("properties", {}).items():
        yield {"name": name, "in": "query", "description": schema.pop("description"), "schema": schema}
