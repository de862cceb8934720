"""Plugins that are objects of this process. Source: planner.md §8.4, §9.

Such an object has a method named as its stage that takes a StageRequest and answers PredictResponse (predict) or StageResponse. It may be a
coroutine. Optional: `bootstrap()` and `warm_from_observations(history)`, called before the first tick.
"""

import importlib
from collections.abc import Callable, Coroutine
from inspect import iscoroutine
from typing import TypeAlias, cast

from controllers.planner.config.parts import InProcessPlugin
from controllers.planner.plugins.records import Call, Failure, FailureKind, Plugin, PredictResponse, StageRequest, StageResponse

__all__ = ("ENDINGS", "Method", "attribute_of", "call_now", "construct", "failure_of", "method_of")

Result: TypeAlias = PredictResponse | StageResponse | Failure
Method: TypeAlias = Callable[[StageRequest], object]
ENDINGS = (SystemExit, GeneratorExit)
"""What a plugin may raise that is no Exception and yet not the user's interrupt."""


def method_of(call: Call) -> Method | Failure:
    """What to call; a failure if the plugin is elsewhere or has no such method."""
    plugin = call.plugin
    if not plugin.in_process:
        return Failure(FailureKind.CONNECTION, f"{plugin.endpoint} is not in this process")
    return attribute_of(plugin, plugin.stage)


def attribute_of(plugin: Plugin, name: str) -> Method | Failure:
    """A method of the object by name. A failure, too, if looking for it runs code of the plugin that fails."""
    try:
        method = getattr(plugin.instance, name, None)
    except (Exception, *ENDINGS) as error:
        return failure_of(error)
    if not callable(method):
        return Failure(FailureKind.UNKNOWN_METHOD, f"{type(plugin.instance).__name__} has no method {name}")
    return cast("Method", method)


def call_now(call: Call) -> Result:
    """Calls without waiting. A coroutine that waits is a failure, because only an event loop could go on with it."""
    method = method_of(call)
    if isinstance(method, Failure):
        return method
    try:
        response = method(call.request)
        if iscoroutine(response):
            response = _finish(cast("Coroutine[object, None, object]", response))
    except (Exception, *ENDINGS) as error:  # A plugin's error is its own.
        return failure_of(error)
    # Of which kind it really is, the pipeline checks.
    return cast("Result", response)


def failure_of(error: BaseException) -> Failure:
    """Of an exception that a plugin raised."""
    kind = FailureKind.TIMEOUT if isinstance(error, TimeoutError) else FailureKind.CALL
    return Failure(kind, f"{type(error).__name__}: {error!s:.200}")


def _finish(coroutine: Coroutine[object, None, object]) -> object:
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("the plugin waits, but nothing here can wake it")


def construct(entry: InProcessPlugin) -> object:
    """Imports and constructs. ImportError (whatever went wrong), AttributeError (no such class), RuntimeError (its constructor failed)."""
    try:
        module = importlib.import_module(entry.module)
    except (Exception, *ENDINGS) as error:
        raise ImportError(f"plugin {entry.plugin_id!r}: cannot import {entry.module}: {type(error).__name__}: {error}") from error
    factory = getattr(module, entry.class_name, None)
    if not callable(factory):
        raise AttributeError(f"plugin {entry.plugin_id!r}: module {entry.module} has no class {entry.class_name}")
    try:
        return factory(**entry.kwargs)
    except (Exception, *ENDINGS) as error:
        raise RuntimeError(f"plugin {entry.plugin_id!r}: cannot construct {entry.class_name}: {type(error).__name__}: {error}") from error
