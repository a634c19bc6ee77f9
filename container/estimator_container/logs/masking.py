"""Hide what looks like a secret in what is shown and kept: by the name that it has, or by its own form.

Only what is shown is changed. A script gets every byte, and its log has every byte that it writes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence

HIDDEN = "<hidden>"


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Names, by their words: `MYSQL_PWD`, `db-password` and `apiKey` are of two each.
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_ALWAYS = _set("password passwords passwd passwort passphrase passcode secret secrets credential credentials creds")
_ALWAYS_ENDS = (
    *("password", "passwd", "passphrase", "secret", "sshpass"),  # as in PGPASSWORD
    *("apikey", "accesskey", "secretkey", "privatekey", "authtoken", "accesstoken"),
)
_OFTEN = _set("auth authorization cookie jwt private")
_ABOUT = _set(
    "arn column count dim dir enabled endpoint expiry field file folder format helper id ids len length manager mode "
    "name names path policy prefix required size sock timeout ttl type uri url version"
)
"""A last word that makes it the name of something that is known about a secret."""
_OF_A_KIND = _set("dev live prod production staging test v value")
"""A last word that tells which of several it is."""
_COUNTS = _set("max min n num total")
"""A first word that makes it the name of a number."""
_KEYS = _set(
    "access account api app auth azure deploy encryption gpg hmac host kaggle license master openai private pgp rsa "
    "secret service session shared signing ssh storage subscription webhook"
)
"""Whose keys are secrets; those of a table or a dict are not."""
_NO_TOKENS = _set(
    "answer audio begin blank bos boundary class cls decoder delimiter empty encoder end eos first forced image "
    "initializer instruction lang language last mask middle modifier new newline next null oov pad padding patch pause "
    "per placeholder prefix prompt question rare sep separator sequence sos space special split start stop suffix text "
    "think unk unknown video vision word"
)
"""Whose tokens are of a vocabulary, unless the value has the looks of a key."""
_NO_PASSES = _set("backward band by first forward high last low n one per second single two")
_NUMBER = re.compile(r"[-+]?[\d.]+(?:e[-+]?\d+)?", re.IGNORECASE)
_TELLS_NOTHING = _set("true false yes no on off none null auto default")
_LIKE_A_KEY = re.compile(r"(?=[^\d]*\d)[\w.~+/=-]{20,}")
"""A value that is neither a short word nor a sentence."""
_A_KEY = "a1" * 20
_OF_A_VOCABULARY = re.compile(r"<.*>|\[.*\]|/(?:[\w.-]+/)*[\w.-]*")
"""A token such as `</s>` and `[PAD]`, or a path."""


def is_secret(name: str, value: object = "something") -> bool:
    """Whether a name says that its value is a secret, and the value may be one.

    >>> is_secret("GH_PAT"), is_secret("db-password"), is_secret("AWS_SECRET_ACCESS_KEY")
    (True, True, True)
    >>> is_secret("max_tokens"), is_secret("TOKENIZERS_PARALLELISM"), is_secret("pad_token"), is_secret("PWD")
    (False, False, False, False)
    """
    words = [word.lower() for word in _WORD.findall(name)]
    text = "" if value is None or isinstance(value, bool) else _text_of(value)
    is_number = _NUMBER.fullmatch(text) is not None
    if not words or not text or text.lower() in _TELLS_NOTHING or (is_number and words[0] in _COUNTS):
        return False
    if len(words) > 1 and words[-1] in _OF_A_KIND:
        del words[-1]
    if words[-3:] == ["access", "key", "id"]:
        return True
    if words[-1] in _ABOUT:
        return False
    if any(word in _ALWAYS or word.endswith(_ALWAYS_ENDS) for word in words):
        return True
    return not is_number and not _OF_A_VOCABULARY.fullmatch(text) and _is_often_secret(words, text)


def _text_of(value: object) -> str:
    """A value as Python writes it; a number of thousands of digits, which it does not write, as another number."""
    if isinstance(value, int):
        return "0"
    try:
        return str(value)
    except ValueError:  # such a number is in it
        return type(value).__name__


def _is_often_secret(words: Sequence[str], text: str) -> bool:
    """Whether a name is of a kind that has other meanings too."""
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last == "key":
        return before in _KEYS
    if last == "token":
        return before not in _NO_TOKENS or _LIKE_A_KEY.fullmatch(text) is not None
    if last in ("pass", "pat", "pwd"):
        return bool(before) and before not in _NO_PASSES
    if last == "keys":
        return before == "api"
    return last in _OFTEN or (before == "auth" and last in ("config", "header"))


# Values.

_END_OF_URL = "\\s\"'`"
_FORMS: tuple[tuple[str, str], ...] = (
    # A URL with a password: up to the last @ before the path; where none is, the password has a slash and is no port.
    (
        "://",
        rf"(?<=://)(?P<before>[^/@:?#\[\]{_END_OF_URL}]*:)"
        rf"(?:[^/?#{_END_OF_URL}]+|(?!\d{{1,5}}(?:[,/?#{_END_OF_URL}]|$))(?:(?!://)[^{_END_OF_URL}])+)(?P<after>@)",
    ),
    ("://", r"(?<=://)(?=\w*\d)\w{20,}(?P<after>@)"),  # a token in the place of a user
    (
        "PRIVATE KEY",
        r"-----BEGIN (?P<kind>[A-Z0-9 ]*)PRIVATE KEY(?: BLOCK)?-----"
        r".*?(?:-----END (?P=kind)PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    ("=", r"(?<=[?&;])(?P<before>(?i:password|passwd|pwd|accountkey|sharedaccesskey|sig)=)[^\s&;\"']+"),
    ("X-Amz-", r"(?P<before>X-Amz-(?:Signature|Credential|Security-Token)=)[^\s&\"']+"),
    ("Bearer", r"(?P<before>\bBearer )[\w.~+/-]{16,}=*"),
    ("Basic", r"(?P<before>\bBasic )[A-Za-z0-9+/]{16,}=*"),
    ("hooks.slack.com", r"(?P<before>hooks\.slack\.com/services/)[\w/]+"),
    ("eyJ", r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"),
    ("gh", r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    ("github_pat_", r"\bgithub_pat_\w{22,}"),
    ("gl", r"\bgl(?:pat|ptt|dt|rt|cbt|oas)-[\w-]{20,}"),
    ("xox", r"\bxox[abeoprs]-[\w-]{10,}"),
    ("xapp-", r"\bxapp-[\w-]{10,}"),
    ("hf_", r"\bhf_[A-Za-z0-9]{30,}"),
    ("sk-", r"\bsk-(?:(?:proj|ant|or|svcacct|admin)-[\w-]{20,}|[A-Za-z0-9]{32,})"),
    ("k_", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("IA", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    ("AIza", r"\bAIza[\w-]{35}"),
    ("ya29.", r"\bya29\.[\w-]{20,}"),
    ("GOCSPX-", r"\bGOCSPX-[\w-]{20,}"),
    ("npm_", r"\bnpm_[A-Za-z0-9]{36}"),
    ("pypi-", r"\bpypi-AgE[\w-]{50,}"),
    ("dapi", r"\bdapi[0-9a-f]{32}\b"),
    ("dop_v1_", r"\bdop_v1_[0-9a-f]{64}"),
    ("dckr_pat_", r"\bdckr_pat_[\w-]{20,}"),
    ("SG.", r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),
    ("hvs.", r"\bhvs\.[\w-]{20,}"),
    ("glsa_", r"\bglsa_\w{32,}"),
    ("AGE-SECRET-KEY-", r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
)
"""What a text has in it that may hold a form, and the pattern of the form. Of that, `before` and `after` stay."""
_AWS_SECRET_LENGTH = 40
_AWS_SECRET = rf"(?<![\w/+.-])[A-Za-z0-9/+]{{{_AWS_SECRET_LENGTH}}}(?![\w/+=.-])"
"""An AWS secret access key has no mark but that it is of so many random characters of base64."""


@functools.lru_cache(maxsize=None)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


def in_text(text: str) -> str:
    """A text without what has the form of a secret.

    >>> in_text("postgres://user:pw@host/db is not https://host:8080/users/@me")
    'postgres://user:<hidden>@host/db is not https://host:8080/users/@me'
    """
    for mark, pattern in _FORMS:
        if mark in text:
            text = _compiled(pattern).sub(_hide_form, text)
    if len(text) < _AWS_SECRET_LENGTH:
        return text
    return _compiled(_AWS_SECRET).sub(lambda found: HIDDEN if _is_random(found[0]) else found[0], text)


def _hide_form(found: re.Match[str]) -> str:
    kept = found.groupdict()
    return f"{kept.get('before', '')}{HIDDEN}{kept.get('after', '')}"


def _is_random(text: str) -> bool:
    """Whether characters look drawn by lot: no path of words, no name in CamelCase, and no hash in hexadecimal."""
    kinds = ["upper" if each.isupper() else "lower" if each.islower() else "other" for each in text]
    pairs = list(zip(kinds, kinds[1:]))
    changes = sum(one != other for one, other in pairs)
    return min(map(kinds.count, ("upper", "lower"))) >= 6 and pairs.count(("upper", "upper")) >= 2 and changes >= 13


# Values that a name tells.

# A text may be 128 KiB long, so none of it is read once for each of many matches: a name begins where no other can go
# on, and a value is looked at only behind a name that tells.
_NAME = r"[A-Za-z_][\w.-]*"
_NAMED = (
    rf"(?:(?<![\w.-])[.-]*(?:(?<=-)(?P<option>{_NAME})[ \t]+|(?P<variable>{_NAME})=)"
    rf"|(?P<mark>[\"'])(?P<member>{_NAME})(?P=mark)\s*:\s*(?=[\"']))"
    r"(?=[^\s|&;<>])"
)
"""An option, a variable or a member of a document, up to its value."""
_VALUE = r"\"[^\"]*\"|'[^']*'|[^\s\"'|&;<>]+"


def in_line(text: str) -> str:
    """The same, and without values that a name tells, as in a line for a shell.

    >>> in_line("API_TOKEN=abc ./fit --db-password 'x y' --max_tokens 5")
    'API_TOKEN=<hidden> ./fit --db-password <hidden> --max_tokens 5'
    """
    text = in_text(text)
    if not any(mark in text for mark in "-=:"):
        return text
    shown, at = [], 0
    for found in _compiled(_NAMED).finditer(text):
        value = _told_value(found) if found.end() >= at else None
        if value is not None:
            shown += [text[at : value.start()], HIDDEN]
            at = value.end()
    return "".join((*shown, text[at:]))


def _told_value(found: re.Match[str]) -> re.Match[str] | None:
    """The value that a name tells to be a secret; after an option, another option is no value."""
    name = found["option"] or found["variable"] or found["member"]
    value = _compiled(_VALUE).match(found.string, found.end()) if is_secret(name, _A_KEY) else None
    if value is None or not is_secret(name, value[0].strip("\"'")):
        return None
    return None if found["option"] and value[0].strip("\"'").startswith("--") else value


def in_words(words: Iterable[str]) -> tuple[str, ...]:
    """A command without the values of options and variables that a name tells, and what has the form of a secret.

    >>> in_words(["./fit", "--db-password", "x y", "--token=abc", "A=b", "--lr", "1"])
    ('./fit', '--db-password', '<hidden>', '--token=<hidden>', 'A=b', '--lr', '1')
    """
    shown: list[str] = []
    option = ""
    for word in words:
        hidden = option and is_secret(option, word) and not word.startswith("--")
        shown.append(HIDDEN if hidden else in_line(word))
        option = word.lstrip("-") if word.startswith("-") and "=" not in word else ""
    return tuple(shown)


def in_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """The same variables without the values of those that are secrets."""
    return {name: HIDDEN if is_secret(name, value) else in_line(value) for name, value in variables.items()}


def in_value(value: object) -> object:
    """A JSON value, and all that is in it."""
    if isinstance(value, str):
        return in_line(value)
    if isinstance(value, Mapping):
        return {key: HIDDEN if _hides(key, item) else in_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        words = all(isinstance(item, str) for item in value)
        return list(in_words(value)) if words else [in_value(item) for item in value]
    return value


def _hides(key: str, item: object) -> bool:
    return isinstance(item, (str, int, float)) and is_secret(key, item)
