"""Deprecated names of modules: importing a module by its old name loads the renamed module.

The table maps old names to new names, both relative to ``cgprimer``. `docs/changelog.md` lists the
names that the documentation has shown; the rest is needed to unpickle objects of older versions.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

NEW_NAMES = {
    "analysis.why": "analysis.nonfinite_origin",
    "array_elements": "support.array_elements",
    "cache": "support.disk_cache",
    "checked_numbers": "support.validation",
    "checking": "course.checks",
    "checking.engine": "course.checks.engine_check",
    "checking.formula": "course.checks.formula_check",
    "checking.gradient": "course.checks.gradient_check",
    "checking.optimizer": "course.checks.optimizer_check",
    "checking.questions": "course.checks.gradient_questions",
    "checking.results": "course.checks.check_results",
    "checking.sandbox": "course.checks.sandbox",
    "checking.sheets": "course.checks.sheets",
    "checking.sheets.problems": "course.checks.sheets.sheet_problems",
    "checking.trace": "course.checks.sheet_check",
    "core.array_steps": "core.evaluation.array_evaluator",
    "core.engines": "core.evaluation.engines",
    "core.graph.build": "core.graph.construction",
    "core.language.complaints": "core.language.syntax_errors",
    "core.language.domains": "core.language.input_domains",
    "core.language.names": "core.language.syntax_tree",
    "core.language.substitution": "core.language.syntax_tree",
    "core.language.syntax": "core.language.syntax_tree",
    "core.loss_vertex": "core.loss_node",
    "core.losses": "core.loss_expressions",
    "core.methods.contract": "core.methods.derivative_program",
    "core.methods.edges": "core.methods.edge_tape",
    "core.primitives": "core.operations",
    "core.primitives.array_functions": "core.operations.function_expansions",
    "core.primitives.arrays": "core.operations.numpy_arithmetic",
    "core.primitives.floats": "core.operations.float_arithmetic",
    "core.primitives.formulas": "core.operations.symbolic_arithmetic",
    "core.primitives.layers": "core.operations.layer_expansions",
    "core.primitives.notation": "core.operations.notation",
    "core.primitives.numbers": "core.evaluation.graph_values",
    "core.primitives.registry": "core.operations.primitive_registry",
    "core.primitives.shaped": "core.operations.shape_operations",
    "core.primitives.structural": "core.operations.array_shapes",
    "core.primitives.table": "core.operations.primitive_table",
    "core.run": "core.evaluation.runner",
    "core.tape.passes": "core.tape.tape_passes",
    "core.tape.printing": "core.tape.tape_printing",
    "core.tape.scalars": "core.tape.scalarization",
    "core.tape.sums": "core.tape.sample_sums",
    "data": "training.data",
    "data.archives": "training.data.numpy_files",
    "data.blocks": "training.data.blocks",
    "data.csv_files": "training.data.csv_files",
    "data.dataset": "training.data.dataset",
    "data.tables": "training.data.arrow_tables",
    "entry_points": "support.entry_points",
    "exercises": "course.exercises",
    "exercises.exercise": "course.exercises.exercise_sheets",
    "exporting": "analysis.export",
    "exporting.export": "analysis.export.exporter",
    "files": "support.files",
    "fitting": "training.fitting",
    "fitting.bootstrap": "training.fitting.bootstrap",
    "fitting.descent": "training.fitting.least_squares_descent",
    "fitting.fit": "training.fitting.fit",
    "fitting.residuals": "training.fitting.residuals",
    "fitting.result": "training.fitting.fit_result",
    "garbage_collection": "support.garbage_collection",
    "lecture.differences": "course.lecture_class.vertex_differences",
    "loading": "core.graph.loading",
    "native": "backends",
    "native.arguments": "backends.call_arguments",
    "native.blocks": "backends.numpy_blocks",
    "native.contract": "backends.interfaces",
    "native.cpu": "backends.cpu",
    "native.cpu.array_text": "backends.cpu.array_kernel_ir",
    "native.cpu.blas": "backends.cpu.blas_threads",
    "native.cpu.code": "backends.cpu.interpreter_code",
    "native.cpu.coefficients": "backends.cpu.coefficients",
    "native.cpu.engine": "backends.cpu.cpu_engine",
    "native.cpu.epoch_text": "backends.cpu.epoch_ir",
    "native.cpu.executable": "backends.cpu.cpu_executable",
    "native.cpu.handlers": "backends.cpu.interpreter_handlers",
    "native.cpu.interpreted": "backends.cpu.interpreter",
    "native.cpu.lanes": "backends.cpu.vector_ir",
    "native.cpu.library": "backends.cpu.llvm_library",
    "native.cpu.listing": "backends.cpu.cpu_listing",
    "native.cpu.loop_text": "backends.cpu.function_emitter",
    "native.cpu.mathematics": "backends.cpu.exponential_ir",
    "native.cpu.matrices": "backends.cpu.matrix_executable",
    "native.cpu.operations": "backends.cpu.primitive_ir",
    "native.cpu.single_text": "backends.cpu.single_sample_ir",
    "native.cpu.special": "backends.cpu.special_functions_ir",
    "native.cpu.straight_line": "backends.cpu.straight_line",
    "native.cpu.threads": "backends.cpu.worker_threads",
    "native.cpu.trainer": "backends.cpu.cpu_trainer",
    "native.cpu.trigonometry": "backends.cpu.trigonometric_ir",
    "native.cuda": "backends.cuda",
    "native.cuda.columns": "backends.cuda.device_columns",
    "native.cuda.device": "backends.cuda.device",
    "native.cuda.engine": "backends.cuda.cuda_engine",
    "native.cuda.executable": "backends.cuda.cuda_executable",
    "native.cuda.generated": "backends.cuda.generated_functions",
    "native.cuda.kernels": "backends.cuda.kernel_source",
    "native.cuda.listing": "backends.cuda.cuda_listing",
    "native.cuda.mathematics": "backends.cuda.cuda_primitives",
    "native.encoding": "backends.plan_encoding",
    "native.listing": "backends.code_listing",
    "native.plans": "backends.plans",
    "native.plans.affine": "backends.plans.affine_groups",
    "native.plans.array_kernels": "backends.plans.array_plan",
    "native.plans.constant_factors": "backends.plans.optimization",
    "native.plans.fusion": "backends.plans.fusion",
    "native.plans.making": "backends.plans.planning",
    "native.plans.optimization": "backends.plans.optimization",
    "native.plans.plan": "backends.plans.plan",
    "native.plans.printing": "backends.plans.plan_printing",
    "native.plans.reductions": "backends.plans.reductions",
    "native.plans.storage": "backends.plans.row_allocation",
    "native.programs": "backends.program_cache",
    "number_format": "support.number_format",
    "numbers_and_arrays": "support.array_values",
    "odd_characters": "core.language.typography",
    "pages": "visualization.pages",
    "pages.comparison": "visualization.pages.comparison",
    "pages.comparison.slides": "visualization.pages.comparison.comparison_slides",
    "pages.stepping": "visualization.pages.stepping",
    "pages.stepping.frames": "visualization.pages.stepping.step_frames",
    "pages.stepping.page": "visualization.pages.stepping.step_page",
    "pages.stepping.scene": "visualization.pages.stepping.scene",
    "pages.stepping.steps": "visualization.pages.stepping.step_values",
    "pictures": "visualization.diagrams",
    "pictures.diagram": "visualization.diagrams.diagram",
    "pictures.formats": "visualization.diagrams.diagram_formats",
    "pictures.graph_diagrams": "visualization.diagrams.graph_diagrams",
    "plots": "visualization.plots",
    "plots.activations": "visualization.plots.activations_plot",
    "plots.batches": "visualization.plots.batches_plot",
    "plots.boundary": "visualization.plots.boundary_plot",
    "plots.cost": "visualization.plots.cost_plot",
    "plots.descent": "visualization.plots.descent_plot",
    "plots.error": "visualization.plots.error_plot",
    "plots.function": "visualization.plots.function_plot",
    "plots.gradients": "visualization.plots.gradients_plot",
    "plots.landscape": "visualization.plots.loss_landscape",
    "plots.loss": "visualization.plots.loss_plot",
    "plots.noise": "visualization.plots.noise_plot",
    "plots.parameters": "visualization.plots.parameters_plot",
    "plots.swell": "visualization.plots.swell_plot",
    "plots.variance": "visualization.plots.variance_plot",
    "plugins": "support.plugins",
    "recording.backward": "recording.backward_pass",
    "recording.chain": "recording.grad_functions",
    "recording.eager": "recording.eager_builder",
    "recording.functions": "recording.custom_functions",
    "recording.kept": "recording.graph_memory",
    "recording.matrices": "recording.jacobian_hessian",
    "recording.nodes": "recording.traced_nodes",
    "recording.passes": "recording.cached_passes",
    "recording.products": "recording.einsum",
    "recording.record": "recording.recorder",
    "recording.softmax": "recording.fused_softmax",
    "recording.tensor_names": "recording.torch_names",
    "recording.written": "recording.graph_writer",
    "registration": "core.registration",
    "training.interfaces": "training.estimators",
    "training.vectors": "training.parameter_vector",
    "workers": "training.distributed",
    "workers.cutting": "training.distributed.layer_cuts",
    "workers.record": "training.distributed.worker_record",
}


class _MovedModuleLoader(Loader):
    """A loader that replaces a module with a deprecated name by the module with the new name."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None, so that Python creates an empty module for the deprecated name."""

    def exec_module(self, module: ModuleType) -> None:
        """Import the renamed module in place of the deprecated one, with a DeprecationWarning."""
        old = module.__name__
        new = f"cgprimer.{NEW_NAMES[old.removeprefix('cgprimer.')]}"
        warnings.warn(
            f"{old} is deprecated; import {new} instead", DeprecationWarning, stacklevel=2
        )
        successor = import_module(new)
        if hasattr(module, "__path__"):  # an empty path: submodules are looked up in the table
            module.__dict__["__getattr__"] = lambda name: getattr(successor, name)
        else:
            sys.modules[old] = successor


def find_module_spec(name: str) -> ModuleSpec | None:
    """Return the import specification of a deprecated module name; None for other names.

    >>> find_module_spec("cgprimer.core.run").name
    'cgprimer.core.run'
    """
    old = name.removeprefix("cgprimer.")
    if old not in NEW_NAMES:
        return None
    is_package = any(other.startswith(f"{old}.") for other in NEW_NAMES)
    return ModuleSpec(name, _MovedModuleLoader(), is_package=is_package)
