"""Sources driven to a certified end: ``learn``, and study files that say what is to be learned."""

from .learn import learn
from .study_file import ChainTable, StudyFile, StudyTable, read_study_file

__all__ = ["ChainTable", "StudyFile", "StudyTable", "learn", "read_study_file"]
