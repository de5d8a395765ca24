# SPDX-License-Identifier: Apache-2.0
"""A PyTorch module as a function that builds Cleave's graph: `torch.export`'s graph, node by node."""
import collections
import contextlib
import functools
import inspect
import logging
import threading
import warnings

import torch
from torch.utils import _pytree as pytree

from . import _aten
from ._library import Error, UnsupportedError
from .graph import Tensor


_exporting = threading.RLock()  # torch.export keeps what it does in variables of its module


@contextlib.contextmanager
def _unheard(name):
    """PyTorch logs what it raises, which is told here."""
    log = logging.getLogger(name)
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _last_frame(node):
    """The line of the module that a node comes from."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip()]
    for where, code in zip(lines[-2::-2], lines[-1::-2]):
        if where.startswith("File "):
            return "%s: %s" % (where[5:].replace('"', ""), code)
    return ""


def _layer(node):
    """The module that a node lies in, as named_modules() names it."""
    stack = node.meta.get("nn_module_stack")
    name = list(stack.values())[-1][0] if stack else ""
    return name[len("module."):] if name.startswith("module.") else "" if name == "module" else name  # model.py wraps it with its loss


class Program:
    """An exported module.

    module    as it is now: in training or not. Its parameters are not read
    example   tensors, a batch of them
    open_batch  may it be a program of any batch?
    """

    def __init__(self, module, example, open_batch=True):
        self.shapes = [tuple(x.shape) for x in example if isinstance(x, torch.Tensor)]
        with _exporting:
            self.exported = self._export(module, example, open_batch)
            self.open = self._open_batch()
            self._take()
        self._held = {}

    def _export(self, module, example, open_batch):
        batch = {x.shape[0] for x in example if isinstance(x, torch.Tensor) and x.ndim} if open_batch else {1}
        dynamic = tuple({0: torch.export.Dim.AUTO} if isinstance(x, torch.Tensor) and x.ndim else None for x in example)
        with warnings.catch_warnings(), _unheard("torch._subclasses.fake_tensor"):
            warnings.simplefilter("ignore")
            if len(batch) == 1 and batch != {1}:
                try:
                    return torch.export.export(module, tuple(example), dynamic_shapes=_as_arguments(module, dynamic), strict=False)
                except Exception:  # a batch that the module fixes: one program for each size
                    pass
            try:
                return torch.export.export(module, tuple(example), strict=False)
            except Exception as error:  # whatever the module does that no graph has
                told = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
                frame = [line.strip() for line in str(error).splitlines() if line.strip().startswith("File ")]
                raise UnsupportedError("torch.export cannot make a graph of this module: %s%s" % (told, " (%s)" % frame[-1] if frame else "")) \
                    from error

    def _placeholders(self):
        return [n for n in self.exported.graph.nodes if n.op == "placeholder"]

    def _open_batch(self):
        users = [s.arg.name for s in self.exported.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
        values = [n.meta.get("val") for n in self._placeholders() if n.name in users]
        return bool(values) and all(isinstance(v.shape[0], torch.SymInt) for v in values if isinstance(v, torch.Tensor) and v.ndim)

    def fits(self, module, inputs):
        """Is it the program of inputs like these? Of another batch it is run once beside the module, by PyTorch: `len(x)` and `float(n)` of a
        batch are numbers in an exported program, and nothing tells so."""
        shapes = tuple(tuple(x.shape) for x in inputs)
        if list(shapes) == self.shapes:
            return True
        if not self.open or [s[1:] for s in shapes] != [s[1:] for s in self.shapes]:
            return False
        if shapes not in self._held:
            self._held[shapes] = self._same(module, inputs)
        return self._held[shapes]

    def _same(self, module, inputs):
        example = [torch.rand(x.shape) if "float" in str(x.dtype) else torch.zeros(x.shape, dtype=getattr(torch, str(x.dtype))) for x in inputs]
        before, told = {k: v.detach().clone() for k, v in module.state_dict().items()}, []
        with _exporting, torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for each in (module, self.exported.module()):
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(0)
                    try:
                        told.append(pytree.tree_leaves(each(*(x.clone() for x in example))))
                    except Exception:  # a size that one of them does not take: exported anew, that tells it
                        return False
                for name, value in module.state_dict().items():
                    value.copy_(before[name])
        return all(not isinstance(a, torch.Tensor) or torch.allclose(a.double(), b.double(), rtol=1e-4, atol=1e-6, equal_nan=True)
                   for a, b in zip(*told))

    def _refuse(self):
        """What a graph cannot do as the module does."""
        for graph in self._graphs():
            for node in graph.nodes:
                if node.op != "call_function":
                    continue
                tags = getattr(node.target, "tags", ())
                name = str(node.target).replace("aten.", "", 1).split(".")[0].rstrip("_")
                if torch.Tag.nondeterministic_seeded in tags and name not in _DROPS:
                    raise UnsupportedError("%s draws random numbers within the module, which would be the same in every step here%s" % (
                        node.target, _at(node)))
                if "aten" in str(node.target) and _aten.find(node.target)[1] and not _ignored(node):
                    written = node.args[0]
                    while _is_view(written):
                        written = written.args[0]
                    if written.op == "placeholder":
                        raise UnsupportedError("%s writes into an input or a buffer of the module, which would be lost here%s" % (
                            node.target, _at(node)))

    def _take(self):
        """What there is to build, or what is missing, all of it."""
        self._refuse()
        missing, tried = self._missing(), set()
        told = missing
        while missing or any(self._view_in_place()):  # what PyTorch makes of other ops, and those of others
            known = [torch.export.default_decompositions(), torch._decomp.decomposition_table]
            wanted = {n.target for n in missing} - tried
            table = {t: next(k[t] for k in known if t in k) for t in wanted if any(t in k for k in known)}
            tried |= wanted
            if missing and not table:
                raise UnsupportedError(_told(told))
            self.exported = self.exported.run_decompositions(table)
            missing = self._missing()

    def _graphs(self):
        yield self.exported.graph
        for module in self.exported.graph_module.modules():
            if isinstance(module, torch.fx.GraphModule) and module is not self.exported.graph_module:
                yield module.graph

    def _missing(self):
        """Nodes whose op there is not, and that depend on an input."""
        found = []
        for graph in self._graphs():
            on = set()
            for node in graph.nodes:
                if node.op == "placeholder" or (node.op == "call_function" and any(a in on for a in node.all_input_nodes)):
                    if not isinstance(node.meta.get("val"), (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)):
                        on.add(node)
                if node.op != "call_function" or not any(a in on for a in node.all_input_nodes) or node.target in _aten.PLAIN or \
                        _ignored(node) or _wraps(node):
                    continue
                if not _aten.find(node.target)[0]:
                    found.append(node)
        return found

    def _view_in_place(self):
        """Ops that write into a view of a value that is read again, itself or by another view: that changes too."""
        for graph in self._graphs():
            place = {node: i for i, node in enumerate(graph.nodes)}
            for node in graph.nodes:
                if node.op != "call_function" or "aten" not in str(node.target) or not _aten.find(node.target)[1] or not _is_view(node.args[0]):
                    continue
                same = node.args[0]
                while _is_view(same):
                    same = same.args[0]
                views = [same]
                for view in views:
                    views += [u for u in view.users if _is_view(u)]
                if any(place[user] > place[node] for view in views if view is not node.args[0] for user in view.users):
                    yield node

    def _users(self):
        return [n for n, s in zip(self._placeholders(), self.exported.graph_signature.input_specs) if s.kind.name == "USER_INPUT"]

    @functools.cached_property
    def readers(self):
        """How many nodes read each input."""
        return [len(n.users) for n in self._users()]

    @functools.cached_property
    def counters(self):
        """Indices of the inputs that count batches; the graph passes over them."""
        users = {n: i for i, n in enumerate(self._users())}
        return [users[n.args[0]] for n in self.exported.graph.nodes
                if n.op == "call_function" and "add" in str(n.target) and _ignored(n) and n.args[0] in users]

    def result_dtypes(self):
        """As the module gives its results."""
        results = next(n for n in self.exported.graph.nodes if n.op == "output").args[0]
        kinds = [s.kind.name for s in self.exported.graph_signature.output_specs]
        return [r.meta["val"].dtype if isinstance(r, torch.fx.Node) else torch.float32
                for r, k in zip(pytree.tree_leaves(results), kinds) if k == "USER_OUTPUT"]

    def unflatten(self, results):
        """Results as the module gives them: a tensor, a tuple, a dict, in its dtypes."""
        results = [r.to(d) for r, d in zip(results, self.result_dtypes())]
        return pytree.tree_unflatten(results, self.exported.call_spec.out_spec)

    def build(self, graph, inputs, parameter, buffer, training, masks=None, statistics=None):
        """Append it to a graph. inputs: tensors in order; parameter(name), buffer(name) give those. training: will gradients be asked
        for? masks: a list that gets an input and a part dropped for each dropout, that the caller feeds; None: the graph drops.
        statistics: a list that gets, for each running statistic, its input, the batch's and the momentum; None: the graph keeps them.
        Result: a list of tensors."""
        c = _aten.Context(graph, training, masks, statistics)
        values = {}
        inputs = iter(inputs)
        for spec, node in zip(self.exported.graph_signature.input_specs, self._placeholders()):
            kind = spec.kind.name
            if kind == "PARAMETER":
                values[node] = parameter(spec.target)
            elif kind == "BUFFER":
                values[node] = buffer(spec.target)
            elif kind == "CONSTANT_TENSOR":
                values[node] = self.exported.constants[spec.target].detach()
            elif kind == "USER_INPUT":
                values[node] = next(inputs)
        results = self._interpret(c, self.exported.graph_module, values)
        kinds = [s.kind.name for s in self.exported.graph_signature.output_specs]
        results = [r if isinstance(r, Tensor) else c.tensor(r) for r, k in zip(pytree.tree_leaves(results), kinds) if k == "USER_OUTPUT"]
        given = {t.pointer for n, t in values.items() if n.op == "placeholder" and isinstance(t, Tensor)}
        return [_aten.ops.detach(r) if not training and r.pointer in given else r for r in results]  # an input is no output

    def _interpret(self, c, module, values):
        for node in module.graph.nodes:
            if node.op == "call_function" and _ignored(node):
                values[node] = None
            if node.op == "placeholder" or node in values:
                continue
            if node.op == "get_attr":
                value = module
                for part in node.target.split("."):
                    value = getattr(value, part)
                values[node] = value
                continue
            args = pytree.tree_map(lambda n: values[n] if isinstance(n, torch.fx.Node) else n, node.args)
            if node.op == "output":
                return args[0]
            kwargs = pytree.tree_map(lambda n: values[n] if isinstance(n, torch.fx.Node) else n, node.kwargs)
            with graph_scope(c, node):
                values[node] = self._node(c, node, args, kwargs, values)
        return []

    def _node(self, c, node, args, kwargs, values):
        if _wraps(node):  # torch.no_grad() within a module: (enabled, graph, *inputs)
            inner = dict(zip([n for n in args[1].graph.nodes if n.op == "placeholder"], args[2:]))
            results = self._interpret(c, args[1], inner)
            return results if args[0] else pytree.tree_map(lambda r: _aten.ops.detach(r) if isinstance(r, Tensor) else r, results)
        leaves = pytree.tree_leaves((args, kwargs))
        if node.target in _aten.PLAIN:
            return node.target(*args, **kwargs)
        function, in_place = _aten.find(node.target)
        if not any(isinstance(x, Tensor) for x in leaves):  # nothing of the graph: PyTorch computes it
            return node.target(*args, **kwargs)
        try:
            if in_place and len(args) and args[0] is None:  # a counter of batches, which is kept on the host
                return None
            c.node = node
            result = function(c, *args, **kwargs)
        except (Error, NotImplementedError, TypeError) as error:
            where = "%s, in %s%s" % (node.target, _layer(node) or "the module", _last_frame(node) and " (%s)" % _last_frame(node))
            kind = type(error) if isinstance(error, Error) else UnsupportedError
            raise kind("%s: %s" % (where, error)) from error
        if in_place:
            values[node.args[0]] = result
        return result


@contextlib.contextmanager
def graph_scope(c, node):
    with c.graph.scope(_layer(node)):
        yield


def _ignored(node):
    """What changes no value here: assertions, and the counters of batches, which are kept outside of the graph."""
    if str(node.target).replace("aten.", "", 1).split(".")[0] in _aten.IGNORED:
        return True
    if not str(node.target).startswith(("aten.add_.", "aten.add.")) or not isinstance(node.args[0], torch.fx.Node):
        return False
    counter, value = node.args[0], node.args[0].meta.get("val")
    if counter.op != "placeholder" or not isinstance(value, torch.Tensor) or value.ndim or value.is_floating_point():
        return False
    return str(node.target).startswith("aten.add_.") or "num_batches_tracked" in counter.name


# What these draw is drawn here.
_DROPS = {"dropout", "feature_dropout", "scaled_dot_product_attention", "lstm", "gru", "rnn_tanh", "rnn_relu"}


def _is_view(node):
    return node.op == "call_function" and str(node.target).replace("aten.", "").split(".")[0] in _aten.VIEWS


def _at(node):
    return " (%s)" % _last_frame(node) if _last_frame(node) else ""


def _wraps(node):
    return "wrap_with_set_grad_enabled" in str(node.target)


def _as_arguments(module, each):
    """One for each input, as export wants them: those that `*args` takes are one argument."""
    kinds = [p.kind for p in inspect.signature(module.forward).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        return each
    n = kinds.index(inspect.Parameter.VAR_POSITIONAL)
    return each[:n] + (each[n:],)


def _told(missing):
    counts = collections.Counter(str(n.target) for n in missing)
    first = {}
    for node in missing:
        first.setdefault(str(node.target), _last_frame(node) or _layer(node))
    each = ["%s (%d%s)" % (name, n, ", first at " + first[name] if first[name] else "") for name, n in counts.most_common()]
    return "Cleave has no way to compute %d of PyTorch's ops that this module uses: %s" % (len(each), "; ".join(each))
