"""How a missing optional dependency is installed into the environment at hand, as a command that works there."""

import sys
from pathlib import Path

# What takes long to import is imported where it is used: nearly no program needs it.

#: The checkout that this package is imported from, if it is one.
_ROOT = Path(__file__).resolve().parents[2]


def extra_command(extra: str) -> str:
    """The command that installs what ``extra`` stands for.

    In the environment of a checkout this is a make target. Elsewhere the packages themselves are named, because the
    version that is installed may be on no index.
    """
    if not (_ROOT / "dev.py").is_file():
        return package_command(*_requirements(extra))
    if Path(sys.prefix) == _ROOT / ".venv":
        import shlex

        folder = "" if Path.cwd() == _ROOT else f"-C {shlex.quote(str(_ROOT))} "
        return f"make {folder}extra EXTRAS={extra}"
    return package_command("-e", f"{_ROOT}[{extra}]")


def package_command(*requirements: str) -> str:
    """The command that installs packages into the environment of this interpreter."""
    import importlib.util
    import shlex
    import shutil

    words = " ".join(shlex.quote(one) for one in requirements)
    python = shlex.quote(sys.executable or "python")
    if importlib.util.find_spec("pip") is None and shutil.which("uv"):
        return f"uv pip install --python {python} {words}"
    return f"{python} -m pip install {words}"


def _requirements(extra: str) -> list[str]:
    """What the installed package's own metadata says that an extra needs."""
    import re
    from importlib import metadata

    try:
        lines = metadata.requires("chainscout") or []
    except metadata.PackageNotFoundError:
        lines = []
    parts = [line.partition(";") for line in lines]
    wanted = re.compile(rf"\bextra\s*==\s*['\"]{re.escape(extra)}['\"]")
    return [needed.strip() for needed, _, marker in parts if wanted.search(marker)] or [f"chainscout[{extra}]"]
