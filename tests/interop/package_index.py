"""An index of packages as firms have it: behind TLS of an authority of its own, and a password."""

from __future__ import annotations

import base64
import contextlib
import http.server
import io
import ssl
import subprocess
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

USER, PASSWORD = "reader", "only/for+pip"


def wheel(name: str, word: str) -> bytes:
    """A wheel whose module has a WORD."""
    made = io.BytesIO()
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(f"{name}.py", f"WORD = {word!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return made.getvalue()


def write_index(folder: Path, name: str) -> None:
    """An index as mirrors lay it out: pages in `simple`, which link to files beside it."""
    file = f"{name}-1.0-py3-none-any.whl"
    page = folder / "simple" / name.replace("_", "-") / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<!DOCTYPE html><html><body><a href="../../files/{file}">{file}</a></body></html>')
    (folder / "files").mkdir()
    (folder / "files" / file).write_bytes(wheel(name, "from the index"))


@contextlib.contextmanager
def running(folder: Path, address: str, keys: Path, on_request: Callable[[], None]) -> Iterator[str]:
    """Serve a folder to who has the password; gives the URL of its `simple`, without one."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            on_request()
            given = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            if self.headers.get("Authorization") == f"Basic {given}":
                super().do_GET()
                return
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="packages"')
            self.end_headers()

        def log_message(self, format: str, *values: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer((address, 0), lambda *given: Handler(*given, directory=str(folder)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*_certificate(keys, address))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://{address}:{server.server_port}/simple"
    server.shutdown()
    thread.join()
    server.server_close()


def with_password(url: str) -> str:
    return url.replace("https://", f"https://{USER}:{quote(PASSWORD, safe='')}@")


def authority(keys: Path) -> Path:
    """The certificate of an authority that nobody knows."""
    made = keys / "authority.pem"
    if not made.exists():
        subject = ["-subj", "/CN=authority of a test", "-keyout", str(keys / "authority.key"), "-out", str(made)]
        _openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject)
    return made


def _certificate(keys: Path, address: str) -> tuple[Path, Path]:
    request, key, made, names = (keys / name for name in ("server.csr", "server.key", "server.pem", "names"))
    names.write_text(f"subjectAltName=IP:{address}\n")
    _openssl(
        "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={address}", "-keyout", str(key), "-out", str(request)
    )
    by = ["-CA", str(authority(keys)), "-CAkey", str(keys / "authority.key"), "-CAcreateserial", "-extfile", str(names)]
    _openssl("x509", "-req", "-days", "2", "-in", str(request), "-out", str(made), *by)
    return made, key


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)
