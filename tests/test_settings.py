import pytest

from tis.setting_types import SettingsError
from tis.settings import OTHER_NAMES, Settings


def settings(**variables: str) -> Settings:
    return Settings.from_env(variables, env_file=None)


def test_defaults_hold_when_nothing_is_set() -> None:
    chosen = settings()
    assert (chosen.port, chosen.host, chosen.model_repo_id) == (3000, "127.0.0.1", "Qwen/Qwen3-VL-2B-Thinking")
    assert (chosen.max_tokens, chosen.temperature, chosen.api_keys) == (4096, 0.7, ())


def test_an_empty_value_means_the_default() -> None:
    assert settings(PORT="", HF_TOKEN="").port == 3000


def test_the_environment_wins_over_the_env_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / ".env").write_text("PORT=4000\nHOST=0.0.0.0\n")
    chosen = Settings.from_env({"PORT": "5000"}, env_file=tmp_path / ".env")
    assert (chosen.port, chosen.host) == (5000, "0.0.0.0")


def test_lists_are_split_at_commas() -> None:
    keys = settings(API_KEYS="one, two,,").api_keys
    assert [key.get_secret_value() for key in keys] == ["one", "two"]


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("PORT", "99999", "1 to 65535"),
        ("PORT", "three thousand", "1 to 65535"),
        ("TORCH_DTYPE", "int4", "'float32'"),
        ("QUANTIZE", "int2", "'int8'"),
        ("CACHE_DTYPE", "float8", "'int8'"),
        ("EAGER_LOAD_MODEL", "perhaps", "boolean"),
        ("MAX_QUEUE_SIZE", "0", "greater than or equal to 1"),
        ("STRICT_MODEL", "maybe", "'auto', '0' or '1'"),
    ],
)
def test_a_bad_value_is_one_line_with_variable_value_and_what_is_allowed(
    variable: str, value: str, allowed: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        settings(**{variable: value})
    line = str(refused.value)
    assert variable in line and value in line and allowed in line and "\n" not in line


def test_keys_that_are_none_do_not_open_the_server() -> None:
    with pytest.raises(SettingsError, match=r"API_KEYS=\(hidden\)"):
        settings(API_KEYS=" , ")


def test_two_quantisations_exclude_each_other() -> None:
    with pytest.raises(SettingsError, match="LOAD_IN_4BIT and LOAD_IN_8BIT"):
        settings(LOAD_IN_4BIT="1", LOAD_IN_8BIT="1")


def test_secrets_do_not_show() -> None:
    assert "sesame" not in repr(settings(API_KEYS="sesame", HF_TOKEN="sesame"))


def test_names_from_elsewhere_are_read_and_ours_win() -> None:
    chosen = settings(ALLOW_REMOTE_IMAGES="0", REMOTE_IMAGE_TIMEOUT="5", MAX_REMOTE_IMAGE_BYTES="5242880")
    assert (chosen.allow_remote_media, chosen.media_timeout_seconds, chosen.max_media_mb) == (False, 5, 5)
    assert settings(REMOTE_IMAGE_TIMEOUT="5", MEDIA_TIMEOUT_SECONDS="7").media_timeout_seconds == 7
    for name, ours in OTHER_NAMES.items():
        assert name in str(Settings.model_fields[ours].description)


@pytest.mark.parametrize(("variable", "value"), [("MAX_REMOTE_IMAGE_BYTES", "5 MB"), ("REMOTE_IMAGE_TIMEOUT", "-1")])
def test_a_bad_value_under_another_name_is_shown_under_that_name(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^{variable}='{value}'"):
        settings(**{variable: value})


@pytest.mark.parametrize(
    "secret",
    [
        "hunter2",
        "x" * 31,
        "x" * 64,
        "your-secret-key-change-in-production",
        "CHANGEME-changeme-CHANGEME-changeme",
        "your_secret_key_of_thirty_two_bytes_or_more",
    ],
)
def test_a_secret_that_others_know_is_refused_and_not_shown(secret: str) -> None:
    with pytest.raises(SettingsError, match=r"JWT_SECRET_KEY=\(hidden\)") as refused:
        settings(JWT_SECRET_KEY=secret)
    assert secret not in str(refused.value)


def test_servers_that_share_a_database_need_a_secret_to_share() -> None:
    assert settings(DATABASE_URL="sqlite:///x.db").jwt_secret_key is None
    with pytest.raises(SettingsError, match="JWT_SECRET_KEY must be set where DATABASE_URL is not SQLite"):
        settings(DATABASE_URL="postgresql://somebody@localhost/market")
    assert settings(DATABASE_URL="postgresql://somebody@localhost/market", JWT_SECRET_KEY="0123456789abcdef" * 2)


def test_mails_need_a_sender_and_an_address_for_their_links() -> None:
    smtp = {
        "SMTP_HOST": "mail.example.com",
        "MAIL_FROM": "Shop <noreply@example.com>",
        "PUBLIC_URL": "https://x.example/",
    }
    assert settings(**smtp).public_url == "https://x.example"
    for name in ("MAIL_FROM", "PUBLIC_URL"):
        with pytest.raises(SettingsError, match=f"{name} must be set where SMTP_HOST is"):
            settings(**{**smtp, name: ""})
    with pytest.raises(SettingsError, match="SMTP_HOST and MAIL_FOLDER exclude each other"):
        settings(**smtp, MAIL_FOLDER="mails")
    for wrong in ({"MAIL_FROM": "nobody"}, {"PUBLIC_URL": "x.example"}, {"PUBLIC_URL": "https://x.example/?a=b"}):
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            settings(**{**smtp, **wrong})


def test_the_marketplace_asks_for_tokens_unless_told_otherwise() -> None:
    assert settings().marketplace_auth == "required"


@pytest.mark.parametrize("host", ["", "127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_the_open_marketplace_listens_to_this_computer(host: str) -> None:
    assert settings(MARKETPLACE_AUTH="open", HOST=host).marketplace_auth == "open"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "market.example.com", "localhost.example.com"])
def test_the_open_marketplace_does_not_start_for_others(host: str) -> None:
    with pytest.raises(SettingsError) as refused:
        settings(MARKETPLACE_AUTH="open", HOST=host)
    line = str(refused.value)
    assert host in line and "MARKETPLACE_AUTH=required" in line and "\n" not in line
    assert settings(MARKETPLACE_AUTH="required", HOST=host).host == host


def test_who_had_the_marketplace_guess_is_told_what_to_set() -> None:
    with pytest.raises(SettingsError, match=r"^MARKETPLACE_AUTH='auto': .*`open`.*`required`"):
        settings(MARKETPLACE_AUTH="auto")
