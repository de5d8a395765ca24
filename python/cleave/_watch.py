# SPDX-License-Identifier: Apache-2.0
"""Where a step's time and memory go, and how a training went: `model.profile` and `model.plot`."""
from __future__ import annotations

import sys
import time
from typing import Any

from ._library import NULL, UnsupportedError, ffi, lib, make, runtime, text


class Profile:
    """Times of a step by the device's own clock, averages in seconds.

    step_seconds  from the end of a step to the end of the next
    host_seconds  besides, until the host hands over the next one
    devices       [{'device', 'busy', 'transfer', 'idle'}]
    layers, ops   [{'name', 'device', 'seconds', 'forward', 'backward', 'update', 'flops', 'bytes'}], the longest first
    """

    def __init__(self, profile: Any) -> None:
        index = lib.clv_profile_info_get(profile).main_run
        run = lib.clv_profile_run_get(profile, index)
        self.steps, self.step_seconds, self.host_seconds = run.steps, run.step_ns / 1e9, run.host_ns / 1e9
        self.devices = []
        for i in range(run.n_devices):
            d = lib.clv_profile_device_get(profile, index, i)
            self.devices.append({"device": text(lib.clv_device_info_get(d.device).name), "busy": d.busy_ns / 1e9,
                                 "transfer": d.transfer_ns / 1e9, "idle": d.idle_ns / 1e9})
        n = max(run.n_nodes, 1)
        nodes = ffi.new("clv_profile_node[]", n)
        for i in range(run.n_nodes):
            nodes[i] = lib.clv_profile_node_get(profile, index, i)
        self.layers, self.ops = (self._rows(nodes, run.n_nodes, by) for by in (lib.CLV_PROFILE_LAYERS, lib.CLV_PROFILE_OPS))

    @staticmethod
    def _rows(nodes, n, by):
        rows = ffi.new("clv_profile_row[]", max(n, 1))
        found = []
        for row in rows[0:lib.clv_profile_sum(nodes, n, by, rows)]:
            name = text(row.name) + (" (%s)" % text(row.variant) if text(row.variant) else "")
            found.append({"name": name, "device": text(lib.clv_device_info_get(row.device).name) if row.device != NULL else "",
                          "seconds": row.all.ns / 1e9, "forward": row.forward.ns / 1e9, "backward": row.backward.ns / 1e9,
                          "update": row.update.ns / 1e9, "flops": row.all.flops, "bytes": row.all.bytes})
        return sorted(found, key=lambda r: -r["seconds"])

    def __repr__(self) -> str:
        lines = ["%.3f ms a step, of %d steps; besides %.3f ms of the host" % (1e3 * self.step_seconds, self.steps, 1e3 * self.host_seconds)]
        for what, rows in (("layer", self.layers), ("op", self.ops)):
            lines.append("%-40s %10s %10s %10s %10s" % (what, "ms", "forward", "backward", "update"))
            lines += ["%-40s %10.3f %10.3f %10.3f %10.3f" % ((r["name"][:40],) + tuple(1e3 * r[k] for k in ("seconds", "forward", "backward",
                                                                                                        "update"))) for r in rows[:12]]
        return "\n".join(lines)


def profile(model, work, steps, trace):
    """Do `work` so many times with events."""
    here = runtime()
    config = ffi.new("clv_profile_config *")
    config.slices = 1 << 20 if trace else 0
    handle = make("clv_profile", lambda out: lib.clv_profile_create(here.pointer, config, out), lib.clv_profile_destroy, model._session)
    model._end_runs()
    lib.clv_session_set_profile(model._session.pointer, handle.pointer)
    try:
        for _ in range(steps):
            work()
        found = Profile(handle.pointer)
        if trace:
            here.check(lib.clv_profile_trace(handle.pointer, str(trace).encode()))
        return found
    finally:
        lib.clv_session_set_profile(model._session.pointer, NULL)
        model._end_runs()
        handle.close()


def plot(history, plan, path):
    """Curves of the losses, and the bytes by layer of a plan. Wants matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError("plot wants matplotlib: pip install matplotlib") from None
    n = bool(history) + (plan is not None)
    figure = Figure(figsize=(6.4 * max(n, 1), 4.8), layout="constrained")
    axes = list(figure.subplots(1, max(n, 1), squeeze=False)[0])
    if history:
        at = axes.pop(0)
        steps = [told["step"] for told in history]
        at.plot(steps, [told["loss"] for told in history], label="training", marker=".")
        if any(told["validation"] for told in history):
            at.plot(steps, [(told["validation"] or {}).get("loss", float("nan")) for told in history], label="validation", marker=".")
        at.set(xlabel="step", ylabel="loss")
        at.legend()
    if plan is not None:
        at, layers = axes.pop(0), {}
        for node in plan.nodes:
            layers[node["layer"] or node["op"]] = layers.get(node["layer"] or node["op"], 0) + node["bytes"]
        at.barh(list(layers), [b / 2**20 for b in layers.values()])
        at.invert_yaxis()
        at.set(xlabel="MiB of results and workspace; %.1f held at most" % (plan.bytes / 2**20))
    if path is not None:
        figure.savefig(path)
    return figure


class Progress:
    """A line that is written over, in a terminal or a notebook; elsewhere nothing until an epoch's end."""

    def __init__(self, wanted, epoch, epochs, loader):
        self.head, self.n = "epoch %d/%d" % (epoch, epochs), len(loader) if hasattr(loader, "__len__") else None
        self.live = wanted and (sys.stdout.isatty() or type(_shell()).__name__ == "ZMQInteractiveShell")
        self.wanted, self.began, self.last, self.wide = wanted, time.monotonic(), 0.0, 0

    def batch(self, i, loss):
        """After the i-th batch was begun; loss: the mean of those before."""
        now = time.monotonic()
        if self.live and now - self.last >= 0.2:
            self.last = now
            self._say("%s  %d%s  loss %.4f  %.0f s" % (self.head, i, "/%d" % self.n if self.n else "", loss, now - self.began), "")

    def end(self, told):
        if self.wanted:
            self._say("%s  loss %.4f%s  %.1f s" % (self.head, told["loss"], "".join(
                "  validation %s %.4f" % v for v in (told["validation"] or {}).items()), told["seconds"]), "\n")

    def stopped(self):
        if self.live and self.last:
            print(flush=True)

    def _say(self, line, end):
        print(("\r" if self.live else "") + line + " " * max(0, self.wide - len(line)), end=end, flush=True)
        self.wide = len(line)


def _shell():
    there = sys.modules.get("IPython")
    return there.get_ipython() if there else None
