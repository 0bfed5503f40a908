"""Deployment files are consistent with the command line, the routes, the locks and each other."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import typer

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.cli.app import app
from roofcast.serving.http.routes import health
from tests.deploy.files import (
    DOCKERFILE,
    ROOT,
    compose,
    container,
    image_variables,
    instructions,
    manifests,
    server_commands,
)

PORT = 8000
LOCKS = ROOT / "requirements"


@pytest.mark.parametrize("name", sorted(server_commands()))
def test_the_command_line_accepts_the_arguments_of_each_file(name: str) -> None:
    command, *arguments = server_commands()[name]
    command_group = typer.main.get_command(app)
    serve = command_group.get_command(typer.Context(command_group), command)  # type: ignore[attr-defined]
    parameters = serve.make_context(command, arguments).params
    assert (parameters["host"], parameters["port"]) == ("0.0.0.0", PORT)  # noqa: S104


def test_ports_are_those_of_the_server() -> None:
    assert instructions("EXPOSE") == [str(PORT)]
    assert {port["name"]: port["containerPort"] for port in container()["ports"]} == {"probes": PORT}


def test_probes_use_existing_routes() -> None:
    routes = {getattr(route, "path", "") for route in health.router.routes}
    probes = {kind: container()[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {kind: probe["path"] for kind, probe in probes.items()} == {
        "startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz",
    }  # fmt: skip
    paths = set(re.findall(r"http://127\.0\.0\.1:8000(/\w+)", DOCKERFILE))
    assert paths | {probe["path"] for probe in probes.values()} <= routes


def test_the_user_is_the_same_everywhere_and_not_root() -> None:
    pod = manifests()["deployment.yaml"]["spec"]["template"]["spec"]["securityContext"]
    assert instructions("USER") == [f"{pod['runAsUser']}:{pod['runAsGroup']}"]
    assert pod["runAsNonRoot"]
    assert f"--uid {pod['runAsUser']} " in DOCKERFILE
    assert pod["fsGroup"] == pod["runAsGroup"]


def test_state_is_on_a_volume() -> None:
    home = image_variables()["ROOFCAST_HOME"]
    assert instructions("VOLUME") == [home]
    assert compose()["services"]["roofcast"]["volumes"] == [f"state:{home}"]
    assert manifests()["configmap.yaml"]["data"]["ROOFCAST_HOME"] == home
    assert {"name": "state", "mountPath": home} in container()["volumeMounts"]
    named = {volume.partition(":")[0] for s in compose()["services"].values() for volume in s["volumes"]}
    assert {name for name in named if not name.startswith("./")} == set(compose()["volumes"])
    assert all((ROOT / name).exists() for name in named if name.startswith("./"))


def test_the_temporary_volume_holds_the_largest_number_of_bulk_bodies() -> None:
    volumes = manifests()["deployment.yaml"]["spec"]["template"]["spec"]["volumes"]
    (scratch,) = (volume for volume in volumes if volume["name"] == "scratch")
    n_process = int(container()["args"][container()["args"].index("--workers") + 1])
    settings = Settings()
    most_byte = n_process * settings.max_bulk_request * settings.max_bulk_byte
    assert most_byte < int(scratch["emptyDir"]["sizeLimit"].removesuffix("Gi")) * 2**30


def test_files_copied_into_the_image_exist_and_are_not_ignored() -> None:
    let_through = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    copied = {word for line in instructions("COPY") if "--from" not in line for word in line.split()[:-1]}
    assert copied == set(let_through)
    assert all((ROOT / name).exists() for name in copied)


def test_images_have_plain_names() -> None:
    assert instructions("ARG") == ["PYTHON=python:3.11-slim"]
    assert {line.split()[0] for line in instructions("FROM")} == {"${PYTHON}"}


def test_packages_of_the_image_are_installed_with_hashes() -> None:
    install = next(line for line in instructions("RUN") if "serve.txt" in line)
    assert "--require-hashes" in install
    script = re.findall(r"sed -n ('.+?')", install)[0]
    if not shutil.which("sed"):
        pytest.skip("no sed")
    requirements = subprocess.run(  # noqa: S603
        ["sed", "-n", script.strip("'"), str(LOCKS / "dev.txt")],  # noqa: S607
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert re.findall(r"^(\S+)==", requirements, re.MULTILINE) == ["psycopg", "psycopg-binary"]
    assert requirements.count("--hash=sha256:") == requirements.count("\n") - 2


def test_client_and_server_of_mlflow_have_one_version() -> None:
    locked = re.findall(r"^mlflow-skinny==(\S+)", (LOCKS / "serve.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert compose()["services"]["mlflow"]["image"].endswith(f":v{locked[0]}")


def test_the_kustomization_has_the_version_of_the_package() -> None:
    version = re.findall(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    text = (ROOT / "deploy" / "kubernetes" / "kustomization.yaml").read_text(encoding="utf-8")
    assert f"newTag: {version[0]}" in text


def test_the_guide_names_every_file_and_its_links_exist() -> None:
    guide = (ROOT / "docs" / "DEPLOYMENT.md").read_text(encoding="utf-8")
    for name in ("Dockerfile", "compose.yaml", ".env.example", "deploy/kubernetes", "secret.example.yaml"):
        assert name in guide
    for target in re.findall(r"\]\((?!http)([^)#]+)", guide):
        assert (Path(ROOT / "docs") / target).exists(), target
