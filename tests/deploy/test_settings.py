"""Variables in deployment files are settings, or variables of the programs that they run."""

import re

from roofcast.serving.app_state.settings import Settings
from tests.deploy.files import ROOT, compose, image_variables, manifests

OTHERS = {
    "postgres": {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"},
    "proxy": set(),
    "mlflow": {"MLFLOW_SERVER_ALLOWED_HOSTS"},
    "roofcast": {"PGPASSWORD"},
}
"""Variables that are no settings, by service: of the PostgreSQL image, the MLflow server (Host headers it admits) and
PostgreSQL's client library."""

OF_THE_IMAGE = {"PATH", "PYTHONUNBUFFERED", "GIT_PYTHON_REFRESH", "MPLCONFIGDIR"}
"""Of the shell, Python, GitPython (which MLflow imports) and Matplotlib."""


def setting_variables() -> set[str]:
    prefix = str(Settings.model_config["env_prefix"])
    fields = Settings.model_fields.items()
    return {str(field.validation_alias or f"{prefix}{name}".upper()) for name, field in fields}


def test_the_compose_file_sets_known_variables_alone() -> None:
    for name, service in compose()["services"].items():
        allowed = OTHERS[name] | (setting_variables() if name == "roofcast" else set())
        assert set(service.get("environment", {})) <= allowed, name


def test_manifests_and_image_set_known_variables_alone() -> None:
    assert set(manifests()["configmap.yaml"]["data"]) <= setting_variables()
    assert set(manifests()["secret.example.yaml"]["stringData"]) <= setting_variables() | OTHERS["roofcast"]
    assert set(image_variables()) <= setting_variables() | OF_THE_IMAGE


def test_the_variables_of_the_files_are_valid_settings() -> None:
    service = compose()["services"]["roofcast"]["environment"]
    in_cluster = {**manifests()["configmap.yaml"]["data"], **manifests()["secret.example.yaml"]["stringData"]}
    for variables in (service, in_cluster):
        fields = {str(field.validation_alias or name): name for name, field in Settings.model_fields.items()}
        values = {
            fields[key.removeprefix("ROOFCAST_").lower() if key.startswith("ROOFCAST_") else key]: value
            for key, value in variables.items()
            if key in setting_variables()
        }
        assert Settings.model_validate(values).store_url.startswith("postgresql+psycopg://")


def test_the_example_names_every_variable_of_the_compose_file_and_no_secret() -> None:
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    values = dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))
    used = re.findall(r"\$\{([A-Z_]+)(:-([^}]*))?", (ROOT / "compose.yaml").read_text(encoding="utf-8"))
    assert set(values) == {name for name, _, _ in used}
    assert all(values[name] == default for name, _, default in used)
    assert values["POSTGRES_PASSWORD"] == ""
    assert manifests()["secret.example.yaml"]["stringData"]["PGPASSWORD"] == ""
