import pytest
from estimator_container.storage import NoCredentials
from estimator_container.storage.s3 import aws_settings
from estimator_container.storage.s3.aws_settings import settings

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """An environment whose files can be written, where botocore is not installed and no metadata service answers."""
    monkeypatch.setattr(aws_settings, "_of_botocore", lambda: None)
    monkeypatch.setattr(aws_settings, "_metadata_answers", lambda environment: False)
    return {
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
    }


def test_the_region_comes_from_the_environment_then_the_profile_then_the_default(environment, tmp_path):
    assert settings("s3://b", {**environment, **KEYS}).config["region"] == "us-east-1"
    (tmp_path / "config").write_text("[default]\nregion = eu-west-1\n[profile other]\nregion = eu-west-2\n")
    assert settings("s3://b", {**environment, **KEYS}).config["region"] == "eu-west-1"
    assert settings("s3://b", {**environment, **KEYS, "AWS_PROFILE": "other"}).config["region"] == "eu-west-2"
    assert settings("s3://b", {**environment, **KEYS, "AWS_REGION": "x"}).config["region"] == "x"


@pytest.mark.parametrize(
    ("variables", "config", "endpoint"),
    [
        ({}, "", None),
        ({"AWS_ENDPOINT_URL": "http://a/"}, "", "http://a"),
        ({"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b"}, "", "http://b"),
        ({}, "endpoint_url = http://c\n", "http://c"),
        ({}, "endpoint_url = http://c\nservices = s\n[services s]\ns3 =\n  endpoint_url = http://d\n", "http://d"),
        ({"AWS_ENDPOINT_URL_S3": "http://b"}, "endpoint_url = http://c\n", "http://b"),
        ({"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, "endpoint_url = http://c\n", None),
    ],
)
def test_the_endpoint_that_is_most_particular_wins(environment, tmp_path, variables, config, endpoint):
    (tmp_path / "config").write_text(f"[default]\n{config}")
    found = settings("s3://b", {**environment, **KEYS, **variables})
    assert found.endpoint == endpoint
    assert found.client.get("allow_http", False) == bool(endpoint)


def test_keys_of_the_environment_win_over_those_of_the_profile(environment, tmp_path):
    (tmp_path / "credentials").write_text("[default]\naws_access_key_id = k\naws_secret_access_key = s\n")
    assert settings("s3://b", environment).provider()["access_key_id"] == "k"
    assert settings("s3://b", {**environment, **KEYS}).provider is None


def test_keys_of_the_profile_are_read_whenever_they_are_needed(environment, tmp_path):
    """Who signs in again in the middle of a job writes others there, and the file may be empty for a moment."""
    path = tmp_path / "credentials"
    path.write_text("[default]\naws_access_key_id = k\naws_secret_access_key = s\naws_session_token = t\n")
    provide = settings("s3://b", environment).provider
    assert [provide()[name] for name in ("access_key_id", "secret_access_key", "token")] == ["k", "s", "t"]
    path.write_text("")
    assert provide()["access_key_id"] == "k"
    path.write_text("[default]\naws_access_key_id = k2\naws_secret_access_key = s2\n")
    assert [provide()[name] for name in ("access_key_id", "secret_access_key", "token")] == ["k2", "s2", None]


@pytest.mark.parametrize("name", ["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"])
def test_a_role_of_the_container_is_left_to_the_client(environment, name):
    assert settings("s3://b", {**environment, name: "x"}).provider is None


def test_a_profile_that_cannot_be_read_without_boto3_is_named_in_the_error(environment, tmp_path):
    (tmp_path / "config").write_text("[profile mine]\nsso_session = x\nsso_token = hidden\n")
    with pytest.raises(NoCredentials, match="the profile 'mine' has no keys that can be read without boto3") as error:
        settings("s3://b", {**environment, "AWS_PROFILE": "mine"})
    assert "hidden" not in str(error.value)


def test_a_broken_file_shows_none_of_its_lines(environment, tmp_path):
    (tmp_path / "credentials").write_text("aws_secret_access_key = hidden\n")
    with pytest.raises(NoCredentials) as error:
        settings("s3://b", environment)
    assert "hidden" not in str(error.value)
