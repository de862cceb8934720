"""Writes manifests/crds from the models, docs/reference from the code, manifests/chart from manifests/base and the
messages of plugins from plugin.proto.

With --check nothing is written; exit code 1 and a list of stale files if there are any.
"""

import argparse
import sys

from hack.chart import files as chart
from hack.codegen import crd, protobuf, reference
from hack.codegen.files import ROOT


def main() -> int:
    parser = argparse.ArgumentParser(prog="hack.codegen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell which files are stale")
    options = parser.parse_args()
    found = [*crd.stale(), *reference.stale(), *chart.stale(), *protobuf.stale()]
    if options.check:
        for path in found:
            print(f"stale: {path.relative_to(ROOT)}")
        return 1 if found else 0
    wanted = {**crd.files(), **reference.files(), **chart.files(), **protobuf.files()}
    for path in found:
        if path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()
        print(f"{'wrote' if path in wanted else 'removed'} {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
