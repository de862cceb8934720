"""A whole plugin against the published plugin.proto, as its author would write it: python plugin_sample.py GATEWAY TOKEN.

Code of the messages is made with: python -m grpc_tools.protoc -I. --python_out=. --grpc_python_out=. plugin.proto
"""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUntypedBaseClass=false
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
import plugin_pb2 as pb
import plugin_pb2_grpc as rpc


class Floor(rpc.ProposePluginServicer):
    calls = 0

    def Propose(self, request: pb.ProposeStageRequest, context: grpc.ServicerContext) -> pb.ProposeStageResponse:
        self.calls += 1
        if 2 <= self.calls <= 6:
            context.abort(grpc.StatusCode.INTERNAL, "out of order")
        ready = request.context.observations.workers.ready_decode
        target = pb.ComponentTarget(sub_component_type="decode", replicas=ready + 2, type=pb.AT_LEAST)
        return pb.ProposeStageResponse(override=pb.OverrideResult(targets=[target], reason="two more"))


server = grpc.server(ThreadPoolExecutor(2))
rpc.add_ProposePluginServicer_to_server(Floor(), server)
port = server.add_insecure_port("127.0.0.1:0")
server.start()
planner = rpc.PluginRegistryStub(grpc.insecure_channel(sys.argv[1]))
me = {"plugin_id": "floor", "plugin_type": "propose", "priority": 5, "endpoint": f"grpc://127.0.0.1:{port}", "protocol_version": "1.0"}
answer = planner.Register(pb.RegisterRequest(**me, execution_interval_seconds=10, hold_policy=pb.HOLD_LAST, auth_token=sys.argv[2]))
print(answer.reject_reason or "registered", flush=True)  # noqa: T201
server.wait_for_termination(60 if answer.accepted else 0)
