"""A live page of a study, and an HTTP interface so that other languages can take part."""

from .server import serve

__all__ = ["serve"]
