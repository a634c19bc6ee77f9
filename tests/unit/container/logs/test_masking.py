import random
import re
import string

import pytest
from estimator_container.logs.masking import HIDDEN, in_line, in_text, in_value, in_variables, in_words, is_secret
from hypothesis import given
from hypothesis import strategies as st

LETTERS = string.ascii_letters + string.digits
LIKE_A_KEY = "q7" * 12
BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----"
GIT = "c3edd14f0b8a1d2e3f405162738495a6b7c8d9e0"


def token(length: int, seed: int = 0, letters: str = LETTERS) -> str:
    """Made here, so that no file of ours has the form of a secret in it."""
    return "".join(random.Random(seed).choices(letters, k=length))


AWS = "wJalr" + "XUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY"
TOKENS = [
    f"ghp_{token(36)}",
    f"github_pat_{token(22)}_{token(59)}",
    f"glpat-{token(20)}",
    f"xoxb-{token(12)}-{token(24)}",
    f"hf_{token(34)}",
    f"sk-{token(48)}",
    f"sk-proj-{token(40)}",
    f"sk-ant-api03-{token(80)}",
    f"sk_live_{token(24)}",
    f"AKIA{token(16, letters=string.ascii_uppercase)}",
    f"ASIA{token(16, letters=string.ascii_uppercase)}",
    f"AIza{token(35)}",
    f"npm_{token(36)}",
    f"pypi-AgEIcHlwaS5vcmc{token(80)}",
    f"eyJ{token(30)}.eyJ{token(60)}.{token(43)}",
    f"dapi{token(32, letters='0123456789abcdef')}",
    f"SG.{token(22)}.{token(43)}",
    f"dckr_pat_{token(27)}",
    AWS,
    BLOCK,
    BLOCK.replace("\n", "\\n"),
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----",
]


@pytest.mark.parametrize("secret", TOKENS)
def test_a_secret_is_known_by_its_form_wherever_it_stands(secret):
    assert in_text(secret) == HIDDEN
    for around in ("a {} b", '{{"x": "{}"}}', "Error: bad key '{}', try again", "x={}"):
        shown = in_text(around.format(secret))
        assert secret not in shown and HIDDEN in shown
        assert in_variables({"NAME": around.format(secret)})["NAME"] == shown
    assert in_words(["--name", secret]) == ("--name", HIDDEN)
    assert in_value([{"a": [secret, 1]}]) == [{"a": [HIDDEN, 1]}]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgres://u:pw@host/db", "postgres://u:<hidden>@host/db"),
        ("postgres://u:p@s:s@host:5432/db?x=1", "postgres://u:<hidden>@host:5432/db?x=1"),
        ("postgres://u:p/w@host/db", "postgres://u:<hidden>@host/db"),
        ("https://0123456789abcdef0123456789abcdef@host/1", "https://<hidden>@host/1"),
        ("redis://:pw@host:6379/0", "redis://:<hidden>@host:6379/0"),
        ("mongodb+srv://u:pw@h1:27017,h2:27017/db", "mongodb+srv://u:<hidden>@h1:27017,h2:27017/db"),
        ("see http://u:pw@proxy:3128, or not", "see http://u:<hidden>@proxy:3128, or not"),
        ('["https://a/b", "amqp://u:pw@h"]', '["https://a/b", "amqp://u:<hidden>@h"]'),
        ("jdbc:mysql://h/db?user=u&password=pw&x=1", "jdbc:mysql://h/db?user=u&password=<hidden>&x=1"),
        ("AccountName=n;AccountKey=abc/+==;Suffix=x", "AccountName=n;AccountKey=<hidden>;Suffix=x"),
        (f"Authorization: Bearer {token(40)}", "Authorization: Bearer <hidden>"),
        ("https://hooks.slack.com/services/T0/B0/xyz", "https://hooks.slack.com/services/<hidden>"),
        ("https://b.s3.amazonaws.com/k?X-Amz-Signature=ab&x=1", "https://b.s3.amazonaws.com/k?X-Amz-Signature=<hidden>&x=1"),
    ],
)  # fmt: skip
def test_of_a_url_only_the_secret_is_hidden(text, shown):
    assert in_text(text) == shown


ORDINARY = [
    "",
    "0.001",
    "1e-5",
    "-1",
    "True",
    "train.py",
    "/data/imagenet/train-00001-of-01024.tfrecord",
    "/home/User1/projects/models/checkpoint12",
    "/Users/JohnDoe1/Projects/MyModels/Run2023",
    "models/ResNet50/ImageNet2012/Run2023/Ck1",
    "MyVeryLongClassNameForTrainingWithIDs123",
    GIT,
    GIT.upper(),
    "sha256:" + GIT + GIT[:24],
    f"file:///root/.local/share/estimator-sdk/code/{GIT}{GIT[:24]}.tar.gz",
    "123456789012.dkr.ecr.eu-west-1.amazonaws.com/estimator:mpi",
    f"registry:5000/team/image:tag@sha256:{GIT}",
    f"docker://registry:5000/team/image:tag@sha256:{GIT}",
    "arn:aws:iam::123456789012:role/service-role/AmazonSageMaker-ExecutionRole-20230101T000000",
    "s3://bucket/path/with@sign/and:colon",
    "https://example.com/a?b=c&d=e#f",
    "https://host:8080/users/@me",
    "http://[::1]:8080/users/@me",
    "http://localhost:5000,http://localhost:5001",
    "kafka://h1:9092,h2:9092/topic@2",
    "git+ssh://git@github.com/org/repo.git@v1.2",
    "user@example.com",
    "123e4567-e89b-12d3-a456-426614174000",
    "sk-learn-pipeline-with-a-long-name-of-experiment",
    "hf_model",
    "gh_pages",
    "bert-base-uncased",
    "facebook/opt-125m",
    "loss: ([0-9.]+)",
    "-mca btl_tcp_if_include eth0 -x NCCL_DEBUG=INFO",
    "a=1,b=2",
    "<s>",
    "x" * 40,
    "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMN",
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    "ssh-rsa AAAAB3NzaC1yc2E user@host",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_what_is_ordinary_stays_as_it_is(text):
    assert (in_text(text), in_line(text)) == (text, text)
    assert in_variables({"NAME": text}) == {"NAME": text}
    assert in_words(["python", "train.py", "--name", text, text]) == ("python", "train.py", "--name", text, text)


SECRET_NAMES = """PASSWORD password db-password DB_PASSWD PGPASSWORD MYSQL_PWD MYSQL_ROOT_PASSWORD dbPassword SMTP_PASS
    SSHPASS GH_PAT GITHUB_PAT AZURE_DEVOPS_EXT_PAT GITHUB_TOKEN HF_TOKEN token auth_token accessToken AWS_SESSION_TOKEN
    AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID API_KEY api-key OPENAI_API_KEY WANDB_API_KEY APIKEY apikey client_secret
    CLIENTSECRET SECRET secret_key DJANGO_SECRET_KEY private_key SSH_PRIVATE_KEY PASSPHRASE GPG_PASSPHRASE CREDENTIALS
    BASIC_AUTH REDIS_AUTH NPM_CONFIG__AUTH DOCKER_AUTH_CONFIG AZURE_STORAGE_KEY ENCRYPTION_KEY SESSION_COOKIE API_KEY_2
    MY_TOKEN_SECRET PASSWORD1 KAGGLE_KEY AZURE_OPENAI_KEY API_KEYS SERVICE_JWT GITHUB_TOKEN_PROD GH_TOKEN_V2
    DB_PASSWORD_VALUE BOT_TOKEN user_token TRIGGER_TOKEN deploy_token task_token ASSISTANT_TOKEN max_token"""
OTHER_NAMES = """lr batch_size PWD OLDPWD PATH HOME AUTHOR author authors authority tokenizer TOKENIZERS_PARALLELISM
    tokenizer_path max_tokens num_tokens tokens_per_batch pad_token eos_token mask_token eos_token_id bos_token
    special_token key keys sort_key label_key image_key primary_key num_keys key_dim public_key output_kms_key
    KMS_KEY_ID SSH_AUTH_SOCK password_length PASSWORD_FILE SECRET_NAME SECRET_ARN AWS_SHARED_CREDENTIALS_FILE TOKEN_URL
    auth_type forward_pass one_pass by_pass pass num_passes path pattern n_pat compat monkey keyboard secretary_id
    bypass
    attention_heads author_embedding passage_length compass SM_HPS session_keys
    pad_token_value dataset_v2 prod token_count tokens_per_second decoder_token decoder_token_id encoder_token
    decoder_start_token_id forced_bos_token oov_token sos_token placeholder_token initializer_token blank_token"""


@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_a_name_tells_that_its_value_is_a_secret(name):
    assert is_secret(name)
    assert in_variables({name: "hunter two"}) == {name: HIDDEN}
    assert in_words(["./fit", f"--{name}", "hunter two", "-x"]) == ("./fit", f"--{name}", HIDDEN, "-x")
    assert in_words([f"--{name}=hunter two", f"{name}=hunter"]) == (f"--{name}={HIDDEN} two", f"{name}={HIDDEN}")
    assert in_line(f"{name}='hunter two' ./fit --{name} hunter; x") == f"{name}={HIDDEN} ./fit --{name} {HIDDEN}; x"
    assert in_value({"a": {name: "hunter"}}) == {"a": {name: HIDDEN}}
    assert in_line(f'{{"{name}": "hunter"}}') == f'{{"{name}": {HIDDEN}}}'


@pytest.mark.parametrize("name", OTHER_NAMES.split())
def test_any_other_name_tells_nothing(name):
    assert not is_secret(name)
    assert in_words(["./fit", f"--{name}", "x", f"--{name}=x"]) == ("./fit", f"--{name}", "x", f"--{name}=x")
    assert in_value({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("password", 123456, True),
        ("use_auth", True, False),
        ("use_auth", "true", False),
        ("auth", None, False),
        ("password", "", False),
        ("token", 5, False),
        ("my_token", "<pad>", False),
        ("sep_char_token", "[SEP]", False),
        ("HF_TOKEN", "x", True),
        ("GOOGLE_API_KEY", "/etc/key", False),
        ("decoder_token", 50257, False),
        ("decoder_token", "eos", False),
        ("decoder_token", "a sentence of many words, as 1 prompt", False),
        ("decoder_token", LIKE_A_KEY, True),
        ("pad_token", LIKE_A_KEY, True),
        ("decoder_token_id", LIKE_A_KEY, False),
        ("max_token", 512, False),
        ("max_password", 5, False),
        ("max_password", "abc", True),
    ],
)
def test_a_value_may_tell_that_it_is_none(name, value, secret):
    assert is_secret(name, value) == secret


def test_a_key_is_hidden_under_the_name_of_a_vocabulary_s_token_too():
    for line in (f"./fit --decoder_token {LIKE_A_KEY}; x", f"PAD_TOKEN='{LIKE_A_KEY}' ./fit"):
        assert in_line(line) == line.replace("'", "").replace(LIKE_A_KEY, HIDDEN)
    assert in_words(["--decoder_token", LIKE_A_KEY, "--pad_token", "eos"]) == (
        "--decoder_token", HIDDEN, "--pad_token", "eos"
    )  # fmt: skip


def test_the_value_of_one_name_may_be_another_name():
    assert (
        in_line("-x MY_TOKEN=a -x --y B='c' --z 'MY_TOKEN=d e'")
        == "-x MY_TOKEN=<hidden> -x --y B='c' --z 'MY_TOKEN=<hidden> e'"
    )
    assert in_words(["mpirun", "-x", "MY_TOKEN=a"]) == ("mpirun", "-x", "MY_TOKEN=<hidden>")


def test_an_option_without_a_value_hides_no_other_option():
    words = ("./fit", "--use-auth", "--lr", "0.1", "--token", "--verbose")
    assert in_words(words) == words
    assert in_line("./fit --token --verbose") == "./fit --token --verbose"


def test_a_random_key_of_aws_is_nearly_always_told():
    keys = [token(40, seed, LETTERS + "/+") for seed in range(500)]
    assert sum(in_text(key) == HIDDEN for key in keys) > 470


@given(st.lists(st.text()), st.dictionaries(st.text(), st.text()))
def test_what_is_hidden_once_stays_as_it_is(words, variables):
    assert in_words(in_words(words)) == in_words(words)
    assert in_variables(in_variables(variables)) == in_variables(variables)


@given(st.floats() | st.integers(), st.from_regex(re.compile(r"(/?[a-z0-9_.]{1,12}){1,6}", re.ASCII), fullmatch=True))
def test_numbers_and_paths_are_never_hidden(number, path):
    assert in_text(str(number)) == str(number)
    assert in_text(path) == path
    assert in_words(["--lr", str(number), "--data", path]) == ("--lr", str(number), "--data", path)
