"""Pages for kind and for a cluster that exists do what they say, block by block, from the first installation to the last trace.

One story like the other files, after them: a page finds what the pages before it left.
"""

from collections.abc import Generator
from pathlib import Path

import pytest
import pytest_asyncio

from api.registry import MODELS, crd_name
from e2e.kind.live import CRD, NAMESPACES, Kubectl, Live
from e2e.kind.wipe import wipe
from hack.codegen.files import ROOT
from hack.docs.machine import reader
from hack.docs.pages import Session, pages, sessions
from hack.docs.run import Machine, run
from hack.kind import KindCluster

# The image is built, pushed and loaded in between.
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(1200)]

BLOCK_TIMEOUT_S = 600
CLUSTER_STORY = ("docs/quickstart.md", "docs/upgrade.md", "docs/troubleshooting.md", "docs/uninstall.md", "docs/helm.md")
KIND_STORY = ("README.md", "docs/quickstart.md")
PART_OF = "app.kubernetes.io/part-of=grovekeeper"
NAMES = ("grovekeeper-system", "kind-e2e", "models")


def story(environment: str, order: tuple[str, ...]) -> list[Session]:
    """Sessions of the pages in that order."""
    return [s for page in order for s in sessions(ROOT / page) if s.environment == environment]


ON_CLUSTER = story("cluster", CLUSTER_STORY)
ON_KIND = story("kind", KIND_STORY)


@pytest.fixture(scope="module")
def cluster_reader(kind_cluster: KindCluster, tmp_path_factory: pytest.TempPathFactory) -> Generator[Machine]:
    """One machine for all pages about a cluster: an overlay that one page writes is used by the next."""
    with reader(tmp_path_factory.mktemp("cluster"), "cluster") as machine:
        yield machine


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clean(kind_cluster: KindCluster, live: Live, kubectl: Kubectl) -> None:
    """Nothing is left of the tests before."""
    await wipe(live, kubectl, NAMES)


async def traces(live: Live, kubectl: Kubectl) -> set[str]:
    """What an installation leaves where it was removed badly."""
    kinds = {c["metadata"]["name"] for c in await live.objects(CRD)} & {crd_name(model) for model in MODELS}
    labelled = await kubectl("get", "namespaces,clusterroles,clusterrolebindings", "-l", PART_OF, "-o", "name")
    namespaces = {n["metadata"]["name"] for n in await live.objects(NAMESPACES)} & {"grovekeeper-system"}
    return kinds | namespaces | set(labelled.split())


async def test_the_stories_leave_no_page_out() -> None:
    for environment, order in (("cluster", CLUSTER_STORY), ("kind", KIND_STORY)):
        assert {str(p.relative_to(ROOT)) for p in pages() if story(environment, (str(p.relative_to(ROOT)),))} == set(order)


@pytest.mark.parametrize("session", ON_CLUSTER, ids=[s.name for s in ON_CLUSTER])
async def test_page_about_a_cluster(session: Session, cluster_reader: Machine, clean: None) -> None:
    run(session, cluster_reader, timeout_s=BLOCK_TIMEOUT_S)


async def test_nothing_is_left_after_the_pages_about_a_cluster(cluster_reader: Machine, live: Live, kubectl: Kubectl) -> None:
    assert await traces(live, kubectl) == set()


@pytest.mark.parametrize("session", ON_KIND, ids=[s.name for s in ON_KIND])
async def test_page_about_kind(session: Session, clean: None, tmp_path: Path) -> None:
    with reader(tmp_path, "kind") as machine:
        run(session, machine, timeout_s=BLOCK_TIMEOUT_S)


async def test_nothing_is_left_after_the_pages_about_kind(live: Live, kubectl: Kubectl) -> None:
    assert await traces(live, kubectl) == set()
