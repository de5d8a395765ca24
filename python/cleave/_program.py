# SPDX-License-Identifier: Apache-2.0
"""A PyTorch module as a function that builds Cleave's graph: `torch.export`'s graph, node by node."""
import collections
import contextlib
import functools
import inspect
import logging
import operator
import sys
import threading
import warnings

import torch
import torch.export._trace
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


class _Context:
    """What a forward of an autograd.Function is given, which keeps nothing."""

    def __getattr__(self, name):
        return lambda *_, **__: None


def _is_gradient_of_forward(cls, args):
    """Is what backward() gives the gradient of forward(), for random numbers?"""
    def differentiate(function):
        generator = torch.Generator().manual_seed(0)
        given = [torch.randn([getattr(getattr(n, "node", None), "hint", n) for n in x.shape], generator=generator).to(x.dtype)
                 if isinstance(x, torch.Tensor) else x for x in args]
        leaves = [x.requires_grad_() for x in given if isinstance(x, torch.Tensor) and x.is_floating_point()]
        result = pytree.tree_leaves(function(*(x * 1 if isinstance(x, torch.Tensor) else x for x in given)))
        total = sum((y * torch.randn(y.shape, generator=generator)).sum() for y in result if isinstance(y, torch.Tensor) and y.requires_grad)
        return torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)

    own_context = cls.setup_context is not torch.autograd.Function.setup_context
    with torch.utils._python_dispatch._disable_current_modes(), torch.enable_grad():
        try:
            pairs = zip(differentiate(_apply.__get__(None, cls)), differentiate(cls.forward if own_context else functools.partial(
                cls.forward, _Context())))
            return all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in pairs)
        except Exception:  # whatever it wants that this is not
            return False


def _own_gradient(cls, *args, **kwargs):
    """Of an autograd.Function in a module that is trained: the graph has the gradient of its forward."""
    if not cls.__module__.startswith("torch.") and not _is_gradient_of_forward(cls, args):
        raise UnsupportedError("%s.%s is a torch.autograd.Function, whose backward torch.export does not see; a straight-through one can be "
                               "written as x + (f(x) - x).detach()" % (cls.__module__, cls.__qualname__))
    return _apply.__get__(None, cls)(*args, **kwargs)


_apply, _rand, _isfinite = vars(torch.autograd.Function)["apply"], torch.rand, torch.isfinite


@contextlib.contextmanager
def traceable(module):
    """What torch.export cannot trace is another thing meanwhile, that computes the same."""
    from torch.distributions import Distribution
    from torch.nn.modules import transformer

    def rand(*size, **how):
        """`torch.rand([]) < layerdrop` chooses layers: where none is dropped, none is."""
        return torch.tensor(1.0) if size == ([],) and not _drops_layers(module) else _rand(*size, **how)

    def isfinite(x):
        """transformers chooses by it whether to clamp what is not; where all is finite that makes no difference."""
        return torch.tensor(True) if sys._getframe(1).f_globals["__name__"].startswith("transformers.") else _isfinite(x)

    others = [(torch, "rand", rand), (torch, "isfinite", isfinite), (torch, "ctc_loss", ctc_loss), (transformer, "_detect_is_causal_mask", lambda mask, causal=None, size=None: bool(causal)),
              (Distribution, "_validate_args", False)]
    if module.training:
        others.append((torch.autograd.Function, "apply", classmethod(_own_gradient)))
    others.append((torch.export._trace, "print", lambda *_, **__: None))  # the whole graph, of one that it refuses
    others += [(torch._VF, "_pack_padded_sequence", _pack), (torch._VF, "_pad_packed_sequence", _pad)]
    others += [(layer, "forward", _of_packed(layer.forward)) for layer in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)]
    before = [(at, name, vars(at).get(name)) for at, name, _ in others]
    try:
        for at, name, value in others:
            setattr(at, name, value)
        yield
    finally:
        for at, name, value in before:
            delattr(at, name) if value is None else setattr(at, name, value)


# Packed sequences: within a graph their data are [T, N, F] as they were before, with numbers of rows that go on beside them.

def _pack(x, lengths, batch_first):
    x = x.transpose(0, 1) if batch_first else x
    return x, (lengths[None, :] > torch.arange(x.shape[0])[:, None]).sum(1)


def _lengths(batch_sizes, n):
    return (batch_sizes[None, :] > torch.arange(n)[:, None]).sum(1)


def _pad(x, batch_sizes, batch_first, value, total_length):
    lengths = _lengths(batch_sizes, x.shape[1])
    if value:
        within = lengths[None, :] > torch.arange(x.shape[0])[:, None]
        x = torch.where(within.reshape(*within.shape, *[1] * (x.dim() - 2)), x, value)
    x = torch.nn.functional.pad(x, [0, 0] * (x.dim() - 1) + [0, total_length - x.shape[0]], value=value)
    return x.transpose(0, 1) if batch_first else x, lengths


def _of_packed(forward):
    """The forward() of a recurrent layer, for packed sequences, too."""
    def of(self, input, hx=None):
        if not isinstance(input, torch.nn.utils.rnn.PackedSequence):
            return forward(self, input, hx)
        x, batch_sizes, order, back = input
        if getattr(self, "proj_size", 0):
            raise UnsupportedError("%s of packed sequences with proj_size" % type(self).__name__)
        n, lstm = x.shape[1], self.mode == "LSTM"
        if hx is None:
            hx = [x.new_zeros(self.num_layers * (1 + self.bidirectional), n, self.hidden_size)] * (1 + lstm)
        else:
            hx = self.permute_hidden(hx, order)
        weights = [getattr(self, name) for name in self._flat_weights_names]  # in _flat_weights export does not know them
        hx = list(hx) if lstm or isinstance(hx, list) else [hx]
        y, *last = torch.ops.cleave.recurrent(x, _lengths(batch_sizes, n), hx, weights, self.mode, self.bias, self.num_layers, self.dropout,
                                              self.training, self.bidirectional)
        last = self.permute_hidden(tuple(last) if lstm else last[0], back)
        return torch.nn.utils.rnn.PackedSequence(y, batch_sizes, order, back), last
    return of


@torch.library.custom_op("cleave::recurrent", mutates_args=())
def _recurrent(x: torch.Tensor, lengths: torch.Tensor, hx: list[torch.Tensor], weights: list[torch.Tensor], mode: str, biases: bool, layers: int,
               dropout: float, train: bool, bidirectional: bool) -> list[torch.Tensor]:
    data, batch_sizes = torch._C._VariableFunctions._pack_padded_sequence(x, lengths, False)
    of = getattr(torch, mode.lower())
    y, *last = of(data, batch_sizes, list(hx) if mode == "LSTM" else hx[0], weights, biases, layers, dropout, train, bidirectional)
    y, _ = torch._C._VariableFunctions._pad_packed_sequence(y, batch_sizes, False, 0.0, x.shape[0])
    return [y.clone(), *(h.clone() for h in last)]


@_recurrent.register_fake
def _(x, lengths, hx, weights, mode, biases, layers, dropout, train, bidirectional):
    return [x.new_empty(*x.shape[:2], hx[0].shape[2] * (1 + bidirectional))] + [torch.empty_like(h) for h in hx]


def _drops_layers(module):
    return next((getattr(m, name) for m in module.modules() for name in ("layerdrop", "layer_drop") if getattr(m, name, 0)),
                None) or next((m.config.layerdrop for m in module.modules() if getattr(getattr(m, "config", None), "layerdrop", 0)), 0)


_ctc_loss = torch.ctc_loss


@torch.library.custom_op("cleave::ctc_loss", mutates_args=())
def _traced_ctc_loss(log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: torch.Tensor, target_lengths: torch.Tensor, blank: int,
                     reduction: int, zero_infinity: bool) -> torch.Tensor:
    return _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)


@_traced_ctc_loss.register_fake
def _(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    return log_probs.new_empty(log_probs.shape[1:2] if reduction == 0 else ())


@torch.library.custom_op("cleave::stopped", mutates_args=())
def _stopped(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@_stopped.register_fake
def _(x):
    return torch.empty_like(x)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    """torch.ctc_loss, whose lengths torch.export does not trace. A length that PyTorch refuses makes the loss NaN."""
    return _traced_ctc_loss(log_probs, targets, *(torch.as_tensor(x) for x in (input_lengths, target_lengths)), blank, reduction, zero_infinity)


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
        self.training = module.training
        self.shapes = [tuple(x.shape) for x in example if isinstance(x, torch.Tensor)]
        with _exporting:
            self.exported = self._export(module, example, open_batch)
            self.open = self._open_batch()
            self._take()
        self._held = {}

    def _export(self, module, example, open_batch):
        with traceable(module):
            return self._exported(module, example, open_batch)

    def _exported(self, module, example, open_batch):
        batch = {x.shape[0] for x in example if isinstance(x, torch.Tensor) and x.ndim} if open_batch else {1}
        dynamic = tuple({0: torch.export.Dim.AUTO} if isinstance(x, torch.Tensor) and x.ndim else None for x in example)
        with warnings.catch_warnings(), _unheard("torch._subclasses.fake_tensor"), \
                _unheard("torch.fx.experimental.symbolic_shapes"):
            warnings.simplefilter("ignore")
            if len(batch) == 1 and batch != {1}:
                try:
                    return torch.export.export(module, tuple(example), dynamic_shapes=_as_arguments(module, dynamic), strict=False)
                except Exception:  # a batch that the module fixes: one program for each size
                    pass
            try:
                return torch.export.export(module, tuple(example), strict=False)
            except Exception as error:  # whatever the module does that no graph has
                if _drops_layers(module) and "data-dependent" in str(error):
                    raise UnsupportedError("layerdrop %g chooses in each step which layers are computed, and a graph has them all: set it to 0"
                                           % _drops_layers(module)) from error
                if isinstance(error, Error):
                    raise
                if "data-dependent" in str(error):
                    nodes = list(getattr(getattr(error, "partial_fx_graph", None), "nodes", None) or getattr(
                        getattr(getattr(error, "partial_fx_graph", None), "graph", None), "nodes", []))
                    at = next((_last_frame(n) for n in reversed(nodes) if n.op == "call_function" and _last_frame(n)), "")
                    raise UnsupportedError("what this module does depends on numbers of the batch, and a graph does the same in each step%s"
                                           % (at and ": " + at)) from error
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
                if _draws(node) and not _aten.find(node.target)[0]:
                    raise UnsupportedError("%s draws random numbers within the module, which Cleave cannot%s" % (node.target, _at(node)))
                written = _written(node)
                if written is not None and written.op == "placeholder":
                    self._functional()
                    return

    def _decompose(self, table):
        """PyTorch's decompositions, which forget what has no gradient: detach() and torch.no_grad()."""
        stopped = torch.ops.cleave.stopped.default
        for graph in self._graphs() if self.training else ():
            for node in list(graph.nodes):
                if node.op == "call_function" and node.target is torch.ops.aten.detach.default:
                    node.target = stopped
                elif node.op == "call_function" and node.target is operator.getitem and _wraps(node.args[0]) and not node.args[0].args[0] and \
                        isinstance(node.meta.get("val"), torch.Tensor) and node.meta["val"].is_floating_point():
                    with graph.inserting_after(node):
                        behind = graph.call_function(stopped, (node,))
                    behind.meta = dict(node.meta)
                    node.replace_all_uses_with(behind, delete_user_cb=lambda user: user is not behind)
            graph.owning_module.recompile()
        self.exported = self.exported.run_decompositions(table)

    def _functional(self):
        """What is written into buffers becomes a result, which they take."""
        self._decompose({})
        for spec in self.exported.graph_signature.output_specs:
            kept = isinstance(self.exported.state_dict.get(spec.target), torch.Tensor) and self.exported.state_dict[spec.target].is_floating_point()
            if spec.kind.name == "USER_INPUT_MUTATION" or spec.kind.name == "BUFFER_MUTATION" and not spec.target.endswith("num_batches_tracked") and \
                    not (kept and self.training):
                raise UnsupportedError("the module writes into %s '%s', which would be lost here%s" % (
                    "its input" if spec.kind.name[0] == "U" else "the buffer", spec.target, "" if kept else
                    ": buffers of f32 in its state_dict are kept" if spec.kind.name[0] == "B" else ""))

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
            self._decompose(table)
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
        for value, spec in zip(pytree.tree_leaves(results, is_leaf=lambda x: x is None), self.exported.graph_signature.output_specs):
            if spec.kind.name == "BUFFER_MUTATION" and isinstance(value, Tensor):
                graph.updates.append((buffer(spec.target), value))
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
        if in_place and len(args) and args[0] is None:  # a counter of batches, which is kept on the host
            return None
        complex_ = any(isinstance(x, _aten.Complex) for x in leaves)
        if not complex_ and not any(isinstance(x, Tensor) for x in leaves) and not (function and _draws(node)):  # nothing of the graph: PyTorch computes it
            return node.target(*args, **kwargs)
        try:
            c.node = node
            if complex_ or any(isinstance(x, torch.Tensor) and x.is_complex() for x in leaves):
                return _aten.of_complex(c, str(node.target).replace("aten.", "", 1).split(".")[0], function, args, kwargs)
            if args and isinstance(args[0], torch.Tensor):
                args = (c.tensor(args[0]), *args[1:])
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


def _draws(node):
    """Is it random?"""
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _written(node):
    """What it writes into, of which its own argument may be a view; None: nothing."""
    written = node.kwargs.get("out") if "aten" in str(node.target) else None
    if written is None and ("aten" not in str(node.target) or not _aten.find(node.target)[1] or _ignored(node)):
        return None
    written = node.args[0] if written is None else written
    while _is_view(written):
        written = written.args[0]
    return written


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
