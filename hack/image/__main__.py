"""python -m hack.image: builds the image without pulling any, and measures it."""

import argparse
import contextlib
import sys
import time

from hack.image.base import make_base
from hack.image.check import checks
from hack.image.context import Source, of_revision, of_working_tree
from hack.image.docker import Docker, ImageError, Report, find_docker
from hack.image.measure import measurements
from hack.image.wheels import MACHINES, put_wheels
from hack.kube.cache import silent


def say(line: str) -> None:
    """One line on standard output, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Exit code: 0 fine, 1 failed, 2 wrong arguments."""
    options = _parser().parse_args()
    try:
        if options.wheels_only:
            put_wheels(of_working_tree().folder, options.arch or list(MACHINES), say)
            return 0
        docker = find_docker()
        with of_revision(options.revision) if options.revision else contextlib.nullcontext(of_working_tree()) as source:
            tags = options.tag or _tags(source, options.revision)
            _build(docker, source, tags, options)
        for line in measurements(docker, tags[0]):
            say(line)
        for line in checks(tags[0]) if options.check else ():
            say(line)
    except ImageError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hack.image",
        description="Builds the image with what package registries have: a base of Debian packages, and the wheels of the lock.",
    )
    parser.add_argument(
        "--tag", action="append", metavar="NAME:TAG", help="may be repeated (default grovekeeper:dev and grovekeeper:VERSION)"
    )
    parser.add_argument("--revision", metavar="REV", help="build this commit instead of the working tree (default tag grovekeeper:COMMIT)")
    parser.add_argument("--base", metavar="IMAGE", help="build on this image instead of making a base; NAME@sha256:... pins it")
    parser.add_argument("--fresh-base", action="store_true", help="make the base anew, with Debian's newest updates")
    parser.add_argument("--check", action="store_true", help="run every program in it, restricted as in a cluster")
    parser.add_argument("--verbose", action="store_true", help="show what debootstrap, pip and docker print")
    parser.add_argument("--wheels-only", action="store_true", help="only fill build/wheels, for `docker build` without network")
    parser.add_argument("--arch", action="append", choices=list(MACHINES), help="of --wheels-only; may be repeated (default all)")
    return parser


def _tags(source: Source, revision: str | None) -> list[str]:
    if revision:
        return [f"grovekeeper:{source.revision[:12]}"]
    return ["grovekeeper:dev", f"grovekeeper:{source.version}"]


def _build(docker: Docker, source: Source, tags: list[str], options: argparse.Namespace) -> None:
    report, begin = say if options.verbose else silent, time.perf_counter()
    base = options.base or make_base(docker, _headings(report), fresh=options.fresh_base)
    put_wheels(source.folder, [docker.architecture], _headings(report))
    say(f"building {' and '.join(tags)} from {source.revision[:12]} on {base}")
    arguments = {"BASE": base, "VERSION": source.version, "REVISION": source.revision}
    docker.build(source.folder, tags, arguments, report)
    say(f"built in {time.perf_counter() - begin:.0f} s")


def _headings(report: Report) -> Report:
    """Shows what is begun, and passes on indented lines, which are a program's."""
    return lambda line: report(line) if line.startswith("  ") else say(line)


if __name__ == "__main__":
    sys.exit(main())
