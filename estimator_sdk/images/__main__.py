"""Build a training image: `python -m estimator_sdk.images tensorflow --framework-version 2.21`.

An estimator does this by itself when it first needs an image. The base is pulled by name. Where nothing can be pulled,
`--debian-base` makes one from Debian's packages with `debootstrap` (as root, about half a minute) and uses that.

Behind a proxy with a certificate authority of its own, PIP_CERT or SSL_CERT_FILE of this machine says where its
certificates are; the stages that install packages use them, and the image does not hold them.
"""

from __future__ import annotations

import argparse
import sys

from ..cli.images import add_build_options, build
from ..errors import EstimatorError
from . import catalogue


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m estimator_sdk.images",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="images:\n" + "".join(f"  {image.name}\n" for image in catalogue.everything()),
    )
    add_build_options(parser)
    try:
        name = build(parser.parse_args(argv), sys.stdout)
    except EstimatorError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    print(f"use it as image_uri={name!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
