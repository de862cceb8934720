"""Every case runs against the servers that `--server` names, in a namespace of its own.

Cases with the marker `needs_controllers` come last, and only they see a garbage collector and a namespace controller at work.
"""

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.contract.client import Api, connect
from tests.contract.crds import serve
from tests.contract.kinds import CLIQUES, NAMESPACES, WIDGETS, Kind
from tests.contract.servers import Server, Servers

HERE = Path(__file__).parent


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server_name" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("server")
        metafunc.parametrize("server_name", ["embedded", "real"] if chosen == "both" else [chosen])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Controllers cannot be told to leave a namespace alone: what needs them comes after what they would disturb."""
    items.sort(key=lambda item: item.path.is_relative_to(HERE) and item.get_closest_marker("needs_controllers") is not None)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    servers = Servers(tmp_path_factory)
    yield servers
    servers.stop()


@pytest.fixture
def server(servers: Servers, server_name: str, request: pytest.FixtureRequest) -> Server:
    server = servers.get(server_name)
    if request.node.get_closest_marker("needs_controllers"):
        server.start_controllers()
    return server


@pytest_asyncio.fixture
async def api(server: Server, server_name: str) -> AsyncIterator[Api]:
    """A client with a new namespace, which stays: servers are thrown away at the end."""
    async with connect(server_name, server.access, f"t-{secrets.token_hex(5)}") as api:
        (await api.create(NAMESPACES, NAMESPACES.new(api.ns))).expect(201)
        yield api


@pytest_asyncio.fixture
async def widgets(api: Api) -> Kind:
    """The kind Widget, served."""
    return await serve(api, WIDGETS)


@pytest_asyncio.fixture
async def cliques(api: Api) -> Kind:
    """The kind PodClique of this project, served."""
    return await serve(api, CLIQUES)
