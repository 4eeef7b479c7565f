"""The command that installs a missing optional dependency into the present environment."""

import sys
from pathlib import Path

# Slow imports are made where they are used, because almost no program needs them.

#: The checkout from which this package is imported, if it comes from one.
_ROOT = Path(__file__).resolve().parents[2]


def extra_command(extra: str) -> str:
    """The command that installs the packages of ``extra``.

    In the environment of a checkout this is a make target. Elsewhere the command names the packages themselves, because
    no index may have the installed version.
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
    """The requirements of an extra, from the metadata of the installed package."""
    import re
    from importlib import metadata

    try:
        lines = metadata.requires("chainscout") or []
    except metadata.PackageNotFoundError:
        lines = []
    parts = [line.partition(";") for line in lines]
    wanted = re.compile(rf"\bextra\s*==\s*['\"]{re.escape(extra)}['\"]")
    return [needed.strip() for needed, _, marker in parts if wanted.search(marker)] or [f"chainscout[{extra}]"]
