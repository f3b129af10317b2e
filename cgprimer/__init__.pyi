# The public names, a line each: the package reads this file, and so do type checkers.
__version__: str

from cgprimer import expressions as expressions
from cgprimer import networks as networks
from cgprimer import plot as plot
from cgprimer import tapes as tapes
from cgprimer.analysis.comparison import Comparison as Comparison
from cgprimer.analysis.comparison import MethodResult as MethodResult
from cgprimer.analysis.comparison import compare as compare
from cgprimer.analysis.derivation import Derivation as Derivation
from cgprimer.analysis.export.exporter import export as export
from cgprimer.analysis.nonfinite_origin import Why as Why
from cgprimer.analysis.nonfinite_origin import why as why
from cgprimer.analysis.rules import rules as rules
from cgprimer.analysis.trace import Trace as Trace
from cgprimer.analysis.trace import TraceRow as TraceRow
from cgprimer.analysis.trace import trace as trace
from cgprimer.core.derivatives import gradient as gradient
from cgprimer.core.derivatives import tape as tape
from cgprimer.core.edge_partials import Partials as Partials
from cgprimer.core.edge_partials import partials as partials
from cgprimer.core.graph import ExpressionGraph as ExpressionGraph
from cgprimer.core.graph import parse as parse
from cgprimer.core.graph.loading import load as load
from cgprimer.core.loss_attachment import graph_with_loss as graph_with_loss
from cgprimer.core.methods import differentiate as differentiate
from cgprimer.core.methods import methods as methods
from cgprimer.core.methods.derivative_program import DerivativeProgram as DerivativeProgram
from cgprimer.core.operations import Primitive as Primitive
from cgprimer.core.registration import EngineInfo as EngineInfo
from cgprimer.core.registration import engines as engines
from cgprimer.core.registration import register_engine as register_engine
from cgprimer.core.registration import register_method as register_method
from cgprimer.core.registration import register_primitive as register_primitive
from cgprimer.core.registration import unregister_engine as unregister_engine
from cgprimer.core.registration import unregister_method as unregister_method
from cgprimer.core.registration import unregister_primitive as unregister_primitive
from cgprimer.core.second_derivatives import hessian_vector_product as hessian_vector_product
from cgprimer.core.tape.tape import Tape as Tape
from cgprimer.course.checks.engine_check import check_engine as check_engine
from cgprimer.course.checks.formula_check import check_formula as check_formula
from cgprimer.course.checks.gradient_check import check_gradient as check_gradient
from cgprimer.course.checks.optimizer_check import check_optimizer as check_optimizer
from cgprimer.course.checks.sheet_check import check_trace as check_trace
from cgprimer.course.exercises.exercise_sheets import exercise as exercise
from cgprimer.errors import CgprimerError as CgprimerError
from cgprimer.errors import CycleError as CycleError
from cgprimer.errors import DataError as DataError
from cgprimer.errors import DefinitionError as DefinitionError
from cgprimer.errors import DifferentiationError as DifferentiationError
from cgprimer.errors import EngineError as EngineError
from cgprimer.errors import ExpressionSwellError as ExpressionSwellError
from cgprimer.errors import ExpressionSyntaxError as ExpressionSyntaxError
from cgprimer.errors import MissingValueError as MissingValueError
from cgprimer.errors import NonFiniteError as NonFiniteError
from cgprimer.errors import PathLimitError as PathLimitError
from cgprimer.errors import SourceError as SourceError
from cgprimer.errors import TapeError as TapeError
from cgprimer.errors import TrainingError as TrainingError
from cgprimer.errors import UnknownFunctionError as UnknownFunctionError
from cgprimer.errors import UsageError as UsageError
from cgprimer.lecture import ComputationalGraphPrimer as ComputationalGraphPrimer
from cgprimer.recording.checkpointing import checkpoint as checkpoint
from cgprimer.recording.custom_functions import Function as Function
from cgprimer.recording.graph_memory import Memory as Memory
from cgprimer.recording.graph_memory import memory as memory
from cgprimer.recording.jacobian_hessian import hessian as hessian
from cgprimer.recording.jacobian_hessian import jacobian as jacobian
from cgprimer.recording.recorder import Recording as Recording
from cgprimer.recording.recorder import record as record
from cgprimer.recording.traced_nodes import Node as Node
from cgprimer.recording.traced_nodes import primitive as primitive
from cgprimer.recording.transforms import grad as grad
from cgprimer.recording.transforms import value_and_grad as value_and_grad
from cgprimer.recording.value import Value as Value
from cgprimer.recording.value import no_grad as no_grad
from cgprimer.training.checkpoint import load_run as load_run
from cgprimer.training.curvature import stable_learning_rate as stable_learning_rate
from cgprimer.training.data import Blocks as Blocks
from cgprimer.training.data import Dataset as Dataset
from cgprimer.training.data import make_dataset as make_dataset
from cgprimer.training.data.class_samples import make_classes as make_classes
from cgprimer.training.ensembles import Ensemble as Ensemble
from cgprimer.training.ensembles import ensemble as ensemble
from cgprimer.training.estimators import Estimator as Estimator
from cgprimer.training.estimators import flat_objective as flat_objective
from cgprimer.training.fitting.fit import fit as fit
from cgprimer.training.fitting.fit_result import Fit as Fit
from cgprimer.training.identifiability import identifiability as identifiability
from cgprimer.training.loop import train as train
from cgprimer.training.losses import register_loss as register_loss
from cgprimer.training.losses import unregister_loss as unregister_loss
from cgprimer.training.objective import Objective as Objective
from cgprimer.training.objective import loss_and_gradient as loss_and_gradient
from cgprimer.training.optimizers import register_optimizer as register_optimizer
from cgprimer.training.optimizers import unregister_optimizer as unregister_optimizer
from cgprimer.training.predictions import Score as Score
from cgprimer.training.runs import TrainingRun as TrainingRun
from cgprimer.training.runs import save_run as save_run
from cgprimer.training.sweeps import Sweep as Sweep
from cgprimer.training.sweeps import sweep as sweep
from cgprimer.training.update_rules import Optimizer as Optimizer
from cgprimer.visualization.diagrams.diagram_formats import (
    register_picture_format as register_picture_format,
)
from cgprimer.visualization.diagrams.diagram_formats import (
    unregister_picture_format as unregister_picture_format,
)
from cgprimer.visualization.diagrams.drawing import draw as draw
from cgprimer.visualization.pages.comparison.comparison_slides import (
    draw_comparison as draw_comparison,
)
from cgprimer.visualization.pages.stepping.step_page import Page as Page
from cgprimer.visualization.pages.stepping.step_page import step as step
