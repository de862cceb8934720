"""Writes manifests/crds from the models. With --check nothing is written; exit code 1 and a list of stale files if there are any."""

import argparse
import sys

from hack.codegen.crd import FOLDER, files, stale


def main() -> int:
    parser = argparse.ArgumentParser(prog="hack.codegen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell which files are stale")
    found = stale()
    if parser.parse_args().check:
        for path in found:
            print(f"stale: {path.relative_to(FOLDER.parents[1])}")
        return 1 if found else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = files()
    for path in found:
        if path in wanted:
            path.write_text(wanted[path])
        else:
            path.unlink()
        print(f"{'wrote' if path in wanted else 'removed'} {path.relative_to(FOLDER.parents[1])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
