"""Download of the pinned files of a campaign, laid out as its recipe's folder."""

import io
import tarfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import httpx

from builders.recipe import Recipe
from roofcast.data.errors import SchemaError

TIMEOUT_S: Final = 60.0


def download(recipe: Recipe, root: Path, client: httpx.Client | None = None) -> None:
    """Write the files of a recipe's archive that its ``[[files]]`` name under `root`.

    `client`: HTTP client; a new one by default. Raises `SchemaError` if the recipe names no archive, the download
    fails, or the archive has no such file.
    """
    address = recipe.source.archive
    if not address:
        problem = f"no address holds these files: pass --raw with a folder that has {recipe.source.folder}"
        raise SchemaError("source.archive", problem, recipe.name)
    try:
        with client or httpx.Client(timeout=TIMEOUT_S, follow_redirects=True) as http:
            response = http.get(address).raise_for_status()
    except httpx.HTTPError as error:
        cause = str(error).partition("\n")[0]
        problem = f"cannot download {address}: {cause}; connect to the network, or pass --raw with the files"
        raise SchemaError("source.archive", problem, recipe.name) from error
    if not unpack(recipe, response.content, root / recipe.source.folder):
        globs = ", ".join(glob for files in recipe.files for glob in files.globs)
        raise SchemaError("files.glob", f"{address} has no file {globs}", recipe.name)


def unpack(recipe: Recipe, archive: bytes, folder: Path) -> int:
    """Write the files of an archive that match the recipe, and return their number; its top folder is left out."""
    n = 0
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for member in tar:
            path = member.name.partition("/")[2]
            name = path.replace("/", "__") if recipe.source.flat else path
            if not member.isfile() or ".." in Path(name).parts or not _is_named(recipe, name):
                continue
            content = tar.extractfile(member)
            if content is not None:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content.read())
                n += 1
    return n


def _is_named(recipe: Recipe, name: str) -> bool:
    globs = [glob for files in recipe.files for glob in files.globs]
    return any(fnmatch(name, pattern) for glob in globs for pattern in {glob, glob.replace("**/", "")})
