"""Build a training image: `python -m estimator_sdk.images tensorflow --framework-version 2.21`.

An estimator does this by itself when it first needs an image. The base is pulled by name. Where nothing can be pulled,
`--debian-base` makes one from Debian's packages with `debootstrap` (as root, about half a minute) and uses that.

Behind a proxy with a certificate authority of its own, PIP_CERT or SSL_CERT_FILE of this machine says where its
certificates are; the stages that install packages use them, and the image does not hold them.
"""

from __future__ import annotations

import argparse
import sys

from ..docker import engine
from ..errors import EstimatorError
from . import base, build, catalogue


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m estimator_sdk.images",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="images:\n" + "".join(f"  {image.name}\n" for image in catalogue.everything()),
    )
    parser.add_argument("framework", choices=["mpi", *catalogue.VERSIONS])
    parser.add_argument("--framework-version", help="such as 2.21 (default: the newest)")
    parser.add_argument("--base", help=f"the image to build on (default: {base.PULLED})")
    parser.add_argument("--debian-base", action="store_true", help="make the base from Debian's packages")
    parser.add_argument("--tag", help="the image's name (default: the one by which an estimator finds it)")
    settings = parser.parse_args(argv)
    try:
        version = settings.framework_version
        chosen = catalogue.find(settings.framework, version) if version else catalogue.newest(settings.framework)
        client = engine.connect()
        under = base.make(client, sys.stdout) if settings.debian_base else settings.base
        name = settings.tag or chosen.name
        build.build(client, chosen, name, under, sys.stdout)
    except EstimatorError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    print(f"use it as image_uri={name!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
