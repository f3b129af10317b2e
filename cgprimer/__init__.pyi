# The public names, a line each: the package reads this file, and so do type checkers.
__version__: str

from cgprimer import plot as plot
from cgprimer.analysis.comparison import Comparison as Comparison
from cgprimer.analysis.comparison import MethodResult as MethodResult
from cgprimer.analysis.comparison import compare as compare
from cgprimer.analysis.trace import Trace as Trace
from cgprimer.analysis.trace import TraceRow as TraceRow
from cgprimer.analysis.trace import trace as trace
from cgprimer.core.derivatives.edge_partials import Partials as Partials
from cgprimer.core.derivatives.edge_partials import partials as partials
from cgprimer.core.derivatives.evaluation import tape as tape
from cgprimer.core.derivatives.gradients import gradient as gradient
from cgprimer.core.derivatives.gradients import jacobian as jacobian
from cgprimer.core.derivatives.second_derivatives import hessian as hessian
from cgprimer.core.derivatives.second_derivatives import (
    hessian_vector_product as hessian_vector_product,
)
from cgprimer.core.engines import EngineInfo as EngineInfo
from cgprimer.core.engines import engines as engines
from cgprimer.core.engines import register_engine as register_engine
from cgprimer.core.graph import ExpressionGraph as ExpressionGraph
from cgprimer.core.graph import load as load
from cgprimer.core.graph import parse as parse
from cgprimer.core.methods import differentiate as differentiate
from cgprimer.core.methods import methods as methods
from cgprimer.core.methods import register_method as register_method
from cgprimer.core.methods.contract import DerivativeProgram as DerivativeProgram
from cgprimer.core.primitives.registration import register_primitive as register_primitive
from cgprimer.core.primitives.registration import unregister_primitive as unregister_primitive
from cgprimer.core.tape.tape import Tape as Tape
from cgprimer.data import Dataset as Dataset
from cgprimer.data import make_dataset as make_dataset
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
from cgprimer.pages.comparison.slides import draw_comparison as draw_comparison
from cgprimer.pages.stepping.page import Page as Page
from cgprimer.pages.stepping.page import step as step
from cgprimer.pictures.diagrams import draw as draw
from cgprimer.training.loop import TrainingRun as TrainingRun
from cgprimer.training.loop import train as train
from cgprimer.training.losses import register_loss as register_loss
from cgprimer.training.losses import unregister_loss as unregister_loss
from cgprimer.training.objective import Objective as Objective
from cgprimer.training.objective import loss_and_gradient as loss_and_gradient
from cgprimer.training.optimizers import Optimizer as Optimizer
from cgprimer.training.optimizers import register_optimizer as register_optimizer
from cgprimer.training.optimizers import unregister_optimizer as unregister_optimizer
